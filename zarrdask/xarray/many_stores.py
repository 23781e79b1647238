"""`open_many`: many stores as one dataset, whose variables are concatenations."""

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import xarray

from zarrdask.arrays.chunks.members.concatenated_store import ConcatenatedStore
from zarrdask.arrays.chunks.members.concatenation import Concatenation
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.arrays.nodes.arguments import suggests_arguments
from zarrdask.arrays.nodes.concatenations.concat_groups import GroupJoin, Level, concat_groups
from zarrdask.arrays.nodes.concatenations.concatenated import save as save_concatenation
from zarrdask.arrays.nodes.concatenations.group_table import open_groups
from zarrdask.arrays.nodes.concatenations.join_sources import recipe_of
from zarrdask.arrays.nodes.concatenations.joined_metadata import common_attributes
from zarrdask.arrays.nodes.concatenations.member_table import in_memory
from zarrdask.arrays.nodes.concatenations.source_table import parse_sources
from zarrdask.arrays.nodes.group import Group
from zarrdask.arrays.nodes.open import open_array
from zarrdask.errors import MetadataError, StoreError, ZarrdaskError, one_of
from zarrdask.xarray.joined_times import joined_times
from zarrdask.xarray.opening import open_zarr

if TYPE_CHECKING:
    from xarray import Dataset

#: How xarray combines the attributes of datasets.
_COMBINE = ("drop", "identical", "no_conflicts", "drop_conflicts", "override")
_STORED: dict[Any, Any] = {}
#: The keys of errors about arguments, with which xarray could not combine the groups either.
_ARGUMENTS = ("dim", "combine_attrs")
#: So many URLs at most are part of a message.
_MAX_LISTED = 4


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
    symbolic layer of Dask, for any number of groups.

    Parameters
    ----------
    urls : str, list or nested list
        The groups: URLs, paths or stores, or a pattern. In nested lists, the outer level is for
        `new_dim`, and the inner one for `concat_dim`: ``urls[run][lead]``.
    concat_dim : str or sequence of str, optional
        The dimension along which groups are joined; for nested lists, one for each level that is
        not for `new_dim`.
    new_dim : str or mapping of str to values, optional
        A dimension along which all variables but coordinates are stacked, and its coordinate. By
        default that is the scalar coordinate of this name, if the groups have one.
    coords : {"check", "first"}
        Whether variables without these dimensions must be equal in all groups, which reads them,
        or are taken from the first group.
    chunks
        As in `open_zarr`.
    group : str, optional
        The path of the group in each store.
    storage_options : dict, optional
        Options for fsspec, for all URLs.
    combine_attrs : {"override", "drop", "identical", "no_conflicts", "drop_conflicts"}
        How attributes are combined, as in `xarray.combine_nested`. By default, the attributes of
        the first group are used.
    drop_variables : str or iterable of str, optional
        Variables that are not opened.
    save : str or os.PathLike, optional
        The location to save the list of members, as `ConcatenatedArray.save` does, so that
        `open_zarr` opens the dataset without requests to the groups.
        ``zarrdask.open(save).refresh()`` finds new groups.
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
        are made equal if that is exact. The message has the call of `open_mfdataset` by which
        xarray combines such groups, one by one.

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
    values = dict(new_dim) if isinstance(new_dim, Mapping) else {}
    skip = [drop_variables] if isinstance(drop_variables, str) else list(drop_variables or ())
    join = _Join(
        concat_dim=[concat_dim] if isinstance(concat_dim, str) else list(concat_dim or ()),
        new_dim=list(values) if values else [] if new_dim is None else [str(new_dim)],
        coords=coords,
        group=group,
        combine_attrs=combine_attrs,
        drop_variables=skip,
        given=list(values),
    )
    store = _joined(urls, join, storage_options)
    _add_coordinates(store, {dim: _in_memory(dim, each) for dim, each in values.items()})
    if save is not None:
        has_options = isinstance(save, str | os.PathLike) and "://" in os.fspath(save)
        save_concatenation(store, save, storage_options if has_options else None)
    return open_zarr(Group(NodePath(store, ""), store.groups[""]), chunks=chunks, **options)


