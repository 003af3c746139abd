"""A brake on guessing: an address that sends credentials which are not valid is soon not looked at any more."""

from collections import OrderedDict
from collections.abc import Generator
from contextlib import contextmanager
from hashlib import sha256
from ipaddress import IPv6Address, IPv6Network, ip_address

from graph_mem.api.limits import Budget, RateLimiter
from graph_mem.errors import RateLimited, ServiceUnavailable, Unauthenticated


class Brake:
    """A budget of failures per address, in this process.

    A credential that worked before is looked at in any case: whoever shares an address with a flood, behind a proxy
    or at home, goes on.
    """

    MAX_KNOWN = 10_000

    def __init__(self, budget: Budget | None = None) -> None:
        self._failures = RateLimiter(budget or Budget.per_minute(300))
        self._known: OrderedDict[bytes, None] = OrderedDict()

    @contextmanager
    def watching(self, credential: str, *, address: str) -> Generator[None]:
        """Around looking at `credential`; RateLimited if its address has used up its failures.

        The failure is paid in advance, so that many at once are no way around it, and given back to who succeeds.
        """
        digest, payer = sha256(credential.encode()).digest(), _network(address)
        if paid := digest not in self._known:
            self._pay(payer)
        try:
            yield
        except Unauthenticated:
            self._known.pop(digest, None)
            raise
        except ServiceUnavailable:
            self._failures.give_back(payer, float(paid))
            raise
        self._failures.give_back(payer, float(paid))
        self._remember(digest)

    def _pay(self, payer: str) -> None:
        try:
            self._failures.spend(payer, 1.0)
        except RateLimited as error:
            wait_s = error.retry_after_s
            raise RateLimited(
                f"Too many credentials that are not valid came from your address; try again in {wait_s:.1f} s.",
                retry_after_s=wait_s,
            ) from None

    def _remember(self, digest: bytes) -> None:
        self._known[digest] = None
        self._known.move_to_end(digest)
        if len(self._known) > self.MAX_KNOWN:
            self._known.popitem(last=False)


def _network(address: str) -> str:
    """Who an address counts as: in IPv6 its network of 64 bits, which is what one customer gets at least."""
    try:
        ip = ip_address(address)
    except ValueError:
        return address
    return str(IPv6Network((ip, 64), strict=False)) if isinstance(ip, IPv6Address) and not ip.ipv4_mapped else address
