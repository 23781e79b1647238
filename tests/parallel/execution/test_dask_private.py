"""The parts of Dask that are not public are all here, and are not needed for correct results."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from dask import _task_spec
from dask.callbacks import Callback
from distributed import Client

from zarrdask.parallel.execution import dask_private as private

PACKAGE = Path(private.__file__).parents[2]
#: In a process of its own, where the function of fused tasks is unknown.
WITHOUT = """
import sys
from dask import _task_spec
function = vars(_task_spec).pop("_execute_subgraph")
import zarrdask.parallel.execution.dask_private
_task_spec._execute_subgraph = function
import dask
import dask.array as da, numpy as np, zarrdask

z = zarrdask.create_array(sys.argv[1], "z", shape=(64, 64), dtype="i4", chunks=4)
z[...] = values = np.arange(64 * 64).reshape(64, 64)
x = zarrdask.from_zarr(z, chunks="stored")
assert x.sum().compute() == values.sum()
zarrdask.to_zarr(x[::-1] + x.T + 1, sys.argv[1], "y", chunks=5)
y = zarrdask.open_array(sys.argv[1], "y")[...]
np.testing.assert_array_equal(y, values[::-1] + values.T + 1)
try:
    zarrdask.to_zarr(dask.optimize(x[16:48] + 1)[0], z, region=np.s_[:32])
except zarrdask.errors.SelectionError:
    pass
else:
    raise AssertionError("the array was overwritten while it was read")
"""


@pytest.fixture
def client(cluster):
    with Client(cluster) as client:
        yield client


def test_no_other_module_uses_what_is_private():
    names = r"(?:dask|distributed)[\w.]*"
    private_import = rf"^\s*(?:from {names}\._|from {names} import .*\b_|import {names}\._)"
    pattern = re.compile(private_import, re.MULTILINE)
    found = [
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if pattern.search(path.read_text())
    ]
    assert found == ["parallel/execution/dask_private.py"]


def test_this_release_of_dask_has_each_part(client):
    graph = {"a": private.DataNode("a", 1), "b": private.Task("b", abs, private.TaskRef("a"))}
    assert private.convert_legacy_graph(graph) == private.as_it_is(graph) == graph
    assert private.convert_legacy_task("b", graph["b"], ()) is private.as_node("b", graph["b"], ())
    assert private.fuse_linear_task_spec is _task_spec.fuse_linear_task_spec
    assert private.execute_subgraph is _task_spec._execute_subgraph
    assert client._scheduler_identity["total_threads"] == private.total_threads(client)
    assert len(private.callback_functions(Callback())) == 5


def test_results_are_correct_without_what_is_not_needed(tmp_path):
    command = [sys.executable, "-c", WITHOUT, str(tmp_path)]
    run = subprocess.run(command, cwd=PACKAGE.parent, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
