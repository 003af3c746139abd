"""What a caller has written, carried in a header from one process of ours to another.

On a cluster a replica may lag behind. A process keeps its own reads behind its own writes; a caller who is answered by
several, or writes here and reads there, sends back what it was given, and no replica answers it before it has that.
"""

import hmac
from collections.abc import Collection

from graph_mem.api.request import Refused

CAUSAL_TOKEN = "x-causal-token"  # noqa: S105 a header's name
_LONGEST = 2048


class Seal:
    """Signs bookmarks: whoever could invent one could make us wait for a transaction that never comes.

    Without a secret, which all processes must share, none is given and none is looked at.
    """

    def __init__(self, secret: str | None = None) -> None:
        self._key = hmac.digest(secret.encode(), b"causal token", "sha256") if secret else None

    def closed(self, bookmarks: Collection[str]) -> str | None:
        """What the caller is given; None if there is nothing to go by, or more than a header should hold."""
        if self._key is None or not bookmarks:
            return None
        text = ",".join(sorted(bookmarks))
        token = f"{self._signature(text)}.{text}"
        return token if len(token) <= _LONGEST else None

    def opened(self, token: str | None) -> frozenset[str]:
        """The bookmarks in a token. Refused if it is none of ours."""
        if self._key is None or not token:
            return frozenset()
        signature, _, text = token[:_LONGEST].partition(".")
        if not hmac.compare_digest(signature.encode(), self._signature(text).encode()):
            raise Refused(400, "X-Causal-Token is none that was given here; send the last one you got, or none.")
        return frozenset(text.split(","))

    def _signature(self, text: str) -> str:
        assert self._key is not None  # noqa: S101
        return hmac.digest(self._key, text.encode(), "sha256").hex()