class _Join(NamedTuple):
    """How groups are joined: the arguments of `open_many`, as JSON has them."""

    concat_dim: list[str]
    new_dim: list[str]
    coords: Literal["check", "first"]
    group: str | None
    combine_attrs: Any
    drop_variables: list[str]
    #: The new dimensions whose coordinates the user gave.
    given: list[str]

    def levels(self, count: int) -> list[Level]:
        """Return the dimension along which each level of lists is joined."""
        levels = [
            *(Level(dim, is_new=True) for dim in self.new_dim),
            *(Level(dim, is_new=False) for dim in self.concat_dim),
        ]
        if len(levels) != count:
            raise MetadataError(
                "there must be one dimension for each level of lists",
                key="concat_dim",
                found=[level.dim for level in levels],
                expected=f"{count} dimensions, of concat_dim and new_dim",
            )
        return levels


def _joined(urls: Any, join: _Join, storage_options: dict[str, Any] | None) -> ConcatenatedStore:
    """Return groups as one group."""
    table = parse_sources(urls, storage_options)
    levels = join.levels(len(table.counts))
    if any(source is None or source.region is not None for source in table.sources):
        raise MetadataError(
            "groups are joined as a whole, and none may be missing; select from the dataset",
            key="urls",
            expected="URLs, paths, stores or groups",
        )
    arrays = [source.array for source in table.sources if source is not None]
    groups = open_groups(
        arrays,
        table.counts,
        component=join.group,
        storage_options=storage_options,
        skip=join.drop_variables,
    )
    combine = partial(_combined, how=join.combine_attrs)
    try:
        store = concat_groups(groups, GroupJoin(levels, join.coords, combine, joined_times))
    except ZarrdaskError as error:
        if error.key not in _ARGUMENTS and not isinstance(error, StoreError):
            call = _call_of_xarray(urls, join, storage_options)
            error.message += f"; xarray combines such groups one by one: {call}"
        raise
    store.recipe = recipe_of("open_many", urls, **join._asdict())
    return store


def remake(
    store: ConcatenatedStore, recipe: dict[str, Any], options: dict[str, Any] | None
) -> ConcatenatedStore:
    """Return the concatenation that the recipe of a saved dataset makes now."""
    sources, join = recipe.pop("sources"), _Join(**recipe)
    remade = _joined(sources, join, options)
    _add_coordinates(remade, {dim: store.arrays[dim] for dim in join.given})
    return remade


def _call_of_xarray(urls: Any, join: _Join, storage_options: Any) -> str:
    """Return the call by which xarray combines groups, as text."""
    dims = [*join.new_dim, *join.concat_dim]
    how: dict[str, Any] = {"combine": "nested", "concat_dim": dims[0] if len(dims) == 1 else dims}
    source = "urls"
    if isinstance(urls, str | os.PathLike):
        source = repr(os.fspath(urls))
        names = [str(each.array) for each in parse_sources(urls, storage_options).sources if each]
        if names != sorted(names):
            # It sorts what matches a pattern by the characters, not by numbers.
            source = repr(names) if len(names) <= _MAX_LISTED else "urls"
    how |= {
        "data_vars": "all" if join.new_dim else "minimal",
        "coords": "minimal",
        "compat": "override",
        "join": "outer",
        "combine_attrs": join.combine_attrs,
        "group": join.group,
        "drop_variables": join.drop_variables or None,
    }
    passed = "".join(f", {name}={each!r}" for name, each in how.items() if each is not None)
    passed += ", storage_options=storage_options" if storage_options else ""
    return f"zarrdask.xarray.open_mfdataset({source}{passed})"


# --------------------------------------------------------------------------------------------
# The coordinates of new dimensions


def _in_memory(dim: str, values: Any) -> Concatenation:
    """Return the values of a coordinate as an array in memory."""
    # Imported here: the writer needs Dask.
    from zarrdask.xarray.writing.dataset_writer import to_zarr

    target: dict[str, bytes] = {}
    to_zarr(xarray.Dataset(coords={dim: values}), target)
    return in_memory(open_array(target, dim))


def _add_coordinates(store: ConcatenatedStore, coordinates: Mapping[str, Concatenation]) -> None:
    """Add the coordinates of new dimensions, if they have the lengths of these."""
    for dim, coordinate in coordinates.items():
        for array in list(store.arrays.values()):
            names = array.metadata.dimension_names or ()
            expected = array.metadata.shape[names.index(dim)] if dim in names else None
            if expected is not None and coordinate.metadata.shape != (expected,):
                raise MetadataError(
                    "the coordinate must have one value for each group along the dimension; if "
                    "there are more groups than before, call open_many again",
                    key=f"new_dim[{dim!r}]",
                    found=coordinate.metadata.shape,
                    expected=f"{expected} values",
                )
        store.arrays[dim] = coordinate


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
        # Attributes that only some groups have are kept, as by xarray.
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
