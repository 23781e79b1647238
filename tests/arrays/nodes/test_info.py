"""What arrays and groups tell of themselves."""

import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from zarrdask.arrays.nodes.info import Info

LAYOUTS = {
    "default": ({}, "C", [], ["zstd"]),
    "F": ({"order": "F", "compressors": ["gzip", "crc32c"]}, "F", [], ["gzip", "crc32c"]),
    "shards": ({"shards": (6, 4), "chunks": (3, 2), "order": "F"}, "F", [], ["zstd"]),
    "none": ({"compressors": []}, "C", [], []),
    "filters": (
        {"filters": {"name": "bitround", "configuration": {"keepbits": 4}}},
        "C",
        ["bitround"],
        ["zstd"],
    ),
    "F filters": (
        {"order": "F", "filters": {"name": "bitround", "configuration": {"keepbits": 4}}},
        "F",
        ["bitround"],
        ["zstd"],
    ),
    "v2": (
        {"zarr_format": 2, "filters": {"id": "delta", "dtype": "<f4"}, "compressors": "zlib"},
        "C",
        ["delta"],
        ["numcodecs.zlib"],
    ),
    "v2 F": ({"zarr_format": 2, "order": "F", "compressors": {"id": "bz2"}}, "F", [], ["bz2"]),
    "v2 none": (
        {"zarr_format": 2, "filters": {"id": "shuffle"}, "compressors": []},
        "C",
        ["shuffle"],
        [],
    ),
    "draft": ({"zarr_format": "v3-draft", "order": "F"}, "F", [], ["blosc"]),
}


def create(**options):
    return zarrdask.create_array({}, **{"shape": (6, 4), "dtype": "f4", "chunks": (3, 2)} | options)


@for_each(("options", "order", "filters", "compressors"), LAYOUTS.values())
def test_codecs_as_create_array_takes_them(options, order, filters, compressors):
    z = create(**options)
    assert z.order == order
    assert [codec.name.removeprefix("numcodecs.") for codec in z.filters] == filters
    names = [codec.name for codec in z.compressors]
    assert [name.split(".")[-1] for name in names] == [name.split(".")[-1] for name in compressors]
    again = create(
        zarr_format=z.zarr_format,
        shards=z.shards,
        order=z.order,
        filters=z.filters,
        compressors=z.compressors,
    )
    assert again.metadata == z.metadata


def test_read_only():
    z = create()
    assert not z.read_only
    assert zarrdask.open_array(z.store).read_only


@pytest.mark.parametrize("options", [{}, {"shards": (6, 2)}, {"zarr_format": 2}])
def test_bytes_that_are_stored(tmp_path, options):
    z = zarrdask.create_array(
        tmp_path, shape=(6, 4), dtype="f4", chunks=(3, 2), compressors=[], **options
    )
    assert z.nbytes_stored() == 0
    z[:, :2] = 1
    files = [file for file in tmp_path.rglob("*") if file.is_file() and "z" not in file.name]
    assert z.nbytes_stored() == sum(file.stat().st_size for file in files) >= 48
    in_memory = create(compressors=[])
    in_memory[:3, :2] = 1
    assert in_memory.nbytes_stored() == 24


def test_info_of_an_array():
    z = create(dimension_names=("<y>", None), attributes={"units": "K"})
    rows = dict(z.info.rows)
    assert rows["shape"] == "(6, 4)"
    assert rows["chunks"] == "(3, 2), 4 of them"
    assert rows["dimensions"] == "<y>, -"
    assert rows["attributes"] == "1"
    assert "zstd" in rows["codecs"]
    assert "shards" not in rows
    sharded = dict(create(shards=(6, 2)).info.rows)
    assert (sharded["chunks"], sharded["shards"]) == ("(3, 2), 4 of them", "(6, 2), 2 of them")
    assert "dtype       float32" in str(z.info).splitlines()
    assert repr(z.info) == str(z.info)
    assert "&lt;y&gt;" in z.info._repr_html_()


def test_info_of_a_group():
    group = zarrdask.create_group({}, zarr_format=2)
    group.create_array("a", shape=(), dtype=np.int8)
    assert dict(group.info.rows)["members"] == "1"
    assert dict(group.info.rows)["  a"] == "() int8, 1 B, 1 chunk ()"
    assert dict(group.info.rows)["format"] == "Zarr v2"
    assert str(Info(())) == ""


def test_the_repr_names_the_data_type_of_text():
    text = zarrdask.create_array({}, shape=5, dtype="string", chunks=2)
    assert "(5,) string, chunks=(2,)" in repr(text)
