"""The API reference shows types, defaults and references as the source has them."""

import inspect
import re
import shutil
from pathlib import Path

import griffe
import pytest

import zarrdask

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
VERBS = [
    name
    for name in zarrdask.__all__
    if inspect.isfunction(getattr(zarrdask, name)) and not name.startswith("_")
]


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    # griffe parses all modules of a package, which takes seconds: it gets a copy with these only.
    copied = tmp_path_factory.mktemp("package")
    for name in VERBS:
        module = Path(*getattr(zarrdask, name).__module__.split(".")).with_suffix(".py")
        for source in (module, *(folder / "__init__.py" for folder in module.parents[:-1])):
            (copied / source).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / source, copied / source)
    extensions = griffe.load_extensions(str(DOCS / "api_docstrings.py"))
    return griffe.load(
        "zarrdask",
        search_paths=[copied],
        try_relative_path=False,
        extensions=extensions,
        docstring_parser="numpy",
        resolve_aliases=True,
    )


def parameters(package, name):
    sections = package[name].docstring.parsed
    return {
        parameter.name: parameter
        for section in sections
        if section.kind is griffe.DocstringSectionKind.parameters
        for parameter in section.value
    }


def test_the_reference_includes_these_functions():
    pages = "".join(path.read_text() for path in (DOCS / "api").glob("*.md"))
    missing = [
        name for name in VERBS if f"::: {getattr(zarrdask, name).__module__}.{name}\n" not in pages
    ]
    assert not missing


def test_the_first_page_of_the_reference_links_these_functions():
    page = (DOCS / "api.md").read_text()
    assert not [
        name
        for name in VERBS
        if f"[`{name}`][{getattr(zarrdask, name).__module__}.{name}]" not in page
    ]


def test_defaults_are_those_of_the_signatures(package):
    for name in VERBS:
        signature = inspect.signature(getattr(zarrdask, name)).parameters
        for parameter, described in parameters(package, name).items():
            if not parameter.startswith("*"):
                default = signature[parameter].default
                shown = None if default is inspect.Parameter.empty else repr(default)
                value = None if described.value is None else str(described.value)
                assert value == shown, (name, parameter)


def test_sets_of_options_keep_their_quotes(package):
    types = {name: p.annotation for name, p in parameters(package, "create_array").items()}
    assert types["zarr_format"] == '{3, 2, "v3-draft", "v3-draft-protocol"}'
    assert types["order"] == '{"C", "F"}'
    assert types["separator"] == '"/" or "."'


def test_a_variadic_parameter_has_no_default(package):
    assert parameters(package, "to_zarr")["**create_kwargs"].value is None


def test_see_also_is_a_list_of_links(package):
    sections = package["from_zarr"].docstring.parsed
    [text] = [section.value.contents for section in sections if section.title == "See Also"]
    assert re.findall(r"^- \[`(\w+)`\]\[([\w.]+)\]: \w", text, re.MULTILINE) == [
        ("map_overlap", "zarrdask.parallel.graph.map_overlap.map_overlap"),
        ("to_zarr", "zarrdask.parallel.graph.to_zarr.to_zarr"),
        ("open_array", "zarrdask.arrays.nodes.open.open_array"),
    ]
