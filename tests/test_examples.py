"""What the documentation shows is true: its Python runs, and prints what it says; so the example.

In a page, the comment after a ``print`` or ``attempt`` (and the comment lines right below) is its
output, in a working directory ``/tmp``.
"""

import io
import multiprocessing.util
import os
import re
import runpy
import sys
import tokenize
from ast import literal_eval
from pathlib import Path
from types import ModuleType

import dask.config
import pytest

from tests.covering import for_each
from zarrdask import config, errors

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
#: Pages whose code needs other packages: tests/interop/test_recipes.py runs them.
NEEDS_OTHERS = {
    ROOT / "docs" / name for name in ("from-files.md", "in-zarr-python.md", "segmentations.md")
}
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")


def blocks(text):
    """Yield the Python blocks of a page, each with the number of the line before it."""
    for found in _BLOCK.finditer(text):
        yield text.count("\n", 0, found.start(1)), found[1]


def promised(block):
    """Return the output that a block's comments promise."""
    tokens = list(tokenize.generate_tokens(io.StringIO(block).readline))
    comments = {
        t.start[0]: t.string.removeprefix("#") for t in tokens if t.type == tokenize.COMMENT
    }
    lines = block.splitlines()
    output, after = [], False
    for number, line in enumerate(lines, 1):
        code = line.strip()
        prints = code.startswith(("print(", "attempt("))
        after = prints or (after and code.startswith("#"))
        if after and number in comments:
            output.append(comments[number].removeprefix(" "))
    return output


def test_comments_after_a_print_are_its_output():
    block = "x = 1  # one\nprint(x)  # 1\ny = x\n# not this\nprint('a\\n  b')  # a\n#   b\n"
    assert promised(block) == ["1", "a", "  b"]


def run_page(page, tmp_path, monkeypatch, capsys):
    """Run the Python blocks of a page one after another, and compare what they print."""
    monkeypatch.chdir(tmp_path)
    module = ModuleType("page")  # classes of a page pickle by the name of their module
    monkeypatch.setitem(sys.modules, "page", module)
    with dask.config.set({"zarrdask": dict(config.DEFAULTS)}):  # a page may leave other settings
        for before, block in blocks(page.read_text()):
            # Empty lines before, so that a traceback tells the line of the page.
            exec(compile("\n" * before + block, page, "exec"), vars(module))
            printed = capsys.readouterr().out.replace(str(tmp_path), "/tmp").splitlines()
            assert printed == promised(block), f"{page}:{before}"


@pytest.mark.parametrize("page", sorted({*PAGES} - NEEDS_OTHERS), ids=lambda page: page.name)
def test_page(page, own_registries, tmp_path, monkeypatch, capsys):
    run_page(page, tmp_path, monkeypatch, capsys)


@for_each("page", PAGES)
def test_links_lead_somewhere(page):
    for link in _LINK.findall(page.read_text()):
        assert "://" in link or (page.parent / link).exists(), link


def _value(text):
    return literal_eval(text) if text in ("None", "True", "False") or text.isdecimal() else text


def test_every_setting_is_documented_with_its_default():
    page = (ROOT / "docs" / "configuration.md").read_text()
    rows = re.findall(r"^\| `zarrdask\.([\w-]+)` \| `?(\w+)`? \|", page, re.MULTILINE)
    assert {name: _value(default) for name, default in rows} == config.DEFAULTS


def test_every_error_is_documented():
    page = (ROOT / "docs" / "errors.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| `(.*)` \|", page, re.MULTILINE))
    found = {name: kind for name, kind in vars(errors).items() if isinstance(kind, type)}
    assert set(rows) == {n for n, kind in found.items() if issubclass(kind, errors.ZarrdaskError)}
    for name, also in rows.items():
        bases = [
            base.__name__ for base in found[name].__bases__ if base is not errors.ZarrdaskError
        ]
        assert also.split("`, `") == bases, name


GALLERY = dict(
    re.findall(
        r'^```text title="python examples/(\w+)\.py"\n(.*?)^```$',
        (ROOT / "docs" / "gallery.md").read_text(),
        re.MULTILINE | re.DOTALL,
    )
)


#: Examples that need other packages: tests/interop/test_s3.py and test_icechunk.py run them.
WITH_OTHERS = {"s3", "versions"}


@pytest.mark.parametrize("name", sorted({*GALLERY} - WITH_OTHERS))
def test_examples_of_the_gallery_print_what_the_page_shows(name, tmp_path, capsys):
    check_example(name, tmp_path, capsys)


def check_example(name, tmp_path, capsys):
    """Run an example, and check that it prints what the gallery shows."""
    with dask.config.set({"temporary-directory": str(tmp_path)}):
        runpy.run_path(str(ROOT / "examples" / f"{name}.py"))["main"](tmp_path)
    assert capsys.readouterr().out == GALLERY[name]


def test_the_gallery_shows_every_example():
    scripts = {path.stem for path in (ROOT / "examples").glob("*.py")}
    assert scripts == {*GALLERY, "quickstart", "draw"}


def test_quickstart(tmp_path, monkeypatch, capsys):
    multiprocessing.util.get_temp_dir()  # it stays until this process ends: not below tmp_path
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["quickstart.py", "--mib", "4"])
    runpy.run_path(str(ROOT / "examples" / "quickstart.py"))["main"]()
    out = capsys.readouterr().out
    assert re.search(r"^mean, minimum, maximum +4\.000 ", out, re.MULTILINE)
    locks = f"zarrdask-{os.getuid()}"
    assert {path.name for path in tmp_path.iterdir()} <= {locks}, "it leaves files"
