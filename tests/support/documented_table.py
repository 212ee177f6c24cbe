"""Documents that end with a table made from the declarations in the code."""

from __future__ import annotations

from pathlib import Path

MARK = "<!-- the table -->\n"
DOCS = Path(__file__).resolve().parents[2] / "docs"


def check_table(document: str, table: str, *, update: bool) -> None:
    """Check that a document in docs/ ends with a table, or, if `update`, write the table."""
    path = DOCS / document
    text, _, found = path.read_text().partition(MARK)
    if update:
        path.write_text(f"{text}{MARK}\n{table}")
        return
    assert found.strip() == table.strip(), "run pytest --update, and read the diff"
