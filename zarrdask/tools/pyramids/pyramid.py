"""``pyramid``: the levels of an array at lower resolutions, computed in one pass."""

from collections.abc import Iterable
from dataclasses import fields
from typing import Any, Literal

from zarrdask import config
from zarrdask.arrays.nodes.arguments import check_options, checks_booleans
from zarrdask.errors import one_of
from zarrdask.formats.metadata.convert import Changes
from zarrdask.parallel.execution.executor import workers
from zarrdask.parallel.rewrite.node_plan import locate_target
from zarrdask.storage.resolve import options_of_each
from zarrdask.tools.pyramids.conventions import CONVENTIONS, arguments_of, find_convention
from zarrdask.tools.pyramids.kernels import Method
from zarrdask.tools.pyramids.labels import from_image
from zarrdask.tools.pyramids.levels import Borders
from zarrdask.tools.pyramids.plan import PyramidPlan
from zarrdask.tools.pyramids.planning import PyramidOptions, plan_pyramid
from zarrdask.tools.pyramids.sources import find_source


@checks_booleans
def pyramid(
    source: Any,
    target: Any,
    component: str | None = None,
    *,
    levels: int | None = None,
    factors: Any = 2,
    method: Method | None = None,
    skipna: bool | Literal["fill"] = True,
    borders: Borders | None = None,
    chunks: Any = None,
    shards: Any = None,
    level_0: Literal["copy", "omit"] = "copy",
    convention: str | None = "ome",
    max_mem: int | str = "256 MiB",
    overwrite: bool = False,
    scheduler: Any = None,
    storage_options: dict[str, Any] | None = None,
    source_options: dict[str, Any] | None = None,
    target_options: dict[str, Any] | None = None,
    **details: Any,
) -> PyramidPlan:
    """Plan to store an array at several resolutions, each computed from the one before.

    Nothing is written before the plan is executed: ``plan.execute()``. Each chunk of the source is
    decoded once, and no level is read back.

    Parameters
    ----------
    source : URL, Store, Array, dask.array.Array, numpy.ndarray or xarray.DataArray
        The array to read: level 0. The values of a DataArray are stored unchanged, without its
        encoding.
    target : str, os.PathLike, MutableMapping, Store or Group
        The location of the new group. If the source is an array in this group, it is level 0 and is
        not copied; the other levels are added to the group.
    component : str, optional
        The path of the group below `target`.
    levels : int, optional
        The number of levels, including level 0. By default, levels are added until the smallest one
        fits into one chunk along the axes that are reduced.
    factors : int, sequence or mapping, default 2
        The cells of a window along each axis, which become one cell of the next level. An int is
        for the last two axes; a mapping is by axis number or dimension name, and keeps all other
        axes; a sequence has one number for each axis. A sequence of these has one item for each
        level after level 0.
    method : {"mean", "nearest", "min", "max", "sum", "mode", "median"}, optional
        How the cells of a window become one. Integers are rounded half to even; sums that exceed
        the data type become its limit. "nearest" is the cell nearest to the centre, the first of
        several; "mode" the most frequent value, the smallest if several are. The default is "mode"
        for bool and for labels: arrays in a group ``labels``, or with the attributes of CF for
        flags. Otherwise it is "mean".
    skipna : bool or "fill", default True
        Whether NaN, and the values in the attributes ``_FillValue`` and ``missing_value``, are left
        out; with "fill", the fill value, too. A window without other values is missing.
    borders : {"trim", "pad", "partial"}, optional
        How the end of an axis is treated if its length is not a multiple of the factor: the last
        cells are left out, the last cell is repeated, or the last window has fewer cells. The
        default depends on the convention.
    chunks, shards : int, str, sequence or mapping, optional
        As in `zarrdask.rechunk`, for all levels. By default as in the source.
    level_0 : {"copy", "omit"}, default "copy"
        Whether level 0 is stored in the new group, too. If chunks and codecs stay the same, its
        stored bytes are copied unchanged.
    convention : {"ome", "geozarr", None}
        How the attributes of the group describe the levels.
    max_mem : int or str, default "256 MiB"
        The bytes by which each process may grow.
    overwrite : bool, default False
        Whether a node at the target is removed when the plan is executed. If False, raise
        `NodeExistsError` when one exists.
    scheduler : str or Client, optional
        The scheduler that will execute the plan, as in `PyramidPlan.execute`.
    storage_options : dict, optional
        Options of fsspec for `source` and `target`; they do not apply to a local path.
    source_options, target_options : dict, optional
        Options of fsspec for one of the two, instead of `storage_options`.
    **details
        Other properties of the new arrays, as in `zarrdask.rechunk`, and arguments of the
        convention.

    Returns
    -------
    PyramidPlan
        The plan prints, is drawn in notebooks, and has a method `execute`.

    Raises
    ------
    MetadataError
        If options do not fit together, or if `max_mem` is too small: the error names the smallest
        value that works.
    UnsupportedError
        If the method can't combine values of the array's data type.
    NodeExistsError
        If there is a node at the target, or if the target lies in the source or around it.

    Examples
    --------
    >>> import numpy as np
    >>> import zarrdask
    >>> image = zarrdask.create_array({}, shape=(4, 4), dtype="u1", chunks=2)
    >>> image[...] = np.arange(16).reshape(4, 4)
    >>> group = zarrdask.pyramid(image, {}).execute(progress=False)
    >>> group["1"][...].tolist()
    [[2, 4], [10, 12]]
    """
    of_source, of_target = options_of_each(
        storage_options, (source, source_options), (target, target_options)
    )
    style = find_convention(convention)
    one_of(level_0, "level_0", ("copy", "omit"))
    one_of(borders, "borders", (None, "trim", "pad", "partial"))
    memory = config.parse_size(max_mem, "max_mem")
    _check_details(details, convention)
    names = {field.name for field in fields(Changes)}
    changes = {name: details.pop(name) for name in names & details.keys()}
    read = find_source(source, of_source, {"chunks": chunks, "shards": shards, **changes})
    with workers(scheduler) as on:
        options = PyramidOptions(
            levels=levels,
            factors=factors,
            method=method,
            skipna=skipna,
            borders=borders or style.borders,
            has_level_0=level_0 == "copy",
            name=convention,
            convention=style,
            details=details,
            memory=memory,
            overwrite=overwrite,
            on=on,
        )
        node = locate_target(target, component, of_target)
        return plan_pyramid(read, from_image(node) if convention == "ome" else node, options)


def _check_details(names: Iterable[str], convention: str | None) -> None:
    """Check that the convention, or the arrays, take arguments of these names."""
    own = arguments_of(convention)
    for name in names:
        others = [each for each in CONVENTIONS if name in arguments_of(each)]
        if others and name not in own:
            raise TypeError(
                f"pyramid() takes {name!r} with convention={others[0]!r}, and has "
                f"convention={convention!r}"
            )
    check_options(names, pyramid, Changes, own)
