"""Every setting is explained where its user looks."""

from pathlib import Path

from graph_mem.config import Settings

README = Path(__file__).parents[2] / "README.md"


def rows() -> list[str]:
    """The table of settings, as README.md must have it."""
    shown: list[str] = []
    for name, field in Settings.model_fields.items():
        default = "" if field.default_factory or field.default in (None, ()) else f"`{field.default}`"
        shown.append(f"| `GRAPH_MEM_{name.upper()}` | {default} | {field.description} |")
    return shown


def test_readme_explains_every_setting_and_no_other() -> None:
    found = [line for line in README.read_text("utf-8").splitlines() if line.startswith("| `GRAPH_MEM_")]
    assert found == rows()
