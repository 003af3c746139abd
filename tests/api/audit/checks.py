"""What schemathesis looks for: an answer that blames us."""

import schemathesis

BLAMED = {"INTERNAL_SERVER_ERROR", "TIMEOUT", "SERVICE_UNAVAILABLE"}


@schemathesis.check
def nothing_internal(
    _ctx: schemathesis.CheckContext, response: schemathesis.Response, _case: schemathesis.Case
) -> None:
    """A generated argument gets data or an error with a code that blames the caller."""
    assert response.status_code < 500, response.text
    errors = response.json().get("errors", [])
    codes = {error["extensions"]["code"] for error in errors}
    assert not codes & BLAMED, errors
