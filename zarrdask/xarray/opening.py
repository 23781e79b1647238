"""xarray's functions that open datasets and trees, with zarrdask's engine and blocks."""

import os
import warnings
from collections.abc import Collection, Iterable, Mapping, MutableMapping, Sequence
from glob import has_magic
from typing import TYPE_CHECKING, Any

import xarray

from zarrdask.arrays.chunks.missing_chunks import Missing
from zarrdask.arrays.hierarchy.snapshot import Snapshot, snapshot_of
from zarrdask.arrays.nodes.arguments import suggests_arguments
from zarrdask.errors import MetadataError, NodeNotFoundError
from zarrdask.formats.indexing.selection import is_integer
from zarrdask.storage.resolve import resolve
from zarrdask.xarray.engine import ZarrdaskBackendEntrypoint
from zarrdask.xarray.manager import ZarrdaskManager

if TYPE_CHECKING:
    from xarray import Dataset, DataTree

#: The default of `chunks`: stored units, joined to blocks.
_STORED: dict[Any, Any] = {}


@suggests_arguments
def open_zarr(
    store: Any,
    group: str | None = None,
    chunks: Any = _STORED,
    decode_cf: Any = True,
    mask_and_scale: Any = True,
    decode_times: Any = True,
    concat_characters: Any = True,
    decode_coords: Any = True,
    drop_variables: str | Iterable[str] | None = None,
    consolidated: bool | None = None,
    overwrite_encoded_chunks: Any = False,
    storage_options: dict[str, Any] | None = None,
    decode_timedelta: Any = None,
    use_cftime: bool | None = None,
    zarr_format: Any = None,
    use_zarr_fill_value_as_mask: bool | None = None,
    chunked_array_type: Any = None,
    from_array_kwargs: dict[str, Any] | None = None,
    create_default_indexes: Any = True,
    *,
    strict: bool | None = None,
    phony_dims: bool = False,
    skip_missing: bool = False,
    missing: Missing | None = None,
    snapshot: Snapshot | None = None,
) -> "Dataset":
    """Open a Zarr group as a dataset of Dask arrays. A drop-in for `xarray.open_zarr`.

    Parameters
    ----------
    store : str, os.PathLike, MutableMapping, Store or Group
        A path, any fsspec URL, a mapping of keys to bytes, a store, or an open group.
    group : str, optional
        The group's path within.
    chunks : dict, int, "auto" or None
        The blocks of the Dask arrays. ``{}``, the default: chunks or shards, joined with their
        neighbours up to ``zarrdask.block-size`` (16 MiB), or four times that in a remote store. A
        dict gives the lengths along some dimensions; chunks or shards are joined along the others.
        ``"auto"``: they are joined up to Dask's ``array.chunk-size``. None: no Dask; values are
        read when they are needed, by all threads.
    chunked_array_type : str or ChunkManagerEntrypoint, optional
        By default zarrdask's own; ``"dask"`` is xarray's.
    strict : bool, optional
        As in `zarrdask.open_array`.
    phony_dims : bool
        Whether arrays without dimension names are opened: their dimensions are named
        ``phony_dim_0``, ``phony_dim_1``, ...
    skip_missing : bool
        Whether blocks that have no stored chunk are constants, as in `zarrdask.from_zarr`. The
        chunks of each variable are listed for that.
    missing : {"fill", "error"}, optional
        How chunks that are not stored are read, as in `zarrdask.open_array`.
    snapshot : Manifest, str or os.PathLike, optional
        A manifest of the node at `store`, whose objects are read, as in `zarrdask.open_array`.

    Other Parameters
    ----------------
    decode_cf, mask_and_scale, decode_times, concat_characters, decode_coords, drop_variables
    consolidated, overwrite_encoded_chunks, storage_options, decode_timedelta, use_cftime
    zarr_format, use_zarr_fill_value_as_mask, from_array_kwargs, create_default_indexes
        As in `xarray.open_zarr`.

    Returns
    -------
    xarray.Dataset

    Raises
    ------
    NodeNotFoundError
        If there is no such group; it is a FileNotFoundError.

    Examples
    --------
    >>> import zarrdask
    >>> store = {}
    >>> z = zarrdask.create_array(
    ...     store, "t", shape=(4, 6), dtype="i4", chunks=(2, 3), dimension_names=("y", "x")
    ... )
    >>> open_zarr(store).sizes
    Frozen({'y': 4, 'x': 6})
    """
    options = dict(locals())
    del options["store"], options["snapshot"]
    if snapshot is not None:
        node = snapshot_of(store, storage_options, snapshot)
        store, options["storage_options"] = node.store, None
        options["group"] = node.join(group or "").path
    _check_lengths(chunks)
    if isinstance(store, MutableMapping):
        store = resolve(store)  # xarray would compute a hash of all its values
    options["chunks"] = dict(chunks) if isinstance(chunks, dict) else chunks
    options["chunked_array_type"] = chunked_array_type or ZarrdaskManager()
    options["from_array_kwargs"] = from_array_kwargs or {}
    dataset = xarray.open_dataset(store, engine=ZarrdaskBackendEntrypoint, **options)
    _warn_of_others(chunks, dataset.sizes)
    return dataset


