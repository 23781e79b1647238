"""Read many regions of one or several arrays in one call."""

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.arrays.chunks.together import ArrayRead, read_together
from zarrdask.arrays.nodes.indexers import result_shape
from zarrdask.errors import NodeTypeError, SelectionError
from zarrdask.formats.codecs.decode import Blocks
from zarrdask.formats.grids.chunk_grid import Shape
from zarrdask.formats.indexing.projection import Regions
from zarrdask.formats.indexing.selection import Selection, basic, index_by_name
from zarrdask.runtime import buffers

if TYPE_CHECKING:
    from zarrdask.arrays.nodes.array import Array


def read_many(
    arrays: Mapping[str, Any], regions: Iterable[Any], out: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Read the same regions of several arrays, all of them in one call.

    A chunk that several regions overlap is requested and decoded once. All cores decode, and the
    requests for all arrays are in flight together.

    Parameters
    ----------
    arrays : mapping of str to Array
        The arrays, by any names; or a group. A single array is read as by `Array.read_many`.
    regions : iterable of index
        The regions, each an index made of integers, slices, ``...`` and None, or a dict of names of
        dimensions to integers and slices. Axes that a region does not mention are read as a whole.
    out : mapping of str to (ndarray or sequence of ndarray), optional
        For each name the memory for the result: an array whose first axis is as long as `regions`,
        or an array for each region. They have the data types of the stored arrays.

    Returns
    -------
    dict of str to (list of ndarray, or the value of `out`)
        For each name, the elements of each region.

    Raises
    ------
    NodeTypeError
        If `arrays` has a value that is not an array, such as a group in a group.
    SelectionError
        If a region is not such an index, or `out` lacks memory for an array, or an array of `out`
        has the wrong shape or data type.
    CodecError
        If a chunk or shard is damaged; the error names its key.
    StoreError
        If the store fails.

    Examples
    --------
    >>> import numpy as np, zarrdask
    >>> images = zarrdask.create_array({}, shape=(8, 4, 4), dtype="f4", chunks=(2, 4, 4))
    >>> labels = zarrdask.create_array({}, shape=(8,), dtype="i8", chunks=(4,))
    >>> batch = zarrdask.read_many({"x": images, "y": labels}, [0, 5, slice(2, 4)])
    >>> [x.shape for x in batch["x"]], [y.shape for y in batch["y"]]
    ([(4, 4), (4, 4), (2, 4, 4)], [(), (), (2,)])
    """
    if isinstance(getattr(arrays, "_stored", None), StoredChunks):
        return read_regions(arrays, regions, out)  # type: ignore[arg-type, no-any-return]
    check_arrays(arrays)
    regions = _listed(regions, "regions", "an index for each region")
    if out is not None and not (isinstance(out, Mapping) and arrays.keys() <= out.keys()):
        raise SelectionError(
            "each array requires memory of its own",
            key="out",
            found=list(out) if isinstance(out, Mapping) else type(out).__name__,
            expected=f"a mapping with the keys {list(arrays)}",
        )
    names = {name for array in arrays.values() for name in array.dimension_names or ()}
    reads = dict[str, _Plan]()
    for name, array in arrays.items():
        try:
            reads[name] = _plan(array, regions, None if out is None else out[name], names)
        except SelectionError as error:
            raise error.within(name) from error.__cause__
    _read(reads.values())
    return {name: each.result for name, each in reads.items()}


def read_regions(array: "Array", regions: Iterable[Any], out: Any = None) -> Any:
    """Read regions of one array; see `Array.read_many`."""
    plan = _plan(array, _listed(regions, "regions", "an index for each region"), out, set())
    _read([plan])
    return plan.result


def check_arrays(arrays: Any) -> None:
    """Check that these are arrays by their names."""
    if not isinstance(arrays, Mapping):
        raise NodeTypeError(
            "arrays must be an array, a group or a mapping",
            key="arrays",
            found=arrays,
            expected="an array, a group, or a mapping of names to arrays",
        )
    for name, array in arrays.items():
        if not isinstance(getattr(array, "_stored", None), StoredChunks):
            raise NodeTypeError(
                "this is not an array of zarrdask; for a group, pass dict(group.arrays())",
                key=f"arrays[{name!r}]",
                found=array,
            )


def _listed(values: Any, key: str, expected: str) -> list[Any]:
    if not isinstance(values, Iterable):
        raise SelectionError(
            "this can't be iterated over", key=key, found=values, expected=expected
        )
    return list(values)


class _Plan(NamedTuple):
    """The regions to read of an array, and the blocks to read them into: views of the result."""

    chunks: StoredChunks
    regions: Regions
    blocks: list[np.ndarray]
    result: Any


def _read(plans: Iterable[_Plan]) -> None:
    reads = (
        ArrayRead(plan.chunks, plan.regions, Blocks(plan.blocks, plan.chunks.metadata.dtype))
        for plan in plans
        if plan.blocks
    )
    for _ in read_together(reads):
        pass


def _plan(array: "Array", regions: Sequence[Any], out: Any, names: Set[str | None]) -> _Plan:
    """Check the regions and the memory for the result; `names` are those that regions may have."""
    selections = [_select(array, region, n, names) for n, region in enumerate(regions)]
    shapes = [result_shape(each.shape, each.finish) for each in selections]
    if out is None:
        blocks = _allocate(shapes, array.dtype)
    else:
        # An index with "..." is a view, even of a single element.
        if isinstance(out, np.ndarray) and out.ndim:
            blocks = [out[n, ...] for n in range(len(out))]
        else:
            blocks = _listed(out, "out", "an array, or an array for each region")
        _check_blocks(blocks, shapes, array.dtype)
    views = [block[(*each.undo, ...)] for block, each in zip(blocks, selections, strict=True)]
    picks = Regions(tuple(each.slices for each in selections))
    return _Plan(array._stored, picks, views, blocks if out is None else out)


def _select(array: "Array", region: Any, number: int, names: Set[str | None]) -> Selection:
    try:
        if isinstance(region, Mapping):
            own = array.dimension_names or ()
            picks = {
                name: pick for name, pick in region.items() if name in own or name not in names
            }
            region = index_by_name(picks, own)
        return basic(region, array.shape)
    except SelectionError as error:
        raise error.within(f"regions[{number}]") from error.__cause__


def _allocate(shapes: list[Shape], dtype: np.dtype[Any]) -> list[np.ndarray]:
    if len(set(shapes)) != 1:
        return [buffers.empty(shape, dtype) for shape in shapes]
    # One large piece of memory is reused when the caller has dropped all of it.
    memory = buffers.empty((len(shapes), *shapes[0]), dtype)
    return [memory[number, ...] for number in range(len(shapes))]


def _check_blocks(blocks: list[Any], shapes: list[Shape], dtype: np.dtype[Any]) -> None:
    if len(blocks) != len(shapes):
        raise SelectionError(
            "each region requires memory of its own",
            key="out",
            found=len(blocks),
            expected=len(shapes),
        )
    for number, (block, shape) in enumerate(zip(blocks, shapes, strict=True)):
        is_array = isinstance(block, np.ndarray)
        if (
            not is_array
            or block.shape != shape
            or block.dtype != dtype
            or not block.flags.writeable
        ):
            raise SelectionError(
                "this memory does not fit the region",
                key=f"out[{number}]",
                found=f"{block.shape} of {block.dtype}" if is_array else type(block).__name__,
                expected=f"a writable ndarray of shape {shape} and data type {dtype}",
            )
