"""Every Cypher statement of `graph_mem.store`, found by its constant, and what it touches."""

import ast
import importlib
import pkgutil
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from graph_mem import store

HERE = Path(__file__).parent

_CYPHER = re.compile(r"\b(MATCH|MERGE|CREATE|CALL|DELETE|UNWIND|SHOW|RETURN)\b")
PREDICATE = re.compile(r"\((\w+)\.partition IN \$partitions AND \(\$scopes IS NULL OR \1\.scope IN \$scopes\)\)")
_LABELLED = re.compile(r"\(\s*(?P<alias>\w*)\s*:\s*(?P<labels>\w+(?:\s*[|:&]\s*\w+)*)")
_UNLABELLED = re.compile(r"(?:\bMATCH\s*|->\s*|<?-\s*)\((?P<alias>\w+)\s*(?=[){]|\bWHERE\b)")
_NAMELESS = re.compile(r"[->]\(\)|\(\)[-<]")
_BEFORE_ARROW = re.compile(r"\((?P<alias>\w+)\)\s*<?-")
_YIELDED = re.compile(r"YIELD node(?:\s+AS\s+(?P<alias>\w+))?")
_WRITES = re.compile(r"\b(SET|MERGE|CREATE|DELETE|REMOVE)\b")

NOT_RECORDS = frozenset(
    {
        # Who people are: named by organization, and read before there is a principal.
        "Organization", "User", "Client", "Deal", "ApiKey", "Settings", "Migration",
        # Locks and keys: a name made from ids, and nothing that anybody said.
        "Lease", "Source", "Tombstone",
    }
)  # fmt: skip


@dataclass(frozen=True)
class Statement:
    name: str
    text: str

    @property
    def reads_only(self) -> bool:
        return _WRITES.search(self.text) is None

    @property
    def checked(self) -> frozenset[str]:
        """The aliases that carry the visibility predicate."""
        return frozenset(PREDICATE.findall(self.text))

    @property
    def records(self) -> frozenset[str]:
        """The aliases of nodes that are, or may be, records; `:Label` for a node without a name, `()` for one
        without either."""
        plain = {found["alias"] for found in _LABELLED.finditer(self.text) if _labels(found) <= NOT_RECORDS}
        named = {
            found["alias"] or ":" + "|".join(sorted(_labels(found)))
            for found in _LABELLED.finditer(self.text)
            if not _labels(found) <= NOT_RECORDS
        }
        bare = {found["alias"] for shape in (_UNLABELLED, _BEFORE_ARROW) for found in shape.finditer(self.text)}
        yielded = {found["alias"] or "node" for found in _YIELDED.finditer(self.text)}
        nameless = {"()"} if _NAMELESS.search(self.text) else set[str]()
        return frozenset((named | bare | yielded | nameless) - plain)

    @property
    def opened(self) -> str:
        """The text with the first layer taken out."""
        return PREDICATE.sub("true", self.text)


def _labels(found: re.Match[str]) -> set[str]:
    return set(re.split(r"\s*[|:&]\s*", found["labels"]))


def without_layer_one(text: str) -> str:
    return PREDICATE.sub("true", text)


@cache
def modules() -> tuple[str, ...]:
    return tuple(sorted(one.name for one in pkgutil.iter_modules(store.__path__)))


def statements() -> Iterator[Statement]:
    """Every statement: the public constants; those that begin with an underscore are pieces of them."""
    for module in modules():
        for name, value in vars(importlib.import_module(f"graph_mem.store.{module}")).items():
            if not name.isupper() or name.startswith("_") or not defined(module, name):
                continue
            if isinstance(value, str) and _CYPHER.search(value):
                yield Statement(f"{module}.{name}", value)
            elif isinstance(value, Mapping):
                for key, one in value.items():
                    if isinstance(one, str) and _CYPHER.search(one):
                        yield Statement(f"{module}.{name}[{'+'.join(key)}]", one)


@cache
def source(module: str) -> ast.Module:
    return ast.parse(Path(store.__path__[0], f"{module}.py").read_text("utf-8"))


def defined(module: str, name: str) -> bool:
    """Whether `module` makes the constant `name` itself, and does not import it."""
    targets = (
        target
        for node in source(module).body
        if isinstance(node, (ast.Assign, ast.AnnAssign))
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    )
    return any(isinstance(target, ast.Name) and target.id == name for target in targets)


def exemptions() -> dict[str, dict[str, str]]:
    """Aliases that need no predicate, by statement: `<text in the statement> -- <reason>`."""
    return tomllib.loads((HERE / "statements.toml").read_text("utf-8"))
