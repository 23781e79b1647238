"""What is public."""

import inspect
import re

import pytest

import zarrdask
from tests.covering import for_each

PUBLIC = [
    "Array",
    "Group",
    "NO_FILL_VALUE",
    "ZarrdaskError",
    "__version__",
    "append",
    "batches",
    "compare",
    "concat",
    "consolidate_metadata",
    "copy",
    "create_array",
    "create_group",
    "from_zarr",
    "inventory",
    "manifest",
    "map_overlap",
    "measured",
    "open",
    "open_array",
    "open_group",
    "plan_read",
    "plan_write",
    "pyramid",
    "read_many",
    "rechunk",
    "rechunked",
    "sample",
    "stack",
    "sync",
    "to_zarr",
    "update_pyramid",
    "upgrade",
    "verify",
]
SUBMODULES = [
    *("codecs", "conventions", "dtypes", "errors", "grids", "register", "storage", "testing")
]


def test_public_names():
    assert sorted(zarrdask.__all__) == PUBLIC


@for_each("name", [*PUBLIC, *SUBMODULES])
def test_each_public_name_is_there_and_listed(name):
    assert getattr(zarrdask, name).__doc__
    assert name in dir(zarrdask)


@for_each("name", [name for name in PUBLIC if inspect.isfunction(getattr(zarrdask, name))])
def test_each_parameter_of_a_verb_is_described(name):
    verb = getattr(zarrdask, name)
    section = inspect.getdoc(verb).partition("Parameters\n")[2].partition("\nReturns\n")[0]
    heads = [line for line in section.splitlines() if line[:1].strip()]
    described = {*re.findall(r"\w+", " ".join(heads))}
    named = [p.name for p in inspect.signature(verb).parameters.values() if p.kind != p.VAR_KEYWORD]
    assert not [each for each in named if each not in described]


@for_each("folder", ["codecs", "dtypes", "grids", "storage"])
def test_each_class_to_derive_from_is_there(folder):
    module = getattr(zarrdask, folder)
    assert all(getattr(module, name).__doc__ for name in module.__all__)
    assert {*module.__all__} <= {*dir(module)}


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nonsense"):
        _ = zarrdask.nonsense


def test_the_version_is_the_packages():
    from importlib.metadata import version

    assert zarrdask.__version__ == version("zarrdask")
