"""``to_zarr``: datasets, data arrays and trees into Zarr groups, without zarr-python."""

from collections.abc import Hashable, Mapping
from typing import Any, Literal

import xarray

from zarrdask import config
from zarrdask.arrays.hierarchy.lookup import locate_node
from zarrdask.arrays.hierarchy.path import normalise_path
from zarrdask.arrays.nodes.arguments import suggests_arguments
from zarrdask.errors import UnsupportedError
from zarrdask.formats.metadata.array_options import GridLike
from zarrdask.formats.metadata.model import ZarrFormat
from zarrdask.parallel.graph.writing.target import Resume
from zarrdask.runtime.progress import Show
from zarrdask.xarray.writing.destination import Destination
from zarrdask.xarray.writing.request import WriteSettings, contents, default_mode
from zarrdask.xarray.writing.write_steps import write


@suggests_arguments
def to_zarr(
    obj: Any,
    store: Any,
    mode: str | None = None,
    group: str | None = None,
    encoding: Mapping[Any, Any] | None = None,
    *,
    compute: bool = True,
    consolidated: bool | None = None,
    append_dim: Hashable | None = None,
    region: Any = None,
    safe_chunks: bool = True,
    align_chunks: bool = False,
    storage_options: dict[str, Any] | None = None,
    zarr_format: ZarrFormat | None = None,
    write_empty_chunks: bool | None = None,
    chunkmanager_store_kwargs: dict[str, Any] | None = None,
    write_inherited_coords: bool = False,
    grid: GridLike = "regular",
    commit: Literal["first", "last"] | None = None,
    resume: Resume = False,
    progress: Show = False,
) -> Any:
    """Write a dataset to a Zarr group. A drop-in for `xarray.Dataset.to_zarr`.

    Parameters
    ----------
    obj : xarray.Dataset, xarray.DataArray or xarray.DataTree
        The object to write. All Dask arrays in it are computed in one graph.
    store : str, os.PathLike, MutableMapping, Store or Group
        A path, any fsspec URL, a mapping of keys to bytes, a store, or an open group.
    mode : "w", "w-", "a", "a-" or "r+", optional
        ``"w"``: create the group, or replace it with everything in it; ``"w-"``: create it, or fail
        if there is one; ``"a"``: write to existing variables, create others; ``"a-"``: the same,
        but with `append_dim` only variables that have this dimension are written; ``"r+"``: change
        values, but no metadata. By default ``"a"`` with `append_dim`, ``"r+"`` with `region`, else
        ``"w-"``.
    group : str, optional
        The group's path within.
    encoding : dict, optional
        How new variables are stored, by name: the keys of xarray (``dtype``,
        ``scale_factor``, ``_FillValue``, ``units``, ...), ``chunks``, ``shards``,
        ``compressors``, ``filters``, ``serializer`` (v3), ``fill_value`` (v3),
        ``write_empty_chunks``, ``chunk_key_encoding``; and of zarrdask ``codecs`` and ``grid``,
        with the values that `zarrdask.create_array` takes. For a tree, by the path of the node,
        then by name.
    compute : bool
        Whether to write now. If not, metadata and variables in memory are written, and a Delayed is
        returned that writes the Dask arrays. An append writes nothing before it is computed.
    consolidated : bool, optional
        Whether consolidated metadata is written, in v2 and v3: to `store`, also if `group` is
        given. By default it is, unless the mode is ``"r+"``.
    append_dim : hashable, optional
        The dimension along which the dataset is added at the end of the stored one.
    region : dict or "auto", optional
        The part of the stored dataset that is written: for some dimensions a slice, or
        ``"auto"`` for the part where the stored coordinate has the same values.
    safe_chunks, align_chunks : bool
        Accepted for compatibility: every blocking can be written to every grid of chunks.
        Block boundaries are moved where that is needed.
    storage_options : dict, optional
        For fsspec.
    zarr_format : {3, 2, "v3-draft", "v3-draft-protocol"}, optional
        The format of a new group, 3 by default.
    write_empty_chunks : bool, optional
        Whether chunks that hold only the fill value are stored. By default as in the setting
        ``zarrdask.write-empty-chunks``, which is False.
    chunkmanager_store_kwargs : dict, optional
        Accepted for compatibility.
    write_inherited_coords : bool
        Whether the nodes of a tree store the coordinates that they inherit, too.
    grid : {"regular", "rectilinear"}
        The grid of new arrays whose encoding does not give the chunks: all chunks have the
        shape of the longest block, or they are the blocks.
    commit : {"first", "last"}, optional
        When the metadata of new groups and arrays is written: before their values, so that
        several processes can write regions concurrently; or afterwards, so that the dataset appears
        when it is complete. By default afterwards, but before them with ``compute=False``, in
        sessions of icechunk, whose changes appear together, and in the drafts of v3.
    resume : bool or "restart", default False
        Whether stored blocks of Dask arrays are recorded, so that the same call, made
        again after the process was killed, computes and writes only the missing blocks, as in
        `zarrdask.to_zarr`; ``"restart"`` begins again. Metadata is written last, and a group that
        is replaced is erased first. With ``compute=False``, nothing is written before the result is
        computed.
    progress : bool, file or callable, default False
        Whether and how to show a progress bar, as in `zarrdask.to_zarr`. It counts the blocks of
        Dask arrays. There is none with ``compute=False``.

    Returns
    -------
    None or dask.delayed.Delayed
        None; if `compute` is false, a Delayed that computes and completes the write.

    Raises
    ------
    ZarrdaskError
        If the dataset cannot be stored in this way; nothing is changed then. A `MetadataError` is
        a ValueError, a `NodeExistsError` a FileExistsError, a `NodeNotFoundError` a
        FileNotFoundError.

    Notes
    -----
    A new dataset appears when it is complete: a write that fails leaves none, and the same call
    replaces leftover chunks. An append writes values first, then the shapes (of index coordinates
    last), then the consolidated metadata: if it is interrupted, readers of consolidated metadata
    see the old dataset. Concurrent appends follow one another. A group in a local directory that is
    replaced stays until the new one is complete.

    Examples
    --------
    >>> import xarray as xr
    >>> import zarrdask.xarray
    >>> store = {}
    >>> ds = xr.Dataset({"t": ("time", [1.5, 2.5])}, {"time": [0, 1]})
    >>> zarrdask.xarray.to_zarr(ds, store)
    >>> zarrdask.xarray.to_zarr(ds.assign_coords(time=[2, 3]), store, append_dim="time")
    >>> zarrdask.xarray.open_zarr(store).t.values
    array([1.5, 2.5, 1.5, 2.5])
    """
    options = WriteSettings(
        default_mode(append_dim, region) if mode is None else mode,
        append_dim,
        region,
        consolidated,
        zarr_format,
        write_empty_chunks,
        grid,
        commit,
        compute,
        resume,
        progress if compute else False,
        config.get("manifests"),
    )
    options.check()
    if isinstance(obj, xarray.DataTree) and append_dim is not None:
        raise UnsupportedError("an append to a whole tree is not supported; append to its nodes")
    groups = contents(obj, encoding or {}, inherit=write_inherited_coords)
    node = locate_node(store, group, storage_options)
    root = node.path.removesuffix(normalise_path(group)).rstrip("/")
    destination = Destination(node.current, root, options)
    with destination.alone(groups[""].dataset) as own, node.store.batch():
        return write(own, groups)
