"""Metadata documents as other software would write them, and stores made of bytes."""

import json
import struct

import google_crc32c
import numpy as np

LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
BIG = {"name": "bytes", "configuration": {"endian": "big"}}
CRC32C = {"name": "crc32c"}
EMPTY = 2**64 - 1


def v3(shape=(4,), chunk_shape=(2,), data_type="uint16", fill_value=0, codecs=(LITTLE,), **others):
    """Return a valid v3 array document; ``name=None`` in `others` is kept as null."""
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(shape),
        "data_type": data_type,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunk_shape)}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": fill_value,
        "codecs": list(codecs),
        **others,
    }


def rectilinear(lengths):
    """Return the metadata of a grid whose chunks have these lengths along each axis."""
    configuration = {"kind": "inline", "chunk_shapes": [list(axis) for axis in lengths]}
    return {"name": "rectilinear", "configuration": configuration}


def v2(shape=(4,), chunks=(2,), dtype="<u2", fill_value=0, **others):
    """Return a valid v2 array document."""
    return {
        "zarr_format": 2,
        "shape": list(shape),
        "chunks": list(chunks),
        "dtype": dtype,
        "compressor": None,
        "fill_value": fill_value,
        "order": "C",
        "filters": None,
        **others,
    }


def without(document, member):
    """Return a document that lacks a member."""
    return {name: value for name, value in document.items() if name != member}


def dump(document):
    """Return a document's bytes."""
    return json.dumps(document).encode()


def stored(document, chunks=None, attributes=None):
    """Return a store with one array at its root."""
    name = "zarr.json" if document["zarr_format"] == 3 else ".zarray"
    store = {name: dump(document), **(chunks or {})}
    if attributes is not None:
        store[".zattrs"] = dump(attributes)
    return store


def named(name, **members):
    """Return the metadata of a codec, or of something else with a name and a configuration."""
    return {"name": name, "configuration": members}


def sharding(chunk_shape, codecs=(LITTLE,), index_codecs=(LITTLE, CRC32C), **others):
    """Return the metadata of a sharding codec."""
    configuration = {
        "chunk_shape": list(chunk_shape),
        "codecs": list(codecs),
        "index_codecs": list(index_codecs),
        **others,
    }
    return {"name": "sharding_indexed", "configuration": configuration}


def crc32c(data):
    """Return the checksum of data, as it stands after them."""
    return google_crc32c.value(bytes(data)).to_bytes(4, "little")


def shard_index(*entries, checksum=True):
    """Return the bytes of a shard index made of (offset, size) pairs, or None for empty ones."""
    flat = [n for entry in entries for n in (entry or (EMPTY, EMPTY))]
    data = struct.pack(f"<{len(flat)}Q", *flat)
    return data + crc32c(data) if checksum else data


def zstd_frame(data, *, sized=True):
    """Return a Zstandard frame (RFC 8878) of one raw block; its header may leave out the size."""
    head = bytes([0x20, len(data)]) if sized else b"\x00\x00"
    return b"\x28\xb5\x2f\xfd" + head + (len(data) << 3 | 1).to_bytes(3, "little") + data


def zstd_bomb(size, *, states=None):
    """Return a small Zstandard frame that decodes to `size` zeros, in run-length blocks.

    `states` is the content size that its header gives; none by default.
    """
    window = 17 - 10 << 3  # 128 KiB
    if states is None:
        head = bytes([0x00, window])
    else:
        head = bytes([0xC0, window]) + states.to_bytes(8, "little")
    frame = b"\x28\xb5\x2f\xfd" + head
    while size:
        run = min(size, 2**17)
        size -= run
        frame += (run << 3 | 0b010 | (not size)).to_bytes(3, "little") + b"\0"
    return frame


def blosc_frame(data, *, states=None):
    """Return a Blosc frame that holds its data as they are (flag "memcpyed")."""
    size = len(data) if states is None else states
    return struct.pack("<BBBBIII", 2, 1, 2, 1, size, size, 16 + len(data)) + data


def same(found, expected):
    """Check that two arrays are equal in shape, type (but for byte order) and every bit."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    assert found.dtype.newbyteorder("=") == expected.dtype.newbyteorder("=")
    if expected.dtype.hasobject:
        assert found.tolist() == expected.tolist()
    else:
        assert found.astype(expected.dtype).tobytes() == expected.tobytes()
