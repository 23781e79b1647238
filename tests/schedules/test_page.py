"""The page about two writers has the table of the harness."""

from pathlib import Path

from tests.schedules.guarantees import table

PAGE = Path(__file__).parents[2] / "docs" / "two-writers.md"


def test_the_page_has_the_table():
    assert table() in PAGE.read_text()
