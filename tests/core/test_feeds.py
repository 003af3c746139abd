"""What a file to import holds, and how one that does not fit is answered."""

import json
from datetime import UTC

import pytest

from graph_mem.core.feeds import items
from graph_mem.core.kinds import kind_of
from graph_mem.errors import InvalidInput


def refused(content: str, name: str = "rows.jsonl") -> str:
    with pytest.raises(InvalidInput) as caught:
        list(items(content.encode(), name, zone=UTC))
    return caught.value.message


def test_every_row_that_does_not_fit_is_counted_and_the_first_three_are_named() -> None:
    good, rows = '{"text": "fine"}', ["{", "[1]", '{"txt": "?"}', '{"text": "t", "time": "noon"}', "7"]
    said = refused("\n".join([good, *rows, "", good]))
    assert said.startswith("5 of 7 rows cannot be read: line 2 is not JSON: ")
    assert "line 3 is a list, expected an object." in said
    assert "line 4 has no text under any of text" in said
    assert said.endswith("And 2 more.")
    assert "rows.jsonl" not in said


def test_elements_of_a_list_are_counted_too() -> None:
    said = refused(json.dumps([{"text": "fine"}, None, {"text": "t", "meta": 3}]), "rows.json")
    assert said == (
        "2 of 3 rows cannot be read: element 2 is null, expected an object."
        " the metadata of element 3 is a number, expected an object."
    )


def test_a_file_that_is_no_list_is_said_to_be_what_it_is() -> None:
    assert refused("true", "rows.json") == "found true, expected a list or an object."
    assert refused('{"a":\n?', "rows.json") == "the file is not JSON: Expecting value at line 2, column 1."


def test_a_file_that_fits_gives_every_row() -> None:
    assert [one.text for one in items(b'{"text": "a"}\n\n{"body": "b"}', "rows.jsonl", zone=UTC)] == ["a", "b"]


def test_kinds_are_named_as_json_names_them() -> None:
    values = [None, True, 1, 1.5, "t", [], {}]
    assert list(map(kind_of, values)) == ["null", "true", "a number", "a number", "a text", "a list", "an object"]
