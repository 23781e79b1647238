"""zarrdask and the newest zarr-python read what the other writes: what the older one lacks."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrdask
from tests.interop.extensions import CASES, document
from tests.interop.shared import (
    CHUNKS,
    SHAPES,
    SHARDS,
    V3_DTYPES,
    V3_SHARDS,
    same,
    sample,
    v3_codecs,
)


def check(found: Any, values: np.ndarray) -> None:
    if values.dtype.hasobject:
        assert np.asarray(found).tolist() == values.tolist()
    else:
        same(found, values)


@pytest.mark.parametrize(("values", "document"), CASES.values(), ids=CASES)
class TestExtensions:
    def test_zarrdask_reads(self, tmp_path, ours, newest, values, document):
        newest.write(values, tmp_path / "x", document=document)
        check(ours.read(tmp_path / "x"), values)

    def test_the_newest_reads(self, tmp_path, ours, newest, values, document):
        (tmp_path / "zarr.json").write_text(json.dumps(document))
        ours.update(values, tmp_path, tuple(slice(0, n) for n in values.shape))
        check(newest.read(tmp_path), values)

    def test_the_newest_reads_the_document_that_zarrdask_renders(
        self, tmp_path, newest, values, document
    ):
        newest.write(values, tmp_path / "x", document=document)
        zarrdask.open_array(tmp_path / "x", mode="r+").attrs["late"] = 2
        found, facts = newest.look(tmp_path / "x")
        check(found, values)
        assert facts["attributes"] == {"late": 2}


# --------------------------------------------------------------------------------------------
# What both have had for long


@pytest.mark.parametrize("dtype", V3_DTYPES)
def test_the_newest_reads_data_types(tmp_path, ours, newest, dtype):
    ours.write(sample(dtype), tmp_path, chunks=CHUNKS)
    same(newest.read(tmp_path), sample(dtype))


@pytest.mark.parametrize("name", v3_codecs(1))
class TestCodecs:
    def test_zarrdask_reads(self, tmp_path, ours, newest, name):
        values = sample("float64")
        newest.write(
            values, tmp_path / "x", document=document(values, "float64", v3_codecs(8)[name])
        )
        same(ours.read(tmp_path / "x"), values)

    def test_the_newest_reads(self, tmp_path, ours, newest, name):
        ours.write(sample("float64"), tmp_path, chunks=CHUNKS, codecs=v3_codecs(8)[name])
        same(newest.read(tmp_path), sample("float64"))


@pytest.mark.parametrize("name", V3_SHARDS)
class TestShards:
    def test_zarrdask_reads(self, tmp_path, ours, newest, name):
        values = sample("float32")
        found = document(values, "float32", V3_SHARDS[name], SHARDS)
        newest.write(values, tmp_path / "x", document=found)
        same(ours.read(tmp_path / "x"), values)

    def test_the_newest_reads(self, tmp_path, ours, newest, name):
        ours.write(sample("float32"), tmp_path, chunks=SHARDS, codecs=V3_SHARDS[name])
        same(newest.read(tmp_path), sample("float32"))


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize(("shape", "chunks", "shards"), SHAPES.values(), ids=SHAPES)
def test_the_newest_reads_shapes(tmp_path, ours, newest, zarr_format, shape, chunks, shards):
    layout = {"chunks": chunks, "zarr_format": zarr_format}
    if zarr_format == 3:
        layout["shards"] = shards
    ours.write(sample("float64", shape), tmp_path, **layout)
    same(newest.read(tmp_path), sample("float64", shape))


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_the_newest_reads_hierarchies(tmp_path: Path, newest, zarr_format):
    root = zarrdask.create_group(tmp_path, zarr_format=zarr_format)
    root.create_group("a", attributes={"た": [1, None]})
    root.create_array("a/x", shape=(4,), dtype="i4", attributes={"units": "K"})
    found = newest.call("tree", place=str(tmp_path))
    assert found == {"a": {"た": [1, None]}, "a/x": {"units": "K"}}
