"""The examples of docs/extending.md as a package that is installed, and used by name only."""

import math
import os
import re
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from tests.covering import for_each
from zarrdask import register
from zarrdask.errors import UnsupportedError
from zarrdask.formats import extension
from zarrdask.formats.extension import Registry

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "extending.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
DECLARED = re.search(r"^```toml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[1]
# What another program does, which has installed the package and imports nothing of it.
USE = """
import dask, dask.array as da, multiprocessing, numpy as np, zarrdask
from concurrent.futures import ProcessPoolExecutor
from uuid import UUID

if __name__ == "__main__":
    uuid = np.array([UUID(int=i).bytes for i in range(20)], "S16").view("V16")
    name = "https://example.com/zarr/uuid"
    options = dict(
        dtype=name,
        fill_value=np.void(UUID(int=7).bytes),
        grid={"name": "example.doubling", "configuration": {"first": 2}},
        chunk_key_encoding={"name": "example.padded", "configuration": {"width": 3}},
        storage_transformers=["example.sha256"],
        compressors=["example.invert"],
        extensions=[
            {
                "name": "https://example.com/zarr/array-statistics",
                "configuration": {"min": 1, "max": 2},
            }
        ],
    )
    x = da.from_array(uuid, chunks=6)
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, spawn) as pool, dask.config.set(scheduler="processes", pool=pool):
        zarrdask.to_zarr(x, "x.zarr", **options)
        found = zarrdask.from_zarr("x.zarr", chunks="stored")
        print(found.chunks, bool((found.compute() == uuid).all()))
    z = zarrdask.open("x.zarr")
    print(z.nchunks_stored(), z.metadata.data_type.to_json(), z.metadata.codecs[-1].name)
    zarrdask.to_zarr(da.ones(3), "scratch://y.zarr")
    print(zarrdask.open_array("scratch://y.zarr")[...])
"""


def install(folder):
    """Install a package of the page's definitions, with the entry points that it declares.

    Of a package of Python files, that is to write down what pip does.
    """
    code = "\n".join(
        block for block in BLOCKS if re.search(r"^(class|def|import|from) ", block, re.M)
    )
    groups = re.sub(r'^\[project\.entry-points\."(.*)"\]$', r"[\1]", DECLARED, flags=re.MULTILINE)
    points = re.sub(r'^"(.*)" = "(.*)"$', r"\1 = \2", groups, flags=re.MULTILINE)
    files = {
        "acme.py": code,
        "acme-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n",
        "acme-1.0.dist-info/entry_points.txt": points,
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def run(*command, folder, **variables):
    """Run a command in a folder, and return what it prints."""
    done = subprocess.run(
        command,
        check=False,
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_installed_package_extends_everything_by_name(tmp_path):
    site = tmp_path / "site"
    install(site)
    (tmp_path / "use.py").write_text(USE)
    paths = os.pathsep.join([str(site), str(ROOT), os.environ.get("PYTHONPATH", "")])
    printed = run(sys.executable, "use.py", folder=tmp_path, PYTHONPATH=paths).splitlines()
    assert printed == [
        "((2, 4, 8, 6),) True",
        "4 https://example.com/zarr/uuid example.invert",
        "[1. 1. 1.]",
    ]
    assert (tmp_path / "scratch" / "y.zarr" / "zarr.json").exists()
    keys = sorted(path.name for path in (tmp_path / "x.zarr").iterdir())
    assert keys == ["chunk-000", "chunk-001", "chunk-002", "chunk-003", "zarr.json"]


@for_each("block", [b for b in BLOCKS if re.search("^(class|def) ", b, re.M)])
def test_an_example_has_about_thirty_lines(block):
    body = block[re.search(r"^(@dataclass|class|def)", block, re.M).start() :]
    assert len([line for line in body.splitlines() if line.strip()]) <= 36


@pytest.mark.parametrize("target", ["no_such_module:X", "json:no_such_name"])
def test_a_package_that_can_not_be_loaded_is_an_error_that_names_what_is_missing(target):
    codecs = Registry("codec", "codecs", "zarrdask.codecs", {})
    codecs.__dict__["_installed"] = {"x": EntryPoint("x", target, "zarrdask.codecs")}
    with pytest.raises(UnsupportedError, match="no_such") as caught:
        codecs.find("x")
    assert (caught.value.key, caught.value.found) == ("codecs", "x")


def test_where_nothing_is_known_nothing_is_expected():
    extensions = Registry("extension", "extensions", "zarrdask.none", {})
    assert str(extensions.unknown("x")) == "extensions: unknown extension; found 'x'"


def test_a_built_in_name_that_is_loaded_is_listed_as_it_was_and_does_not_replace_a_users(
    monkeypatch,
):
    types = Registry("type", "type", "zarrdask.none", {"r*": "math:pi", "x": "math:pi"})
    assert (types.find("r8"), types.get("r16"), types.names()) == (math.pi, math.pi, ["r*", "x"])

    def meanwhile(module):
        types.register("x", "of a user")
        return math

    monkeypatch.setattr(extension, "import_module", meanwhile)
    assert (types.find("x"), types.find("x")) == ("of a user", "of a user")


@for_each(
    ("register_one", "registry"),
    [
        (register.data_type, "DATA_TYPES"),
        (register.chunk_grid, "GRIDS"),
        (register.chunk_key_encoding, "KEY_ENCODINGS"),
        (register.storage_transformer, "TRANSFORMERS"),
        (register.extension, "EXTENSIONS"),
        (register.store, "STORES"),
        (register.store_type, "ADAPTERS"),
    ],
)
def test_each_function_registers_in_its_registry(register_one, registry):
    value = object()
    register_one("example.one", value)
    registered = getattr(register, registry)
    assert registered.get("example.one") is value
