"""`open_many`: many stores as one dataset, whose variables are concatenations."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import xarray
import xarray.coding.times

from zarrdask.arrays.chunks.members.concatenation import Concatenation
from zarrdask.arrays.chunks.read import read_region
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.arrays.nodes.arguments import suggests_arguments
from zarrdask.arrays.nodes.concatenations.concat_groups import GroupJoin, Level, concat_groups
from zarrdask.arrays.nodes.concatenations.concatenated import save as save_concatenation
from zarrdask.arrays.nodes.concatenations.group_table import open_groups
from zarrdask.arrays.nodes.concatenations.member_table import MemberTable, in_memory
from zarrdask.arrays.nodes.concatenations.source_table import parse_sources
from zarrdask.arrays.nodes.create import create_array
from zarrdask.arrays.nodes.group import Group
from zarrdask.errors import MetadataError, one_of
from zarrdask.formats.metadata.concatenated import common_attributes
from zarrdask.xarray.opening import open_zarr

if TYPE_CHECKING:
    from xarray import Dataset

#: How xarray combines the attributes of datasets.
_COMBINE = ("drop", "identical", "no_conflicts", "drop_conflicts", "override")
_STORED: dict[Any, Any] = {}


@suggests_arguments
def open_many(
    urls: Any,
    concat_dim: str | Sequence[str] | None = None,
    new_dim: str | Mapping[str, Any] | None = None,
    *,
    coords: Literal["check", "first"] = "check",
    chunks: Any = _STORED,
    group: str | None = None,
    storage_options: dict[str, Any] | None = None,
    combine_attrs: Literal[
        "drop", "identical", "no_conflicts", "drop_conflicts", "override"
    ] = "override",
    drop_variables: str | Iterable[str] | None = None,
    save: Any = None,
    **options: Any,
) -> "Dataset":
    """Open many Zarr groups as one dataset; each of its variables is one read.

    The documents of all groups are requested together; then the coordinates. A variable is one
    symbolic layer of Dask, whatever the number of groups.

    Parameters
    ----------
    urls : str, list or nested list
        The groups: URLs, paths or stores, or a pattern. In nested lists, the outer level is for
        `new_dim`, and the inner one for `concat_dim`: ``urls[run][lead]``.
    concat_dim : str or sequence of str, optional
        The dimension along which groups are joined; of nested lists, one for each level that is
        not for `new_dim`.
    new_dim : str or mapping of str to values, optional
        A dimension along which all variables but coordinates are stacked, and its coordinate.
    coords : {"check", "first"}
        Whether variables without these dimensions must be equal in all groups, which reads them,
        or are those of the first group.
    chunks
        As in `open_zarr`.
    group : str, optional
        The path of the group in each store.
    storage_options : dict, optional
        Options for fsspec, for all URLs.
    combine_attrs : {"override", "drop", "identical", "no_conflicts", "drop_conflicts"}
        How attributes are combined, as in `xarray.combine_nested`. By default, they are those of
        the first group.
    drop_variables : str or iterable of str, optional
        Variables that are not opened.
    save : str or os.PathLike, optional
        Where to save the list of members, as `ConcatenatedArray.save` does, so that `open_zarr`
        opens the dataset without asking the groups.
    **options
        As in `open_zarr`: how variables are decoded.

    Returns
    -------
    xarray.Dataset

    Raises
    ------
    NodeNotFoundError
        If there is no group at a URL, nothing matches a pattern, or groups have other variables.
    MetadataError
        If variables do not fit together, or are decoded by attributes that differ: units of times
        are made equal if that is exact. xarray's `open_mfdataset` with ``engine="zarrdask"`` opens
        such groups, and all others that need more than joining.

    See Also
    --------
    open_mfdataset : Opens groups one by one, and combines the datasets.
    zarrdask.concat : Joins arrays, or groups without xarray.

    Examples
    --------
    >>> import xarray as xr
    >>> stores = [{}, {}]
    >>> for day, store in enumerate(stores):
    ...     ds = xr.Dataset({"t": ("time", [1.0, 2.0])}, {"time": [2 * day, 2 * day + 1]})
    ...     _ = ds.zarrdask.to_zarr(store)
    >>> open_many(stores, "time")["t"].values.tolist()
    [1.0, 2.0, 1.0, 2.0]
    """
    one_of(coords, "coords", ("check", "first"))
    one_of(combine_attrs, "combine_attrs", _COMBINE)
    table = parse_sources(urls, storage_options)
    levels, values = _levels(concat_dim, new_dim, len(table.counts))
    arrays = [None if source is None else source.array for source in table.sources]
    skip = [drop_variables] if isinstance(drop_variables, str) else drop_variables or ()
    groups = open_groups(
        arrays, table.counts, component=group, storage_options=storage_options, skip=skip
    )
    combine = partial(_combined, how=combine_attrs)
    store = concat_groups(groups, GroupJoin(levels, coords, combine, _joined_times))
    if save is not None:
        save_concatenation(store, save, None)
    dataset = open_zarr(Group(NodePath(store, ""), store.groups[""]), chunks=chunks, **options)
    return dataset.assign_coords(values) if values else dataset


def _levels(concat_dim: Any, new_dim: Any, count: int) -> tuple[list[Level], dict[str, Any]]:
    """Return what each level of lists is joined along, and the coordinates of new dimensions."""
    values = dict(new_dim) if isinstance(new_dim, Mapping) else {}
    new = list(values) if values else [] if new_dim is None else [new_dim]
    joined = [concat_dim] if isinstance(concat_dim, str) else list(concat_dim or ())
    levels = [
        *(Level(dim, is_new=True) for dim in new),
        *(Level(dim, is_new=False) for dim in joined),
    ]
    if len(levels) != count:
        raise MetadataError(
            "there must be one dimension for each level of lists",
            key="concat_dim",
            found=[level.dim for level in levels],
            expected=f"{count} dimensions, of concat_dim and new_dim",
        )
    return levels, values


def _combined(every: Sequence[Mapping[str, Any]], *, how: Any) -> dict[str, Any]:
    """Return the attributes of many datasets as xarray combines them."""
    if how == "drop":
        return {}
    if how == "override":
        return dict(every[0])
    distinct: list[Mapping[str, Any]] = []
    for attributes in every:
        if not distinct or attributes not in distinct[-1:]:
            distinct.append(attributes)
    if how == "drop_conflicts":
        # Those that only some have are kept, as by xarray.
        names = dict.fromkeys(name for each in distinct for name in each)
        with_all = [{n: each.get(n, _first(distinct, n)) for n in names} for each in distinct]
        return common_attributes(with_all)
    empty = [xarray.Dataset(attrs=dict(attributes)) for attributes in distinct]
    try:
        return dict(xarray.merge(empty, combine_attrs=how).attrs)
    except xarray.MergeError as error:
        raise MetadataError(
            f"the attributes differ: {error}", key="combine_attrs", found=how
        ) from error


def _first(every: Sequence[Mapping[str, Any]], name: str) -> Any:
    return next(each[name] for each in every if name in each)


# --------------------------------------------------------------------------------------------
# Times in different units


def _joined_times(name: str, table: MemberTable, dims: tuple[str, ...]) -> Concatenation | None:
    """Return times with different units as one array in memory, in the units of the first member.

    None if the array is not a coordinate of times along one axis, or its attributes differ by
    more than the units.
    """
    attributes = table.first.attributes
    is_time = all(" since " in str(each.attributes.get("units")) for each in table.metadata)
    if dims != (name,) or not is_time or len(table.counts) != 1:
        return None
    calendars = {str(each.attributes.get("calendar", "standard")) for each in table.metadata}
    others = ("scale_factor", "add_offset", "_FillValue", "missing_value")
    if len(calendars) > 1 or any(
        key in each.attributes for each in table.metadata for key in others
    ):
        return None
    units, calendar = attributes["units"], calendars.pop()
    parts = []
    for member, metadata in zip(table.members, table.labelled, strict=True):
        if member is None or metadata is None:
            return None
        stored = read_region(member.chunks(table.storage_options), member.region)
        parts.append(_in_units(name, stored, metadata.attributes["units"], units, calendar))
    values = np.concatenate(parts)
    values = values.astype(np.result_type(*(each.dtype for each in parts)))
    array = create_array(
        {},
        shape=values.shape,
        dtype=values.dtype,
        chunks=max(len(values), 1),
        dimension_names=dims,
        attributes=common_attributes(
            {**each.attributes, "units": units} for each in table.metadata
        ),
    )
    array[...] = values
    return in_memory(array)


def _in_units(name: str, values: np.ndarray, units: str, target: str, calendar: str) -> np.ndarray:
    """Return times in other units, if these represent them exactly."""
    if units == target:
        return values
    times = xarray.coding.times
    dates = times.decode_cf_datetime(values, units, calendar)
    # As floats, which xarray does not round.
    encoded = np.asarray(times.encode_cf_datetime(dates, target, calendar, np.dtype("f8"))[0])
    again = times.decode_cf_datetime(encoded, target, calendar)
    whole = encoded.astype(np.int64)
    if values.dtype.kind in "iu" and np.array_equal(whole, encoded):
        encoded = whole
    if not np.array_equal(again, dates) or (
        values.dtype.kind in "iu" and encoded.dtype.kind == "f"
    ):
        raise MetadataError(
            "the units of times differ, and the first group's do not represent these times "
            "exactly; xarray.open_mfdataset(engine='zarrdask') decodes each group by itself",
            key=f"{name}.attrs['units']",
            found=units,
            expected=target,
        )
    return encoded
