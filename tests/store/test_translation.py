"""What Neo4j says is wrong with it, in our words."""

import pytest
from neo4j.exceptions import DatabaseError

from graph_mem.errors import DatabaseUnavailable, OperationTimeout, UnsuitableServer
from graph_mem.store.db import translated


class Said(DatabaseError):
    """An error of the server, with its code."""

    def __init__(self, code: str) -> None:
        super().__init__("The database needs to be restarted.")
        self._said = code

    @property
    def code(self) -> str:
        return self._said


@pytest.mark.parametrize("name", ["TransactionStartFailed", "TransactionLogError", "TransactionCommitFailed"])
def test_a_server_with_a_full_disk_is_away_until_somebody_sees_to_it(name: str) -> None:
    assert isinstance(translated(Said(f"Neo.DatabaseError.Transaction.{name}")), DatabaseUnavailable)


@pytest.mark.parametrize("name", ["LockClientStopped", "Terminated", "TransactionTimedOut"])
def test_a_transaction_that_was_ended_is_out_of_time(name: str) -> None:
    assert isinstance(translated(Said(f"Neo.ClientError.Transaction.{name}")), OperationTimeout)


def test_a_statement_that_fails_is_a_fault_of_ours() -> None:
    said = Said("Neo.DatabaseError.Statement.ExecutionFailed")
    assert translated(said) is said


def test_who_was_refused_too_often_is_told_the_same_as_before() -> None:
    said = Said("Neo.ClientError.Security.AuthenticationRateLimit")
    assert isinstance(translated(said), UnsuitableServer)
