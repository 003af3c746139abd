"""What a principal is given out of the store was checked again on its way, or there is a reason why not."""

import ast
from collections.abc import Iterator, Mapping

from tests.guards.statements import modules, source

CHECKS = {"admit", "admitted", "counted", "counted_by_place", "found_of", "security_events.record"}
RUNS = {"row", "rows"}
Function = ast.AsyncFunctionDef | ast.FunctionDef

UNCHECKED: Mapping[str, str] = {
    **dict.fromkeys(
        ("facts.neighbours", "images.around", "images.retired", "lifecycle.linked", "lifecycle.lock_entities",
         "lifecycle.merged_before", "lifecycle.rival", "lifecycle.slot_mates"),
        "ids for a change of records that the transaction read and locked; what is changed is read by its id, checked",
    ),
    **dict.fromkeys(
        ("canon.save_pin", "folding.reinforce", "relations.leads", "relations.retiring_links", "scratch.count",
         "scratch.end_run", "standing.claim_text"),
        "whether, or how many, of what the transaction holds or its caller made",
    ),
    **dict.fromkeys(
        ("candidates.mentioning", "candidates.said", "rehearsals.enrol", "reviews.open_subjects", "reviews.withdraw"),
        "the nightly cycle's, for whole partitions, which is told to nobody",
    ),
    "erasure.counts": "numbers, counted under the predicate, of what names records that passed",
    "memories.imported": "keys that the caller made from its own place",
    **dict.fromkeys(("scopes.resolve", "search.scopes_of"), "the scopes of the principal, who is asked about each"),
}  # fmt: skip


def test_whoever_reads_for_a_principal_checks_each_row_again() -> None:
    found = {name for module in modules() for name in unchecked(module, source(module))}
    assert found == set(UNCHECKED)


def test_the_guard_sees_a_reader_that_does_not_check() -> None:
    read = "async def read(tx, principal) -> list[str]:\n    return [{} for one in await rows(tx, READ)]"
    assert list(unchecked("x", ast.parse(read.format("one['id']")))) == ["x.read"]
    helped = "\ndef _of(principal, one):\n    return admitted(principal, [one], str)"
    assert list(unchecked("x", ast.parse(read.format("_of(principal, one)") + helped))) == []


def unchecked(name: str, module: ast.Module) -> Iterator[str]:
    """Functions of a module that run a statement for a principal, return something, and call no check on the way."""
    functions = {one.name: one for one in ast.walk(module) if isinstance(one, Function)}
    for one in functions.values():
        if RUNS & _calls(one) and _for_a_principal(one) and not CHECKS & _reached(one, functions):
            yield f"{name}.{one.name}"


def _for_a_principal(one: Function) -> bool:
    returns = one.returns is not None and ast.unparse(one.returns) != "None"
    return returns and not one.name.startswith("_") and any(given.arg == "principal" for given in one.args.args)


def _reached(one: Function, functions: Mapping[str, Function]) -> set[str]:
    reached, new = set[str](), _calls(one)
    while new:
        reached |= new
        new = {call for name in new if name in functions for call in _calls(functions[name])} - reached
    return reached


def _calls(one: Function) -> set[str]:
    return {ast.unparse(call.func) for call in ast.walk(one) if isinstance(call, ast.Call)}
