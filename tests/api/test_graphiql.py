"""GraphiQL from our own files."""

import re

import pytest

from graph_mem.api.graphiql import CONTENT_SECURITY_POLICY
from tests.api.conftest import Live


async def test_page_and_all_it_loads_come_from_here(live: Live) -> None:
    page = await live.http.get("/graphiql")
    assert page.status_code == 200
    assert page.headers["content-security-policy"] == CONTENT_SECURITY_POLICY
    assert "//" not in re.sub(r"<!.*?>", "", page.text)
    wanted = re.findall(r'(?:src|href)="(graphiql/[^"]+)"', page.text)
    assert len(wanted) == 8
    for path in wanted:
        asset = await live.http.get(f"/{path}")
        assert asset.status_code == 200, path
        assert asset.headers["x-content-type-options"] == "nosniff"
        assert asset.headers["content-type"].startswith("text/css" if path.endswith("css") else "text/javascript")


async def test_assets_travel_compressed_where_the_browser_can(live: Live) -> None:
    packed = await live.http.get("/graphiql/assets/react-18.2.0.js", headers={"accept-encoding": "gzip"})
    plain = await live.http.get("/graphiql/assets/react-18.2.0.js", headers={"accept-encoding": "identity"})
    assert packed.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in plain.headers
    assert packed.text == plain.text
    assert "immutable" in plain.headers["cache-control"]


@pytest.mark.parametrize("name", ["LICENSES.txt", "console.html", "../http.py", "..%2fhttp.py", "react-18.2.0.js.gz"])
async def test_nothing_else_is_served(live: Live, name: str) -> None:
    assert (await live.http.get(f"/graphiql/assets/{name}")).status_code == 404


async def test_console_reads_the_token_from_where_browsers_do_not_send_it(live: Live) -> None:
    script = (await live.http.get("/graphiql/assets/console.js")).text
    assert "location.hash" in script
    assert "localStorage" not in script


def test_policy_allows_no_other_host_and_no_inline_script() -> None:
    rules = dict(rule.partition(" ")[::2] for rule in CONTENT_SECURITY_POLICY.split("; "))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == "'self'"
    assert "http" not in CONTENT_SECURITY_POLICY
