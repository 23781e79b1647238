"""zarr-python 2.18, with v2 and with its experimental v3: an old dialect of the draft."""

import os

os.environ["ZARR_V3_EXPERIMENTAL_API"] = os.environ["ZARR_V3_SHARDING"] = "1"

from typing import Any

import numcodecs
import numpy as np
import zarr
from serve import serve
from zarr._storage.v3 import DirectoryStoreV3
from zarr._storage.v3_storage_transformers import ShardingStorageTransformer
from zarr.storage import DirectoryStore, ZipStore


def store_of(place: str, draft: bool) -> Any:
    if place.endswith(".zip"):
        return ZipStore(place, mode="a")
    return DirectoryStoreV3(place) if draft else DirectoryStore(place)


def codec(config: dict[str, Any] | None) -> Any:
    return None if config is None else numcodecs.get_codec(config)


def write(
    place: str,
    name: str | None,
    values: str,
    *,
    draft: bool = False,
    fill: str | None = None,
    compressor: dict[str, Any] | None = None,
    filters: list[dict[str, Any]] | None = None,
    object_codec: dict[str, Any] | None = None,
    chunks_per_shard: list[int] | None = None,
    attributes: dict[str, Any] | None = None,
    rows: tuple[int | None, int | None] = (None, None),
    **options: Any,
) -> None:
    """Create an array (the root, without a name) and write its values, or just some rows."""
    found = np.load(values, allow_pickle=True)
    store = store_of(place, draft)
    if chunks_per_shard is not None:
        sharding = ShardingStorageTransformer("indexed", chunks_per_shard=tuple(chunks_per_shard))
        options["storage_transformers"] = [sharding]
    if draft:
        options["zarr_version"] = 3
    array = zarr.create(
        found.shape,
        dtype=found.dtype,
        store=store,
        path=name,
        fill_value=0 if fill is None else np.load(fill, allow_pickle=True)[()],
        compressor=codec(compressor),
        filters=filters and [codec(config) for config in filters],
        object_codec=codec(object_codec),
        **options,
    )
    if found.ndim:
        array[slice(*rows)] = found[slice(*rows)]
    else:
        array[...] = found
    array.attrs.update(attributes or {})
    close(store)


def close(store: Any) -> None:
    if isinstance(store, ZipStore):
        store.close()


def group(place: str, name: str | None, attributes: dict[str, Any], draft: bool = False) -> None:
    """Create a group, and those above it."""
    options = {"zarr_version": 3} if draft else {}
    made = zarr.open_group(store_of(place, draft), mode="a", path=name, **options)
    made.attrs.update(attributes)


def consolidate(place: str, draft: bool = False) -> None:
    """Write consolidated metadata."""
    if draft:
        zarr.consolidate_metadata(store_of(place, draft), "meta/root/consolidated/.zmetadata")
    else:
        zarr.consolidate_metadata(store_of(place, draft))


def opened(place: str, name: str | None, draft: bool) -> Any:
    options = {"zarr_version": 3} if draft else {}
    return zarr.open(store_of(place, draft), mode="r+", path=name, **options)


def read(place: str, name: str | None, values: str, draft: bool = False) -> dict[str, Any]:
    """Save an array's values, and return what else there is to know of it."""
    array = opened(place, name, draft)
    np.save(values, array[...], allow_pickle=True)
    return {"attributes": dict(array.attrs), "chunks": array.chunks, "order": array.order}


def update(place: str, name: str | None, values: str, start: list[int], draft: bool) -> None:
    """Write a region that begins at `start`."""
    found = np.load(values, allow_pickle=True)
    region = tuple(slice(at, at + n) for at, n in zip(start, found.shape, strict=True))
    opened(place, name, draft)[region] = found


def tree(place: str, draft: bool = False) -> dict[str, list[Any]]:
    """Return kind and attributes of every node below the root, by path."""
    found: dict[str, list[Any]] = {}
    options = {"zarr_version": 3} if draft else {}
    root = zarr.open_group(store_of(place, draft), mode="r", **options)
    root.visititems(
        lambda path, node: found.update(
            {path: ["array" if isinstance(node, zarr.Array) else "group", dict(node.attrs)]}
        )
    )
    return {"": ["group", dict(root.attrs)], **found}


if __name__ == "__main__":
    serve(write=write, read=read, update=update, group=group, consolidate=consolidate, tree=tree)
