"""Large chunks of which little is needed are read in parts, and have the same elements."""

import math
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import zarrdask
from tests import selections
from tests.covering import for_each
from zarrdask.arrays.chunks import fetch_chunks
from zarrdask.arrays.chunks.fetch_chunks import divided_axes
from zarrdask.arrays.nodes.array import chunks_of
from zarrdask.errors import ChunkNotFoundError, CodecError
from zarrdask.formats.indexing.selection import whole_region
from zarrdask.storage.local.open_file import OpenFile

SHAPE, CHUNKS = (70, 50, 60), (48, 50, 40)
VALUES = np.arange(math.prod(SHAPE), dtype="f4").reshape(SHAPE)
NOISE = np.random.default_rng(0).standard_normal(SHAPE, dtype="f4")


def blosc(cname="zstd", shuffle="shuffle", blocksize=9000, typesize=4, clevel=5):
    options = {"cname": cname, "clevel": clevel, "shuffle": shuffle}
    return {
        "name": "blosc",
        "configuration": options | {"blocksize": blocksize, "typesize": typesize},
    }


@pytest.fixture(scope="module", autouse=True)
def small_chunks_in_parts():
    """Read parts of chunks of a few hundred KiB, so that tests need no larger ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fetch_chunks, "MIN_COMPRESSED_BYTES", 2**17)
        patch.setattr(fetch_chunks, "MIN_PLAIN_BYTES", 2**17)
        yield


@pytest.fixture(scope="module")
def arrays(tmp_path_factory):
    """Arrays in directories, by the properties of their chunks."""
    made = {}

    def get(**options):
        key = repr(options)
        if key not in made:
            url = tmp_path_factory.mktemp("array")
            z = zarrdask.create_array(url, shape=SHAPE, chunks=CHUNKS, dtype="f4", **options)
            z[...] = VALUES
            made[key] = z
        return made[key]

    return get


picks = selections.basic(SHAPE, newaxis=False)
narrow = st.tuples(*(st.integers(0, n - 1).map(lambda a: slice(a, a + 2)) for n in SHAPE))
positions = st.tuples(*(st.lists(st.integers(0, n - 1), min_size=1, max_size=3) for n in SHAPE))

LAYOUTS = {
    "raw": {"compressors": []},
    "raw F": {"compressors": [], "order": "F"},
    "raw v2 F": {"compressors": [], "zarr_format": 2, "order": "F"},
    "zstd": {"compressors": [blosc()]},
    "lz4 bits": {"compressors": [blosc("lz4", "bitshuffle", 0)]},
    "blosclz 3": {"compressors": [blosc("blosclz", "shuffle", 70000, 3)]},
    "copied": {"compressors": [blosc(clevel=0)]},
    "zlib F": {"compressors": [blosc("zlib", "noshuffle", 5001, 1)], "order": "F"},
    "lz4hc 255": {"compressors": [blosc("lz4hc", "shuffle", 66000, 255)]},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LAYOUTS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(index=st.one_of(picks, narrow), rows=positions)
def test_every_selection_is_that_of_numpy(arrays, name, index, rows):
    z = arrays(**LAYOUTS[name])
    np.testing.assert_array_equal(z[index], VALUES[index])
    np.testing.assert_array_equal(z.oindex[rows], VALUES[np.ix_(*rows)])
    points = tuple(np.resize(each, 3) for each in rows)
    np.testing.assert_array_equal(z.vindex[points], VALUES[points])


def stored(url, values, **options):
    """An array with one chunk."""
    z = zarrdask.create_array(
        url, shape=values.shape, chunks=values.shape, dtype=values.dtype, **options
    )
    z[...] = values
    return z


def fetched(read):
    with zarrdask.measured() as m:
        values = read()
    return values, m.bytes_fetched


@pytest.mark.slow
@for_each("index", [np.s_[3, :2, 5:9], np.s_[5, 7], np.s_[47:51, 9, 9]])
@for_each("name", ["raw", "zstd", "copied"])
def test_narrow_reads_fetch_little(arrays, name, index):
    z = arrays(**LAYOUTS[name])
    values, size = fetched(lambda: z[index])
    np.testing.assert_array_equal(values, VALUES[index])
    assert 0 < size < fetched(lambda: z[:48, :, :40])[1] / 2


def test_rows_far_from_each_other_are_read_by_themselves(tmp_path):
    values = np.arange(12 * 40_000).astype("u1").reshape(12, 40_000)
    z = stored(tmp_path, values, compressors=[])
    found, size = fetched(lambda: z[0:3:2, 5:9])
    np.testing.assert_array_equal(found, values[0:3:2, 5:9])
    assert size == 2 * 4
    points = np.array([11, 7, 7]), np.array([1, 3, 4])
    found, size = fetched(lambda: z.vindex[points])
    np.testing.assert_array_equal(found, values[points])
    assert size == 3


def test_whole_chunks_are_read_by_one_request_each(arrays):
    z = arrays(**LAYOUTS["zstd"])
    with zarrdask.measured() as m:
        np.testing.assert_array_equal(z[:48, :, :40], VALUES[:48, :, :40])
    assert m.requests["GET"] == 1


def test_missing_chunks_are_the_fill_value_or_an_error(tmp_path):
    options = {"shape": SHAPE, "chunks": SHAPE, "dtype": "f4", "fill_value": 7}
    z = zarrdask.create_array(tmp_path, compressors=[], **options)
    assert (z[3, 4] == 7).all()
    with pytest.raises(ChunkNotFoundError):
        zarrdask.open_array(tmp_path, missing="error")[3, 4]


@for_each("codec", [None, blosc(), blosc(clevel=0)])
@for_each("cut", [0, 3, 20, -1, None])
def test_a_value_of_another_length_is_an_error(codec, cut):
    with TemporaryDirectory() as place:
        z = stored(place, VALUES, compressors=[codec] if codec else [])
        chunk = Path(place, "c/0/0/0")
        data = chunk.read_bytes()
        chunk.write_bytes(data + b"0" if cut is None else data[:cut])
        with pytest.raises(CodecError, match="c/0/0/0"):
            z[3, 4, 5:7]


@pytest.mark.slow
@given(number=st.integers(0, 2**32 - 1), place=st.integers(0, 60))
def test_a_hostile_header_gives_an_error_of_ours_or_elements(hostile, number, place):
    z, chunk, data = hostile
    chunk.write_bytes(data[:place] + number.to_bytes(4, "little") + data[place + 4 :])
    with suppress(CodecError):
        assert z[3, 4, 5:7].shape == (2,)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    url = tmp_path_factory.mktemp("hostile")
    z = stored(url, VALUES, compressors=[blosc()])
    chunk = url / "c/0/0/0"
    return z, chunk, chunk.read_bytes()


def test_an_older_version_that_is_open_is_read_to_its_end(tmp_path, monkeypatch):
    z = stored(tmp_path, VALUES, compressors=[blosc()])
    part = OpenFile.part

    def replaced(file, start, length):
        head = part(file, start, length)
        monkeypatch.undo()
        z[...] = NOISE
        return head

    monkeypatch.setattr(OpenFile, "part", replaced)
    monkeypatch.setattr(fetch_chunks, "MIN_COMPRESSED_BYTES", 2**17)
    np.testing.assert_array_equal(z[3, 4, 5:7], VALUES[3, 4, 5:7])
    np.testing.assert_array_equal(z[3, 4, 5:7], NOISE[3, 4, 5:7])


def lengths(axes):
    return None if axes is None else tuple(axis.longest for axis in axes)


def test_the_parts_of_chunks_are_known_before_they_are_read(arrays):
    whole = zarrdask.create_array({}, shape=SHAPE, chunks=CHUNKS, dtype="f4")
    region = whole_region(SHAPE)
    assert lengths(divided_axes(chunks_of(whole), region)) is None
    assert lengths(divided_axes(chunks_of(arrays(**LAYOUTS["raw"])), region)) == (6, 50, 40)
    assert lengths(divided_axes(chunks_of(arrays(**LAYOUTS["raw F"])), region)) == (48, 50, 4)
    zstd = chunks_of(arrays(**LAYOUTS["zstd"]))
    assert lengths(divided_axes(zstd, region)) == (6, 50, 40)
    narrow = (slice(50, 60, 1), *region[1:])
    assert [axis.size for axis in divided_axes(zstd, narrow)] == [10, 50, 60]


@pytest.mark.slow
def test_a_rewrite_reads_parts_of_chunks(tmp_path):
    values = np.arange(8 * 512 * 512).astype("u1").reshape(8, 512, 512)
    moved = {}
    for name, compressors in (("zstd", "zstd"), ("raw", [])):
        options = {"shape": values.shape, "chunks": (1, 512, 512), "dtype": "u1"}
        z = zarrdask.create_array(tmp_path / name, compressors=compressors, **options)
        z[...] = values
        plan = zarrdask.rechunk(
            z, {}, chunks=(8, 64, 512), max_mem="1 MiB", scheduler="sync", compressors=[]
        )
        moved[name] = plan.by("one pass").scheme.moved
    assert moved["raw"] == 2 * values.nbytes < moved["zstd"]
    with zarrdask.measured() as m:
        found = plan.execute(progress=False)
    np.testing.assert_array_equal(found[...], values)
    assert values.nbytes <= m.bytes_fetched < 1.1 * values.nbytes
