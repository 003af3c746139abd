"""docker-compose.yml and Dockerfile start what `graph-mem up` starts, and are what their own tools expect.

No container engine runs here: schema and linter say that the files are well-formed, the rest compares.
"""

import re
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pytest
import yaml

from graph_mem.config import Settings
from graph_mem.local.artifacts import read_lock
from graph_mem.local.conf import EVERYWHERE, Memory, Ports, render

ROOT = Path(__file__).parents[2]
TOOLS = Path(sysconfig.get_path("scripts"))
DOCKERFILE = (ROOT / "Dockerfile").read_text()
LIGHT = dict(re.findall(r"^(\w+)=(.*)$", (ROOT / "deploy" / "light.env").read_text(), re.MULTILINE))
SAME_AS_RENDERED = ("server.memory.", "dbms.memory.", "db.memory.")


def composed(given: dict[str, str]) -> dict[str, Any]:
    """The file as an engine reads it, with `given` for its variables."""
    text = (ROOT / "docker-compose.yml").read_text()
    return yaml.safe_load(re.sub(r"\$\{(\w+):-([^}]*)\}", lambda one: given.get(one[1], one[2]), text))


SERVICES: dict[str, dict[str, Any]] = composed({})["services"]
OURS = ("api", "worker", "migrate")


def as_variable(setting: str) -> str:
    """How the image wants a setting named."""
    return "NEO4J_" + setting.replace("_", "__").replace(".", "_")


def test_the_schema_of_compose_and_the_linter_of_dockerfiles_have_nothing_to_say() -> None:
    for command in (
        ["check-jsonschema", "--builtin-schema", "vendor.compose-spec", "docker-compose.yml"],
        ["hadolint", "--no-color", "--failure-threshold", "style", "Dockerfile"],
    ):
        said = subprocess.run([TOOLS / command[0], *command[1:]], cwd=ROOT, capture_output=True, text=True, check=False)
        assert said.returncode == 0, said.stdout + said.stderr


@pytest.mark.parametrize("given", [{}, LIGHT], ids=["as it is", "light"])
def test_neo4j_has_the_same_settings(given: dict[str, str]) -> None:
    found = composed(given)["services"]["neo4j"]["environment"]
    memory = {
        name: int(found[as_variable(f"server.memory.{name}")][:-1]) for name in ("heap.max_size", "pagecache.size")
    }
    text = render(ports=Ports(0, 0), memory=Memory(memory["heap.max_size"], memory["pagecache.size"]), java_options=())
    rendered = dict(line.split("=", 1) for line in text.splitlines())
    expected = EVERYWHERE | {name: value for name, value in rendered.items() if name.startswith(SAME_AS_RENDERED)}
    assert len(expected) == len(EVERYWHERE) + 5
    assert {name: found.get(as_variable(name)) for name in expected} == expected


def test_neo4j_and_its_plugin_have_the_locked_versions() -> None:
    version = read_lock().neo4j
    assert f"FROM neo4j:{version}-community AS neo4j\n" in DOCKERFILE
    assert SERVICES["neo4j"]["image"] == f"graph-mem-neo4j:{version}"
    assert SERVICES["neo4j"]["build"]["target"] == "neo4j"
    assert "fetch --only gds" in DOCKERFILE
    assert "NEO4J_PLUGINS" not in SERVICES["neo4j"]["environment"]


def test_the_light_profile_goes_without_torch() -> None:
    for name in OURS:
        light = composed(LIGHT)["services"][name]
        assert light["build"]["args"] == {"TORCH": "without"}
        assert light["environment"]["GRAPH_MEM_EMBEDDER"] == "onnx"
    unknown = LIGHT.keys() - set(re.findall(r"\$\{(\w+):-", (ROOT / "docker-compose.yml").read_text()))
    assert unknown == set()


def test_nothing_runs_as_root_or_may_become_it() -> None:
    users = re.findall(r"^USER (\S+)$", DOCKERFILE, re.MULTILINE)
    assert users == [SERVICES["neo4j"]["user"], SERVICES["api"]["user"]]
    for name, service in SERVICES.items():
        assert service["user"].split(":")[0].isdecimal(), name
        assert service["user"] != "0", name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert service.get("read_only") or name == "neo4j", name


def test_every_service_has_a_limit_and_every_lasting_one_a_health_check() -> None:
    assert all(service["deploy"]["resources"]["limits"]["memory"] for service in SERVICES.values())
    for stage in re.split(r"^FROM ", DOCKERFILE, flags=re.MULTILINE)[-2:]:
        assert stage.count("HEALTHCHECK ") == 1
    assert SERVICES["gateway"]["healthcheck"]["test"]
    assert SERVICES["migrate"]["healthcheck"] == {"disable": True}
    assert SERVICES["migrate"]["restart"] == "no"


def test_only_what_is_in_the_file_is_referred_to() -> None:
    file = composed({})
    for service in SERVICES.values():
        for kind in ("secrets", "configs"):
            names = {one if isinstance(one, str) else one["source"] for one in service.get(kind, ())}
            assert names <= file[kind].keys()
        volumes = {mount.split(":")[0] for mount in service.get("volumes", ())}
        assert volumes <= file["volumes"].keys()
        assert service.get("depends_on", {}).keys() <= SERVICES.keys()


def test_settings_exist_and_the_world_reaches_the_gateway_alone() -> None:
    fields = {f"GRAPH_MEM_{name.upper()}" for name in Settings.model_fields}
    named = {name for name in SERVICES["api"]["environment"] if name.startswith("GRAPH_MEM_")}
    named |= set(re.findall(r"GRAPH_MEM_\w+(?==)", DOCKERFILE))
    assert len(named) > 5
    assert named - fields == set()
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert published.keys() == {"neo4j", "gateway"}
    assert all(port.startswith("127.0.0.1:") for ports in published.values() for port in ports)
    assert "location = /metrics {\n    return 404;" in composed({})["configs"]["gateway"]["content"]


def test_no_secret_stands_in_the_files() -> None:
    secret = re.compile(r"PASSWORD|SECRET|TOKEN|AUTH$|API_KEY")
    named = {name: value for one in SERVICES.values() for name, value in one.get("environment", {}).items()}
    assert {name for name in named if secret.search(name)} == set()
    assert {name for name in re.findall(r"(\w+)=", DOCKERFILE) if secret.search(name)} == set()
    assert named["NEO4J_AUTH_FILE"].startswith("/run/secrets/")
    for one in composed({})["secrets"].values():
        assert one["file"].startswith("./secrets/")
    assert "secrets/" in (ROOT / ".gitignore").read_text().splitlines()
    assert (ROOT / ".dockerignore").read_text().splitlines()[0] == "*"


def test_the_images_need_no_hub() -> None:
    assert "HF_HUB_OFFLINE=1" in DOCKERFILE
    assert DOCKERFILE.index("fetch --only model") < DOCKERFILE.index("HF_HUB_OFFLINE")
    assert not re.search(r"^ADD ", DOCKERFILE, re.MULTILINE)
