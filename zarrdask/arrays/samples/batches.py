"""``batches``: the samples of arrays in batches, read in an order that is planned for an epoch."""

from collections.abc import Mapping
from typing import Any, Literal

from zarrdask import config
from zarrdask.arrays.nodes.array import Array
from zarrdask.arrays.nodes.many import check_arrays
from zarrdask.arrays.samples.epoch_plan import Layout
from zarrdask.arrays.samples.planned_batches import Batches, check_numbers
from zarrdask.errors import SelectionError
from zarrdask.formats.indexing.selection import is_integer


def batches(
    arrays: Any,
    *,
    batch: int,
    window: Any = None,
    stride: Any = None,
    shuffle: bool | int | Literal["full"] = True,
    memory: int | str = "512 MiB",
    seed: int = 0,
    out: Any = None,
    rank: int = 0,
    world_size: int = 1,
    drop_last: bool = False,
) -> Batches:
    """Return the samples of arrays in batches, for training.

    The whole epoch is planned first: when each chunk is read, and when it is dropped. Print the
    result to see the plan; nothing is read before it is iterated over. Each iteration is an epoch.
    The next batch is read while one is used.

    Parameters
    ----------
    arrays : Array, Group or mapping of str to Array
        One array, or several by name, which have their samples at the same positions.
    batch : int
        The number of samples in a batch.
    window : int, tuple or dict, optional
        The shape of a sample along some axes: an integer for the first axis, a tuple for the first
        axes (None for a whole axis), or a dict of names of dimensions to integers. Other axes are
        whole, and an array without the axis has the same elements in all windows along it. By
        default, a sample is an index of the first axis, as in ``array[0]``.
    stride : int, tuple or dict, optional
        The distance of successive windows along these axes, by default their lengths. An integer
        applies to all of them.
    shuffle : bool, int or "full", default True
        Whether samples are in random order. True draws them at a time from as many chunks as
        `memory` has space for, so that each is decoded once; up to 1.2 times where windows lie
        across chunks. An integer is the number of samples to draw from, and "full" means all,
        even if chunks are decoded more often for it.
    memory : int or str, default "512 MiB"
        The largest number of bytes for chunks that are kept, and for two batches: the one in use,
        and the next. If these alone are larger, no chunk is kept, and they exceed it; the printed
        plan says so. Each thread has one chunk more while it decodes.
    seed : int, default 0
        The seed of the random order. Each epoch has another order, which is the same in every run.
    out : ndarray, or mapping of str to ndarray, optional
        The memory for each batch, which the next one overwrites: with the shape of a batch,
        and the data type of the array. The memory of a tensor serves as well.
    rank, world_size : int
        The number of the part of the samples to return, and the number of parts. The parts are
        equal up to one sample.
    drop_last : bool, default False
        Whether to leave out a last batch that has fewer samples. All ranks then have the same
        number of batches.

    Returns
    -------
    Batches
        An iterable of arrays, or of dicts of arrays if `arrays` are several. The first axis of each
        counts the samples.

    Raises
    ------
    SelectionError
        If the windows do not fit the arrays, or `out` does not fit the batches.
    NodeTypeError
        If `arrays` are not arrays.

    See Also
    --------
    read_many : Reads regions that you choose.

    Examples
    --------
    >>> import zarrdask
    >>> images = zarrdask.create_array({}, shape=(64, 8, 8), dtype="f4", chunks=(16, 8, 8))
    >>> labels = zarrdask.create_array({}, shape=(64,), dtype="i8", chunks=(64,))
    >>> loader = batches({"x": images, "y": labels}, batch=16, seed=7)
    >>> for each in loader:
    ...     pass
    >>> each["x"].shape, each["y"].shape, len(loader)
    ((16, 8, 8), (16,), 4)
    """
    is_single = isinstance(arrays, Array)
    named = {"": arrays} if is_single else arrays
    if isinstance(named, Mapping):
        named = dict(named.items())
    check_arrays(named)
    check_numbers(batch=batch, world_size=world_size)
    if not named:
        raise SelectionError(
            "no arrays were passed", key="arrays", found=arrays, expected="one or more arrays"
        )
    if not is_integer(rank) or not 0 <= rank < world_size:
        raise SelectionError(
            "invalid rank",
            key="rank",
            found=rank,
            expected=f"0 to {world_size - 1}",
        )
    drawn: Any = shuffle
    is_number = is_integer(drawn) and drawn >= 1
    if not (isinstance(shuffle, bool) or is_number or shuffle == "full"):
        raise SelectionError(
            "invalid value for shuffle",
            key="shuffle",
            found=shuffle,
            expected="True, False, 'full', or the number of samples to draw from",
        )
    if not isinstance(drop_last, bool):
        raise SelectionError(
            "invalid value", key="drop_last", found=drop_last, expected="True or False"
        )
    check_numbers(least=0, seed=seed)
    return Batches(
        named,
        window,
        stride,
        shuffle,
        config.parse_size(memory, "memory"),
        int(seed),
        out,
        Layout(int(batch), 1, int(rank), int(world_size), drop_last),
        is_single=is_single,
    )
