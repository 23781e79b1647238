"""References in Parquet that kerchunk and VirtualiZarr write are read like the file itself."""

import subprocess
from pathlib import Path

import numpy as np
import pytest

import zarrdask
from tests.interop.peers.environments import python_of

FILE = """
import h5py, numpy as np
with h5py.File("data.h5", "w") as file:
    file.create_dataset("x", data=np.arange(1200.0).reshape(40, 30), chunks=(4, 7))
    file.create_dataset("label", data=np.arange(40, dtype="i1"))
"""
KERCHUNK = """
import kerchunk.df, kerchunk.hdf
refs = kerchunk.hdf.SingleHdf5ToZarr("data.h5", inline_threshold=100).translate()
kerchunk.df.refs_to_dataframe(refs, "refs.parq", record_size=7)
"""
#: As fsspec writes them chunk by chunk, which is what kerchunk's `MultiZarrToZarr` does.
APPENDED = """
import kerchunk.hdf
from fsspec.implementations.reference import LazyReferenceMapper
out = LazyReferenceMapper.create("refs.parq", record_size=9, engine="pyarrow")
refs = kerchunk.hdf.SingleHdf5ToZarr("data.h5").translate()["refs"]
for key in sorted(refs, key=lambda key: ".z" not in key):
    out[key] = refs[key]
out.flush()
"""
VIRTUALIZARR = """
import os, virtualizarr
from obspec_utils.registry import ObjectStoreRegistry
from obstore.store import LocalStore
url = f"file://{os.path.abspath('data.h5')}"
data = virtualizarr.open_virtual_dataset(
    url,
    registry=ObjectStoreRegistry({"file://": LocalStore()}),
    parser=virtualizarr.parsers.HDFParser(),
    loadable_variables=["label"],
)
data.vz.to_kerchunk("refs.parq", format="parquet", record_size=11)
"""


@pytest.mark.parametrize("script", [KERCHUNK, APPENDED, VIRTUALIZARR])
def test_references_in_parquet_are_read(tmp_path: Path, monkeypatch, setting, script) -> None:
    python = python_of("kerchunk")
    subprocess.run([python, "-c", FILE + script], cwd=tmp_path, check=True)
    setting({"zarrdask.local-references": True})
    monkeypatch.chdir(tmp_path)  # kerchunk's paths are relative
    options = {"fo": str(tmp_path / "refs.parq")}
    group = zarrdask.open_group("reference://", storage_options=options)
    assert sorted(group) == ["label", "x"]
    np.testing.assert_array_equal(group["x"][...], np.arange(1200.0).reshape(40, 30))
    np.testing.assert_array_equal(group["label"][...], np.arange(40))
    assert group["x"].nchunks_stored() == 50
    x = zarrdask.from_zarr("reference://", "x", storage_options=options)
    assert x.sum().compute() == 1200 * 1199 / 2
