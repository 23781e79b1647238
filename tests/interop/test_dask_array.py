"""The package dask-array, where it makes xarray's arrays."""

import subprocess
import sys
from pathlib import Path

from tests.xarray.samples import write_sample

ROOT = Path(__file__).parents[2]
#: In a process of its own: the package replaces a manager of xarray for good.
CODE = """
import sys
import dask_array, dask_array.xarray
import numpy as np
from zarrdask.xarray import open_zarr
import dask.array

place = sys.argv[1]
assert type(open_zarr(place).t.data) is dask.array.Array
dask_array.xarray.register()
ds = open_zarr(place)
values = open_zarr(place, chunks=None).t.values
assert isinstance(ds.t.data, dask_array.Array)
np.testing.assert_array_equal(ds.t.compute(), values)
np.testing.assert_array_equal(ds.t.isel(time=3, y=[4, 1]).compute(), values[3, [4, 1]])
np.testing.assert_allclose(ds.t.mean("time").compute(), np.nanmean(values, axis=0))
np.testing.assert_array_equal((ds.t - ds.height).compute(), values - 2)
"""


def test_its_arrays_are_made_where_it_is_registered(tmp_path):
    write_sample(tmp_path)
    command = [sys.executable, "-W", "ignore", "-c", CODE, str(tmp_path)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
