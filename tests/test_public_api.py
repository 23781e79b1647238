"""What is public, and what it costs to import."""

import json
import subprocess
import sys

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
    "compare",
    "consolidate_metadata",
    "copy",
    "create_array",
    "create_group",
    "from_zarr",
    "inventory",
    "map_overlap",
    "open",
    "open_array",
    "open_group",
    "plan_read",
    "plan_write",
    "pyramid",
    "read_many",
    "rechunk",
    "rechunked",
    "to_zarr",
    "update_pyramid",
    "upgrade",
    "verify",
]
SUBMODULES = [
    *("codecs", "conventions", "dtypes", "errors", "grids", "register", "storage", "testing")
]
HEAVY = ["dask", "distributed", "fsspec", "zarr", "dask.array", "tensorstore"]


def imported_by(code):
    """Return which heavy modules a fresh Python has after running some code."""
    code = f"import json, sys\n{code}\nprint(json.dumps([m for m in {HEAVY} if m in sys.modules]))"
    run = subprocess.run(  # noqa: PLW1510 - the output says more than a status
        [sys.executable, "-W", "error::ImportWarning", "-c", code], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def test_public_names():
    assert sorted(zarrdask.__all__) == PUBLIC


@for_each("name", [*PUBLIC, *SUBMODULES])
def test_each_public_name_is_there_and_listed(name):
    assert getattr(zarrdask, name).__doc__
    assert name in dir(zarrdask)


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


def test_importing_zarrdask_imports_nothing_heavy():
    assert imported_by("import zarrdask") == []


def test_opening_a_local_array_imports_nothing_heavy(tmp_path):
    zarrdask.create_array(tmp_path, shape=(4,), dtype="i4")
    code = f"import zarrdask\nz = zarrdask.open_array({str(tmp_path)!r})\nassert z.shape == (4,)"
    assert imported_by(code) == []


def test_from_zarr_of_a_local_array_imports_what_it_needs(tmp_path):
    zarrdask.create_array(tmp_path, shape=(4,), dtype="i4")
    others = ["click", "distributed", "fsspec", "ml_dtypes", "obstore", "rich", "tqdm", "xarray"]
    others += [f"zarrdask.{name}" for name in ("rewrite", "verification", "conventions", "xarray")]
    others += ["zarr", "zfpy", "zarrdask.parallel.graph.to_zarr"]
    code = (
        f"import sys, dask.array\nbefore = set(sys.modules)\nimport zarrdask\n"
        f"zarrdask.from_zarr({str(tmp_path)!r}).source[1:]\n"
        f"print(*sorted((set(sys.modules) - before).intersection({others})))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (run.stdout.split(), run.stderr) == ([], "")
