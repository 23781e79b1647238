"""``zarrdask info``: what an array or a group is."""

import json
import os
from collections.abc import Iterator
from math import isfinite
from typing import Any

import click
import numpy as np

import zarrdask
from zarrdask import hierarchy
from zarrdask.array import Array
from zarrdask.checks import real_key
from zarrdask.chunkio import Chunks
from zarrdask.cli import options
from zarrdask.codecs.base import Codec
from zarrdask.errors import UnsupportedError
from zarrdask.group import Group
from zarrdask.render import size
from zarrdask.storage.base import Store
from zarrdask.storage.local import LocalStore
from zarrdask.storage.wrapped import WrappedStore
from zarrdask.stored import stored_units


@click.command(
    epilog=options.examples(
        "zarrdask info data.zarr/temperature",
        "zarrdask info s3://bucket/data --component a/b --storage-option anon=true",
        "zarrdask info data.zarr/temperature --stored",
    )
)
@click.argument("url")
@options.component
@click.option("--stored", is_flag=True, help="Count the chunks that are stored, and their bytes.")
@options.as_json
@options.storage_options
def command(
    url: str,
    component: str | None,
    *,
    stored: bool,
    as_json: bool,
    storage_options: dict[str, Any] | None,
) -> None:
    """Show what an array or group is: shape, type, chunks, codecs, attributes."""
    found = zarrdask.open(url, component, storage_options=storage_options)
    used = usage(found.stored) if stored and isinstance(found, Array) else None
    if as_json:
        click.echo(json.dumps(as_data(found, used), indent=2))
        return
    told = dict(_of_array(found) if isinstance(found, Array) else _of_group(found))
    if used is not None and isinstance(found, Array):
        kind = "shards" if found.shards else "chunks"
        told["stored"] = f"{used[0]} of {found.metadata.grid.size} {kind}, {size(used[1])}"
    width = max(map(len, told))
    for name, text in told.items():
        click.echo(f"{name:<{width}}  {text}")
    for name, value in found.attrs.items():
        click.echo(f"  {name}: {json.dumps(value, ensure_ascii=False)}")


def _of_group(group: Group) -> Iterator[tuple[str, str]]:
    yield "group", hierarchy.location(group.store, group.path)
    yield "format", _format(group)
    yield "members", ", ".join(group) or "none"
    yield "attributes", str(len(group.attrs))


def _of_array(array: Array) -> Iterator[tuple[str, str]]:
    metadata = array.metadata
    yield "array", hierarchy.location(array.store, array.path)
    yield "format", _format(array)
    yield "shape", str(array.shape)
    yield "dtype", str(array.dtype)
    yield "size", size(array.nbytes)
    yield "chunks", f"{array.chunks}, {metadata.read_grid.size} of them"
    if array.shards:
        yield "shards", f"{array.shards}, {metadata.grid.size} of them"
    if array.dimension_names:
        yield "dimensions", ", ".join(name or "-" for name in array.dimension_names)
    yield "codecs", ", ".join(map(describe, metadata.codecs))
    yield "fill value", "left open (zeros)" if array.fill_value is None else str(array.fill_value)
    if metadata.transformers:
        yield "transformers", ", ".join(type(layer).__name__ for layer in metadata.transformers)
    yield "attributes", str(len(array.attrs))


def as_data(found: Array | Group, used: tuple[int, int] | None = None) -> dict[str, Any]:
    """Return what a node is as JSON has it: numbers, not words.

    Parameters
    ----------
    used : (int, int), optional
        Of an array: how many units are stored, and their bytes.
    """
    place = hierarchy.location(found.store, found.path)
    both = {"zarr_format": found.zarr_format, "attributes": dict(found.attrs)}
    if isinstance(found, Group):
        return {"group": place, **both, "members": list(found)}
    return {
        "array": place,
        **both,
        "shape": found.shape,
        "dtype": str(found.dtype),
        "bytes": found.nbytes,
        "chunks": found.chunks,
        "shards": found.shards,
        "units": found.metadata.grid.size,
        "dimension_names": found.dimension_names,
        "codecs": [describe(codec) for codec in found.metadata.codecs],
        "fill_value": _plain(found.fill_value),
        **({} if used is None else {"stored_units": used[0], "stored_bytes": used[1]}),
    }


def _plain(fill: Any) -> Any:
    """Return a fill value as JSON has it, in words if it has it not."""
    value = fill.item() if isinstance(fill, np.generic) else fill
    finite = not isinstance(value, float) or isfinite(value)
    return value if isinstance(value, bool | int | float | str | None) and finite else str(fill)


def _format(found: Array | Group) -> str:
    version = found.zarr_format
    return f"Zarr v{version}" if isinstance(version, int) else f"Zarr {version}"


def describe(codec: Codec) -> str:
    """Return a codec and its configuration as text.

    >>> from zarrdask.codecs.crc32c import Crc32cCodec
    >>> from zarrdask.codecs.gzip import GzipCodec
    >>> describe(Crc32cCodec()), describe(GzipCodec(5))
    ('crc32c', 'gzip(level=5)')
    """
    try:
        members = dict(codec.to_json().get("configuration") or {})
    except UnsupportedError:
        return codec.name  # it has no name in v3
    inner: Any = getattr(codec, "codecs", None)
    if inner is not None:
        members = {"chunk_shape": members["chunk_shape"], "codecs": None}
    told = [
        f"codecs=[{', '.join(map(describe, inner))}]" if name == "codecs" else f"{name}={value}"
        for name, value in members.items()
    ]
    return f"{codec.name}({', '.join(told)})" if told else codec.name


def usage(chunks: Chunks) -> tuple[int, int]:
    """Return how many units of an array are stored, and how many bytes they take."""
    sizes = [_size(chunks.store, chunks.key(index)) for index in stored_units(chunks)]
    return len(sizes), sum(sizes)


def _size(store: Store, key: str) -> int:
    """Return the size of a value, without reading it where that can be told."""
    key, inner = real_key(store, key), store
    while isinstance(inner, WrappedStore):
        inner = inner.inner
    try:
        if isinstance(inner, LocalStore):
            return os.path.getsize(inner.path(key))
        if hasattr(inner, "fs") and hasattr(inner, "path"):
            return int(inner.fs.size(inner.path(key)))
    except OSError:
        return 0  # it was erased meanwhile
    return len(inner.get(key) or b"")
