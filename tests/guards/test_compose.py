"""docker-compose.yml starts what `graph-mem up` starts."""

import re
from pathlib import Path

from graph_mem.local.artifacts import read_lock
from graph_mem.local.conf import EVERYWHERE

ROOT = Path(__file__).parents[2]
COMPOSE = (ROOT / "docker-compose.yml").read_text()


def as_variable(setting: str) -> str:
    """How the image wants a setting named."""
    return "NEO4J_" + setting.replace("_", "__").replace(".", "_")


def test_neo4j_has_the_same_version_and_settings() -> None:
    assert f"image: neo4j:{read_lock().neo4j}-community\n" in COMPOSE
    found = dict(re.findall(r"^ +(NEO4J_\w+): \"?(.*?)\"?$", COMPOSE, re.MULTILINE))
    expected = {as_variable(name): value for name, value in EVERYWHERE.items()}
    assert {name: found.get(name) for name in expected} == expected


def test_no_secret_stands_in_the_file() -> None:
    assert not re.search(r"(PASSWORD|SECRET|AUTH): (?!/run/secrets/)", COMPOSE)
    assert "secrets/" in (ROOT / ".gitignore").read_text().splitlines()


def test_the_image_runs_without_root_and_needs_no_hub() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text()
    assert "\nUSER graph-mem\n" in dockerfile
    assert "HF_HUB_OFFLINE=1" in dockerfile
