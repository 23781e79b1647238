"""The function that creates an array."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from zarrdask import config
from zarrdask.arrays.hierarchy.lookup import locate_node
from zarrdask.arrays.nodes.arguments import suggests_arguments
from zarrdask.arrays.nodes.array import Array, chunks_of, set_chunks
from zarrdask.formats.dtypes.fill_values import DEFAULT_FILL_VALUE
from zarrdask.formats.metadata.array_options import (
    ArrayOptions,
    ChunksLike,
    CodecsLike,
    GridLike,
    KeysLike,
)
from zarrdask.formats.metadata.model import ZarrFormat
from zarrdask.formats.metadata.new_metadata import plan_array


@suggests_arguments
def create_array(
    url: Any,
    component: str | None = None,
    *,
    shape: Any,
    dtype: Any,
    chunks: ChunksLike = "auto",
    shards: ChunksLike = None,
    grid: GridLike = None,
    codecs: CodecsLike = None,
    compressors: CodecsLike = "auto",
    filters: CodecsLike = "auto",
    order: Literal["C", "F"] = "C",
    fill_value: Any = DEFAULT_FILL_VALUE,
    dimension_names: Sequence[str | None] | None = None,
    attributes: Mapping[str, Any] | None = None,
    chunk_key_encoding: KeysLike = None,
    separator: Literal["/", "."] | None = None,
    storage_transformers: Sequence[Any] = (),
    extensions: Sequence[Any] = (),
    zarr_format: ZarrFormat | None = None,
    overwrite: bool = False,
    storage_options: dict[str, Any] | None = None,
) -> Array:
    """Create an array, and the groups above it that don't exist.

    Parameters
    ----------
    url, component, storage_options
        As in `open_array`.
    shape : int or sequence of int
        The lengths of the axes, in elements.
    dtype : dtype_like, str or mapping
        A NumPy data type, or a data type of v3: its name (``"bfloat16"``, ``"string"``) or an
        object, ``{"name": ..., "configuration": ...}``.
    chunks : "auto", str, int, sequence of (int or sequence of int), or mapping
        The shape of the chunks, in elements; -1 or None means the whole axis. A mapping has the
        names of dimensions or the numbers of axes as keys: ``{"time": 24}``; all other axes are
        whole. False means one chunk. ``"auto"`` (the default) halves the longest axis until a chunk
        has at most ``zarrdask.chunk-size`` (1 MiB). A size, such as ``"4 MiB"``, is used
        instead of that setting. For an axis with chunks of different lengths, pass the length of
        each, as in Dask: this makes a rectilinear grid of v3.
    shards : None, "auto", str, int, sequence of (int or sequence of int), or mapping
        The shape of the shards, in elements: multiples of the chunks that are stored as one object
        each; -1 is rounded up to one. By default there are no shards. ``"auto"`` doubles the
        chunks until a shard has ``zarrdask.shard-size`` (64 MiB), or the size that is passed, such
        as ``"256 MiB"``.
    grid : dict or ChunkGrid, optional
        The chunk grid, instead of `chunks` and `shards`: an object as ``chunk_grid`` in v3, or an
        instance.
    codecs : sequence, optional
        All codecs in their order, instead of `compressors` and `filters` (v3).
    compressors : codec or sequence, optional
        Codecs on the bytes of a chunk: ``"auto"`` (the default) means Zstandard at its default
        level, None no compression. A codec is a name (``"zstd"``), a dict (``{"name": ...,
        "configuration": ...}``, or in v2 ``{"id": ...}``), a numcodecs object, or an instance.
    filters : codec or sequence, optional
        Codecs on the elements of a chunk, applied before the compressors; in v2 any numcodecs
        filter. By default (``"auto"``) none, except for objects in v2.
    order : {"C", "F"}
        The order of the elements in a stored chunk.
    fill_value : scalar, optional
        The value of elements in chunks that are not stored. By default 0. None, or
        `zarrdask.NO_FILL_VALUE`, leaves it undefined in Zarr v2 (null in the document); in v3, None
        is the default.
    dimension_names : sequence of (str or None), optional
        The names of the axes.
    attributes : mapping, optional
        The user's attributes, of JSON values.
    chunk_key_encoding : {"default", "v2"} or dict, optional
        How the keys of chunks are made from their indices; a dict, or the name of a registered
        encoding, is for v3 only.
    separator : "/" or ".", optional
        The separator of the indices in the keys of chunks. By default the encoding's.
    storage_transformers, extensions : sequence of (str or dict), optional
        Names, or ``{"name": ..., "configuration": ...}`` (v3); see docs/extending.md.
    zarr_format : {3, 2, "v3-draft", "v3-draft-protocol"}, optional
        The format. By default the format of the nearest group between `url` and the array, or 3 if
        there is none. The last two are the draft of May 2022, and the older dialect of it that
        existing files use.
    overwrite : bool
        Whether an existing node is removed first, with everything below it. If False
        (default), raise `NodeExistsError` when there is one.

    Returns
    -------
    Array
        The new array, opened for writing.

    Raises
    ------
    NodeExistsError
        If the node exists and `overwrite` is False, or a node above it is an array.
    MetadataError, UnsupportedError
        If an argument is invalid, or the format can't express it.

    Examples
    --------
    >>> import zarrdask
    >>> z = zarrdask.create_array({}, shape=(100, 100), dtype="f4", chunks=(10, 100))
    >>> z[:10] = 1
    >>> z.nchunks, z.nchunks_stored()
    (10, 1)
    """
    node = locate_node(url, component, storage_options)
    if zarr_format is None:
        node = node.prefetched(None)
    metadata = plan_array(
        ArrayOptions(
            shape=shape,
            dtype=dtype,
            chunks=chunks,
            shards=shards,
            grid=grid,
            codecs=codecs,
            compressors=compressors,
            filters=filters,
            order=order,
            fill_value=fill_value,
            dimension_names=dimension_names,
            attributes=attributes,
            chunk_key_encoding=chunk_key_encoding,
            separator=separator,
            storage_transformers=storage_transformers,
            extensions=extensions,
            zarr_format=node.format_of_new(zarr_format),
        )
    )
    # An invalid setting raises before anything is changed.
    has_manifest = config.get("manifests")
    node = node.create(metadata, overwrite=overwrite)
    if has_manifest:
        node.current.begin_manifest()
    array = Array(node, metadata, "r+")
    set_chunks(array, replace(chunks_of(array), is_stored=True))
    return array
