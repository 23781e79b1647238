"""Names of other software: the errors say what to use, and a page lists all of them."""

from pathlib import Path

import pytest

import zarrdask
from tests.covering import for_each
from zarrdask.display import other_names

PAGE = Path(__file__).parents[2] / "docs" / "from-zarr-python.md"
TABLES = [
    ("zarr.", other_names.MODULE, zarrdask),
    ("zarr.", other_names.STORAGE, zarrdask),
    ("array.", other_names.ARRAY, zarrdask.create_array({}, shape=(4,), dtype="i4")),
    ("group.", other_names.GROUP, zarrdask.create_group({})),
    ("zarr.storage.", other_names.STORAGE, zarrdask.storage),
    ("zarr.codecs.", other_names.CODECS, zarrdask.codecs),
    ("zarr.config.", zarrdask.config.OTHER_NAMES, zarrdask.config),
    ("zarr.errors.", zarrdask.errors.OTHER_NAMES, zarrdask.errors),
]


@for_each("prefix, names, owner", TABLES)
def test_each_name_is_an_error_that_says_what_to_use(prefix, names, owner):
    for name, instead in names.items():
        with pytest.raises(AttributeError) as error:
            getattr(owner, name)
        assert str(error.value).endswith(f"has no attribute {name!r}; {instead}")


@for_each("prefix, names", [(prefix, names) for prefix, names, _ in TABLES if prefix != "zarr."])
def test_the_page_has_all_names(prefix, names):
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    for name, instead in names.items():
        assert any(f"`{prefix}{name}`" in row and row.endswith(f"| {instead} |") for row in rows)


def test_other_unknown_names_have_no_such_hint():
    with pytest.raises(AttributeError, match=r"no attribute 'nonsense'$"):
        _ = zarrdask.storage.nonsense
    with pytest.raises(AttributeError, match=r"no attribute 'nonsense'$"):
        _ = zarrdask.codecs.nonsense