def open_mfdataset(
    paths: str | os.PathLike[str] | Sequence[Any],
    chunks: Any = _STORED,
    *,
    chunked_array_type: Any = None,
    storage_options: dict[str, Any] | None = None,
    **options: Any,
) -> "Dataset":
    """Open several Zarr groups as one dataset; see `xarray.open_mfdataset`.

    Parameters
    ----------
    paths : str, os.PathLike or (nested) sequence
        The locations of the groups. A text may be a pattern (``"s3://bucket/*.zarr"``) for any file
        system of fsspec; the groups are then sorted by their paths.
    chunks, chunked_array_type
        As in `open_zarr`.
    storage_options : dict, optional
        For fsspec.
    **options
        As in `xarray.open_mfdataset`.

    Raises
    ------
    NodeNotFoundError
        If nothing matches a pattern; it is a FileNotFoundError.
    """
    _check_lengths(chunks)
    if isinstance(paths, str | os.PathLike):
        paths = _matching(os.fspath(paths), storage_options)
    if storage_options is not None:
        options["storage_options"] = storage_options
    dataset = xarray.open_mfdataset(
        paths,
        chunks=dict(chunks) if isinstance(chunks, dict) else chunks,
        engine=ZarrdaskBackendEntrypoint,
        chunked_array_type=chunked_array_type or ZarrdaskManager(),
        **options,
    )
    _warn_of_others(chunks, dataset.sizes)
    return dataset


@suggests_arguments
def open_datatree(
    store: Any,
    group: str | None = None,
    chunks: Any = _STORED,
    *,
    group_filter: str | Iterable[str] | None = None,
    chunked_array_type: Any = None,
    storage_options: dict[str, Any] | None = None,
    **options: Any,
) -> "DataTree":
    """Open a Zarr group and all groups below it as a tree; see `xarray.open_datatree`.

    Parameters
    ----------
    store, group, chunks, chunked_array_type, storage_options
        As in `open_zarr`.
    group_filter : str or iterable of str, optional
        Patterns such as ``"/*/sweep_0"``: only groups whose paths match are opened, and the groups
        above them without their variables. A name ``**`` stands for any number of names.
    **options
        Other options of `open_zarr`, and of `xarray.open_datatree`.

    Returns
    -------
    xarray.DataTree

    Raises
    ------
    NodeNotFoundError
        If there is no such group; it is a FileNotFoundError.

    Examples
    --------
    >>> import zarrdask
    >>> store = {}
    >>> z = zarrdask.create_array(
    ...     store, "a/t", shape=(4, 6), dtype="i4", chunks=(2, 3), dimension_names=("y", "x")
    ... )
    >>> open_datatree(store)["a"].t.data.npartitions
    1
    """
    _check_lengths(chunks)
    if group_filter is not None:
        options["group_filter"] = group_filter
    tree = xarray.open_datatree(
        resolve(store) if isinstance(store, MutableMapping) else store,
        engine=ZarrdaskBackendEntrypoint,
        group=group,
        chunks=dict(chunks) if isinstance(chunks, dict) else chunks,
        chunked_array_type=chunked_array_type or ZarrdaskManager(),
        storage_options=storage_options,
        **options,
    )
    _warn_of_others(chunks, {dim for node in tree.subtree for dim in node.sizes})
    return tree


def _warn_of_others(chunks: Any, dims: Collection[Any]) -> None:
    """Warn of lengths for dimensions that do not exist, as xarray ignores them."""
    others = [dim for dim in chunks if dim not in dims] if isinstance(chunks, Mapping) else []
    if others:
        warnings.warn(
            f"chunks: there are no dimensions {others}, so these lengths have no effect; the "
            f"dimensions are {[*dims]}",
            stacklevel=3,
        )


def _check_lengths(chunks: Any) -> None:
    """Check the lengths of blocks: for xarray, 0 is the same as no length."""
    lengths = chunks if isinstance(chunks, Mapping) else {None: chunks}
    for dim, length in lengths.items():
        if is_integer(length) and int(length) < 1 and int(length) != -1:
            raise MetadataError(
                "a block must have at least one element",
                key="chunks" if dim is None else f"chunks[{dim!r}]",
                found=length,
                expected="a positive number, -1 for the whole dimension, 'auto' or None",
            )


def _matching(pattern: str, storage_options: dict[str, Any] | None) -> list[str]:
    """Return the paths or URLs that match a pattern, sorted."""
    if not has_magic(pattern):
        return [pattern]
    import fsspec

    files, path = fsspec.core.url_to_fs(pattern, **(storage_options or {}))
    paths = sorted(files.glob(path))
    if not paths:
        raise NodeNotFoundError(
            "no such file or directory: nothing matches the pattern", key=pattern
        )
    is_remote = "://" in pattern or "::" in pattern
    return [files.unstrip_protocol(path) for path in paths] if is_remote else paths
