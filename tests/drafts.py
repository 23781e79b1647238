"""Documents of the v3 draft as its text and real writers have them, and stores made of them."""

import struct

from tests.documents import dump

CORE = "https://purl.org/zarr/spec/core/3.0"
OLDER = "https://purl.org/zarr/spec/protocol/core/3.0"
JSON = {"type": "json", "metadata_key_suffix": ".json"}
ENTRY = {"zarr_format": CORE, "metadata_encoding": JSON, "extensions": []}
OLDER_ENTRY = {
    "zarr_format": OLDER,
    "metadata_encoding": OLDER,
    "metadata_key_suffix": ".json",
    "extensions": [],
}
CODEC = "https://purl.org/zarr/spec/codecs/{}/1.0"
OLDER_CODEC = "https://purl.org/zarr/spec/codec/{}/1.0"
SHARDING = "https://purl.org/zarr/spec/storage_transformers/sharding/1.0"
DATETIME = "https://purl.org/zarr/spec/extensions/data-types/datetime/1.0"
STRING = "https://purl.org/zarr/spec/extensions/data-types/string/1.0"
STRUCT = "https://purl.org/zarr/spec/extensions/data-types/struct/1.0"
NOBODY = "https://example.org/zarr/extensions/nobody/1.0"


def array(shape=(4,), chunk_shape=(2,), data_type="uint16", fill_value=0, separator="/", **others):
    """Return a valid array document."""
    return {
        "shape": list(shape),
        "data_type": data_type,
        "chunk_grid": {
            "type": "regular",
            "chunk_shape": list(chunk_shape),
            "separator": separator,
        },
        "chunk_memory_layout": "C",
        "fill_value": fill_value,
        "extensions": [],
        "attributes": {},
        **others,
    }


def older(shape=(4,), chunk_shape=(2,), data_type="<u2", fill_value=0, **others):
    """Return a valid array document of the older dialect."""
    return array(shape, chunk_shape, data_type, fill_value, **others)


def hierarchy(documents=None, entry=ENTRY, chunks=None):
    """Return a store with a hierarchy: documents by key below ``meta/``, chunks below ``data/``."""
    held = {f"meta/{key}.json": dump(found) for key, found in (documents or {}).items()}
    found = {f"data/{key}": bytes(data) for key, data in (chunks or {}).items()}
    return {"zarr.json": dump(entry), **held, **found}


def stored(document=None, chunks=None, entry=ENTRY):
    """Return a store with one array, at ``a``, in the dialect of the entry point."""
    root = "root/" if entry["zarr_format"] == OLDER else ""
    data = {f"{root}a/{key}": value for key, value in (chunks or {}).items()}
    return hierarchy({f"{root}a.array": array() if document is None else document}, entry, data)


def codec(name, **configuration):
    """Return an item of ``codecs``."""
    return {"type": CODEC.format(name)} | (
        {"configuration": configuration} if configuration else {}
    )


def compressor(name, **configuration):
    """Return a ``compressor`` of the older dialect."""
    return {"codec": OLDER_CODEC.format(name), "configuration": configuration}


def sharding(*chunks_per_shard, extension=SHARDING, kind="indexed"):
    """Return an item of ``storage_transformers``."""
    return {
        "extension": extension,
        "type": kind,
        "configuration": {"chunks_per_shard": list(chunks_per_shard)},
    }


def index(*entries):
    """Return the index of a shard: (offset, size) of each chunk, or None for an empty one."""
    flat = [n for entry in entries for n in (entry or (2**64 - 1, 2**64 - 1))]
    return struct.pack(f"<{len(flat)}Q", *flat)
