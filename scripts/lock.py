"""Locks every dependency: requirements.lock with hashes, and the same versions as constraints in pyproject.toml.

`python scripts/lock.py` after a change of dependencies; `--upgrade` for the newest versions. uv.lock names the index
it was made from, so it is not committed; with the constraints, plain `uv run` resolves to what was locked.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = ROOT / "pyproject.toml"
LOCK = ROOT / "requirements.lock"
BEGIN, END = "# locked by scripts/lock.py: begin\n", "# locked by scripts/lock.py: end\n"
HEADER = "# Every dependency of every group, for all platforms; written by scripts/lock.py.\n"


def uv(*arguments: str) -> str:
    """What uv prints; its complaint is ours."""
    return subprocess.run(["uv", *arguments], cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE).stdout


def write_constraints(lines: list[str]) -> None:
    """Put the lines between the marks of pyproject.toml."""
    before, _, rest = PROJECT.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    block = "".join(f'    "{line}",\n' for line in lines)
    PROJECT.write_text(f"{before}{BEGIN}constraint-dependencies = [\n{block}]\n{END}{after}")


def pins(lock: str) -> list[str]:
    """The requirements of a lock without their hashes, quoted for TOML."""
    found = re.findall(r"^([a-z0-9][^\s;]*==[^\s;]+)(?: ; (.*?))?(?: \\)?$", lock, re.MULTILINE)
    return [f"{pin} ; {marker}".replace('"', "'") if marker else pin for pin, marker in found]


def main() -> None:
    """Resolve without the old constraints, export, constrain, and see that it is stable."""
    write_constraints([])
    uv("lock", "--quiet", *sys.argv[1:])
    lock = uv("export", "--quiet", "--all-groups", "--no-emit-project", "--no-header", "--no-annotate")
    LOCK.write_text(HEADER + lock)
    write_constraints(pins(lock))
    uv("lock", "--quiet")
    again = uv("export", "--quiet", "--all-groups", "--no-emit-project", "--no-header", "--no-annotate")
    if again != lock:
        raise SystemExit("The constraints do not reproduce the lock.")


if __name__ == "__main__":
    main()
