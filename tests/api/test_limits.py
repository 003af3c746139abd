"""The budget of a caller by properties, on a clock of our own."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph_mem.api.brake import Brake
from graph_mem.api.limits import Budget, RateLimiter
from graph_mem.errors import RateLimited, Unauthenticated


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@given(st.lists(st.tuples(st.floats(0, 5), st.floats(0, 30)), max_size=50))
def test_no_caller_gets_more_than_burst_and_rate_allow(steps: list[tuple[float, float]]) -> None:
    clock = Clock()
    limiter = RateLimiter(Budget(burst=100, per_second=10), monotonic=clock)
    spent = 0.0
    for pause, cost in steps:
        clock.now += pause
        try:
            limiter.spend("a", cost)
        except RateLimited:
            continue
        spent += cost
        assert spent <= 100 + 10 * clock.now + 1e-6


def test_refused_caller_succeeds_after_the_time_it_was_told() -> None:
    clock = Clock()
    limiter = RateLimiter(Budget(burst=100, per_second=10), monotonic=clock)
    limiter.spend("a", 90)
    with pytest.raises(RateLimited) as refused:
        limiter.spend("a", 50)
    clock.now += refused.value.retry_after_s + 1e-9
    limiter.spend("a", 50)


def test_callers_do_not_pay_for_each_other() -> None:
    limiter = RateLimiter(Budget(burst=100, per_second=10), monotonic=Clock())
    limiter.spend("a", 100)
    limiter.spend("b", 100)


def test_no_limit_is_no_limit() -> None:
    limiter = RateLimiter(Budget.per_minute(0), monotonic=Clock())
    assert all(limiter.spend("a", 1e12) == inf for _ in range(100))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        ("192.0.2.1", "192.0.2.2", False),
        ("", "", True),
    ],
)
def test_who_has_a_network_of_addresses_has_one_budget_of_failures(one: str, other: str, same: bool) -> None:
    brake = Brake(Budget(burst=1, per_second=0.001))
    assert fails(brake, "guess", address=one) is Unauthenticated
    assert fails(brake, "guess", address=other) is (RateLimited if same else Unauthenticated)


def test_a_credential_that_worked_and_no_longer_does_is_a_failure_like_others() -> None:
    brake = Brake(Budget(burst=1, per_second=0.001))
    with brake.watching("once good", address="a"):
        pass
    assert fails(brake, "once good", address="a") is Unauthenticated
    assert fails(brake, "once good", address="a") is Unauthenticated
    assert fails(brake, "once good", address="a") is RateLimited


def fails(brake: Brake, credential: str, *, address: str) -> type[Exception]:
    with pytest.raises((Unauthenticated, RateLimited)) as failed, brake.watching(credential, address=address):
        raise Unauthenticated("no")
    return failed.type


def test_callers_that_are_forgotten_are_the_longest_quiet() -> None:
    limiter = RateLimiter(Budget(burst=10, per_second=0.001), monotonic=Clock())
    limiter.MAX_CALLERS = 3
    for caller in "abacad":
        limiter.spend(caller, 2)
    with pytest.raises(RateLimited):
        limiter.spend("a", 6)
