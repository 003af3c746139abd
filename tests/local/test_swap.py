"""A new store in the place of the old one: whatever step the process ends at, one of them is whole and in its place."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from graph_mem.local import swap
from graph_mem.local.folder import DataFolder


class Killed(Exception):
    """The process ends here."""


def prepared(root: Path) -> None:
    for name, content in (("neo4j", "old"), ("neo4j-new", "new")):
        (root / name / "data").mkdir(parents=True)
        (root / name / "data" / "store").write_text(content)
    (root / "neo4j-password").write_text("old")
    (root / "neo4j-new" / "neo4j-password").write_text("new")


def stands(root: Path) -> str:
    """What `up` would start on."""
    with DataFolder(root).hold():
        assert {path.name for path in root.iterdir()} - {"instance.lock"} == {"neo4j", "neo4j-password"}, (
            "nothing is left"
        )
        assert [path.name for path in (root / "neo4j").iterdir()] == ["data"]
        store = (root / "neo4j" / "data" / "store").read_text()
        assert (root / "neo4j-password").read_text() == store, "the secret that belongs to it"
        return store


def test_the_new_store_takes_the_place_of_the_old(tmp_path: Path) -> None:
    prepared(tmp_path)
    swap.swap(tmp_path)
    assert stands(tmp_path) == "new"


def test_a_new_store_that_was_not_finished_is_dropped(tmp_path: Path) -> None:
    prepared(tmp_path)
    assert stands(tmp_path) == "old"


@pytest.mark.parametrize("step", range(9))
def test_a_process_that_ends_anywhere_leaves_a_whole_store(
    step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared(tmp_path)
    left = step

    def ending(work: Callable[..., object]) -> Callable[..., object]:
        def one(*given: object) -> object:
            nonlocal left
            if left == 0:
                raise Killed
            left -= 1
            return work(*given)

        return one

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", ending(Path.rename))
        patch.setattr(Path, "replace", ending(Path.replace))
        patch.setattr(Path, "touch", ending(Path.touch))
        patch.setattr(swap, "_sync", ending(swap._sync))
        patch.setattr(shutil, "rmtree", ending(shutil.rmtree))
        if step < 8:
            with pytest.raises(Killed):
                swap.swap(tmp_path)
        else:
            swap.swap(tmp_path)
    assert stands(tmp_path) == ("old" if step <= 2 else "new")
