"""What is installed is what was locked, and no file says from where."""

import re
import subprocess
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LOCK = (ROOT / "requirements.lock").read_text()
PINNED = re.findall(r"^([a-z0-9][^\s;]*==[^\s;]+)(?: ; (.*?))?(?: \\)?$", LOCK, re.MULTILINE)


def name_of(requirement: str) -> str:
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert found is not None
    return re.sub(r"[-_.]+", "-", found[0]).lower()


def test_plain_uv_resolves_to_what_was_locked() -> None:
    locked = [f"{pin} ; {marker}".replace('"', "'") if marker else pin for pin, marker in PINNED]
    assert len(locked) > 50
    assert PROJECT["tool"]["uv"]["constraint-dependencies"] == locked


def test_every_dependency_is_locked_with_hashes() -> None:
    groups = PROJECT["dependency-groups"].values()
    wanted = {name_of(entry) for group in (PROJECT["project"]["dependencies"], *groups) for entry in group}
    assert wanted <= {name_of(pin) for pin, _ in PINNED}
    blocks = re.split(r"^(?=[a-z0-9][^\s;]*==)", LOCK, flags=re.MULTILINE)[1:]
    assert len(blocks) == len(PINNED)
    assert all("--hash=sha256:" in block for block in blocks)


def test_no_lock_says_where_to_download_from() -> None:
    committed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    assert "uv.lock" not in committed
    assert "://" not in LOCK
    assert "index" not in PROJECT["tool"]["uv"]
