"""Dask's array expressions, which have to be switched on before dask.array is imported."""

import subprocess
import sys
import textwrap

SCRIPT = """
    import dask
    dask.config.set({"array.query-planning": True})
    import dask.array as da
    import numpy as np
    import pytest
    import zarrdask

    assert "_array_expr" in da.Array.__module__
    values = np.arange(3000).reshape(60, 50)
    z = zarrdask.create_array(PLACE, "a", shape=values.shape, dtype="i8", chunks=10)
    z[...] = values
    x = zarrdask.from_zarr(PLACE, "a", chunks=20)
    assert (x.compute() == values).all()
    assert (x[3:8, 5:7].compute() == values[3:8, 5:7]).all()
    assert x[7].sum().compute() == values[7].sum()
    assert (zarrdask.from_zarr(z, region=np.s_[5:9, ::-1]).compute() == values[5:9, ::-1]).all()
    halos = zarrdask.map_overlap(lambda v: v * 2, z, depth=3, boundary="reflect", blocks="stored")
    assert (halos.compute() == values * 2).all()
    zarrdask.to_zarr(x + 1, PLACE, "b", chunks=(7, 13))
    assert (zarrdask.open_array(PLACE, "b")[...] == values + 1).all()
    zarrdask.to_zarr(x, PLACE, "c", chunks=(7, 13), compute=False).compute()
    assert (zarrdask.open_array(PLACE, "c")[...] == values).all()
    y = zarrdask.to_zarr(x + 2, PLACE, "d", compute=False, return_stored=True)
    assert (y.compute() == values + 2).all()
    zarrdask.append(x * 2, PLACE, "d")
    assert (zarrdask.open_array(PLACE, "d")[60:] == values * 2).all()
    zarrdask.rechunk(x - 1, PLACE, component="e", chunks=(9, 50)).execute(progress=False)
    assert (zarrdask.open_array(PLACE, "e")[...] == values - 1).all()
    columns = zarrdask.rechunked(da.from_array(values, chunks=(4, 50)) + 1, (60, 3))
    assert columns.chunks[0] == (60,)
    assert (columns.sum(0).compute() == (values + 1).sum(0)).all()
    with pytest.raises(zarrdask.errors.SelectionError, match="reads"):
        zarrdask.to_zarr(x[10:], z, region=np.s_[:50])
    zarrdask.to_zarr(x[::-1], z)
    assert (z[...] == values[::-1]).all()
    for each in (x + 1, y, halos, columns):
        assert isinstance(each, da.Array)
    print("all right")
"""


def test_reading_and_writing_with_array_expressions(tmp_path):
    script = textwrap.dedent(SCRIPT).replace("PLACE", repr(str(tmp_path)))
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=120
    )
    assert found.stdout.strip() == "all right", found.stderr
