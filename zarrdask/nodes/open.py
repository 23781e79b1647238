"""The verbs that open an array, and create one."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from zarrdask.compliance import strictness
from zarrdask.errors import MetadataError, NodeTypeError
from zarrdask.hierarchy.create import create_node
from zarrdask.hierarchy.find import find_node, search_below
from zarrdask.hierarchy.path import inherited_strictness, locate_node, node_location
from zarrdask.metadata.chunking import ChunksLike, GridLike
from zarrdask.metadata.create import plan_array
from zarrdask.metadata.model import ArrayMetadata, ZarrFormat
from zarrdask.metadata.options import ArrayOptions, CodecsLike, KeysLike
from zarrdask.nodes.array import Array
from zarrdask.nodes.options import suggests_arguments

MODES = ("r", "r+")
_CREATING = ("w", "w-", "a", "x")


@suggests_arguments
def open_array(
    url: Any,
    component: str | None = None,
    mode: str = "r",
    storage_options: dict[str, Any] | None = None,
    *,
    zarr_format: ZarrFormat | None = None,
    strict: bool | None = None,
    consolidated: bool | None = None,
) -> Array:
    """Open a stored array.

    Parameters
    ----------
    url : str, os.PathLike, MutableMapping, Store, Array or Group
        Where it is: a path, any fsspec URL, a mapping of keys to bytes, a store, a node above.
    component : str, optional
        The array's path within.
    mode : {"r", "r+"}
        Whether it may be changed.
    storage_options : dict, optional
        For fsspec.
    zarr_format : {2, 3, "v3-draft", "v3-draft-protocol"}, optional
        The only format whose documents are requested; by default any. It saves requests, and
        opens arrays in stores that deny access to documents that are not there.
    strict : bool, optional
        Whether metadata that break a rule, but whose meaning is known, are an error that names
        the rule. If not given, as the group that is given as `url` was opened, or else
        ``zarrdask.strict``, which is false.
    consolidated : bool, optional
        Whether the metadata must come from consolidated metadata of a group above. By default
        they do if such a group is given as `url`; False reads the array's own documents.

    Raises
    ------
    NodeNotFoundError
        If nothing is there.
    NodeTypeError
        If it is a group.
    MetadataError, UnsupportedError
        If its metadata is wrong, or needs what isn't there.
    """
    check_mode(mode, MODES)
    strict, search = inherited_strictness(url, strict), search_below(url, zarr_format)
    known = isinstance(url, Array) and not component and search.accepts(url.zarr_format)
    if known and not strict:
        return url if mode in ("r", url.mode) else Array(url.store, url.path, url.metadata, mode)
    store, path = locate_node(url, component, storage_options)
    with strictness(strict):
        store, metadata = find_node(
            store, path, consolidated=consolidated, group=False, search=search
        )
    if not isinstance(metadata, ArrayMetadata):
        raise NodeTypeError(
            "a group is here; give the path of an array in it as component",
            key=node_location(store, path),
            found="group",
            expected="array",
        )
    return Array(store, path, metadata, mode)


def check_mode(mode: str, known: tuple[str, ...]) -> None:
    """Check a mode.

    Raises
    ------
    MetadataError
        If it is none of the known.
    """
    if mode in known:
        return
    message = "unknown mode"
    if mode in _CREATING:
        message = (
            "this function opens what exists; create_array and create_group create a node, with "
            "overwrite=True in the place of another"
        )
    expected = " or ".join(map(repr, known))
    raise MetadataError(message, key="mode", found=mode, expected=expected)


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
    compressors: CodecsLike = None,
    filters: CodecsLike = None,
    order: Literal["C", "F"] = "C",
    fill_value: Any = None,
    dimension_names: Sequence[str | None] | None = None,
    attributes: Mapping[str, Any] | None = None,
    chunk_key_encoding: KeysLike = None,
    separator: Literal["/", "."] | None = None,
    storage_transformers: Sequence[Any] = (),
    extensions: Sequence[Any] = (),
    zarr_format: ZarrFormat = 3,
    overwrite: bool = False,
    storage_options: dict[str, Any] | None = None,
) -> Array:
    """Create an array, and groups above it where there are none.

    Parameters
    ----------
    url, component, storage_options
        As in `open_array`.
    shape : int or sequence of int
        In elements.
    dtype : dtype_like, str or mapping
        What NumPy takes for one, or a data type of v3, by its name (``"bfloat16"``,
        ``"string"``) or as an object, ``{"name": ..., "configuration": ...}``.
    chunks : "auto", str, int or sequence of (int or sequence of int)
        The shape of the chunks; -1 means the whole axis. ``"auto"`` (the default) halves the
        array's longest axis until a chunk is at most ``zarrdask.chunk-size`` (1 MiB); a size,
        such as ``"4 MiB"``, is the limit instead of that setting. For an
        axis there may be the length of each chunk, as in Dask: v3's rectilinear grid.
    shards : None, "auto", str, int or sequence of (int or sequence of int)
        The shape of the shards: multiples of the chunks, stored as one object each. ``"auto"``
        doubles the chunks until a shard is ``zarrdask.shard-size`` (64 MiB), or a size that is
        given, such as ``"256 MiB"``.
    grid : dict or ChunkGrid, optional
        The chunk grid, instead of `chunks` and `shards`: as v3's ``chunk_grid``, or itself.
    compressors : codec or sequence, optional
        Codecs on bytes; Zstandard at its usual level by default, none if empty. A codec is a
        name (``"zstd"``), a dict (``{"name": ..., "configuration": ...}``, or v2's ``{"id":
        ...}``), a numcodecs object, or an instance.
    filters : codec or sequence, optional
        Codecs on arrays, before; for v2 any numcodecs filter.
    codecs : sequence, optional
        The whole list, instead of the two before (v3).
    order : {"C", "F"}
        The order of elements in a chunk.
    fill_value : scalar, optional
        What absent chunks hold; 0 by default. `zarrdask.NO_FILL_VALUE` leaves it open, which
        Zarr v2 calls null.
    dimension_names : sequence of (str or None), optional
        Names of the axes.
    attributes : mapping, optional
        The user's attributes.
    chunk_key_encoding : {"default", "v2"} or dict, optional
    separator : {"/", "."}, optional
        How chunk keys look. A dict, or the name of an encoding that was registered, is for v3.
    storage_transformers, extensions : sequence of (str or dict), optional
        Names, or ``{"name": ..., "configuration": ...}`` (v3); see docs/extending.md.
    zarr_format : {3, 2, "v3-draft", "v3-draft-protocol"}
        The last two: the draft of May 2022, and the older dialect of it that real files use.
    overwrite : bool
        Whether a node that is there is removed first; it is an error otherwise.

    Raises
    ------
    NodeExistsError
        If there is a node and `overwrite` is false.
    MetadataError, UnsupportedError
        If an option is wrong, or the format can't express it.
    """
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
            zarr_format=zarr_format,
        )
    )
    store, path = locate_node(url, component, storage_options)
    store = create_node(store, path, metadata, overwrite=overwrite)
    return Array(store, path, metadata, "r+")
