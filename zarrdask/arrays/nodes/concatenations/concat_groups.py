"""Join groups by the names of dimensions: each of their arrays becomes one array, or is shared."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Literal, NamedTuple

from zarrdask.arrays.chunks.members.concatenated_store import ConcatenatedStore
from zarrdask.arrays.chunks.members.concatenation import Concatenation, Member, location_of_member
from zarrdask.arrays.nodes.concatenations.equal_members import different_members
from zarrdask.arrays.nodes.concatenations.group_table import GroupTable
from zarrdask.arrays.nodes.concatenations.joined_metadata import common_attributes, portable_names
from zarrdask.arrays.nodes.concatenations.member_table import MemberTable, join
from zarrdask.errors import MetadataError
from zarrdask.formats.dtypes.cf_fill_values import FILL_VALUE, encode_fill_value
from zarrdask.formats.grids.chunk_grid import Shape
from zarrdask.formats.metadata.model import DIMENSIONS, ArrayMetadata, GroupMetadata

#: The attributes by which elements are decoded, which must be the same in all members.
_DECODING = (
    *("units", "calendar", "scale_factor", "add_offset", "dtype", "flag_values"),
    *(FILL_VALUE, "missing_value", "_Unsigned"),
)
#: Joins the attributes of members; by default, the common attributes are kept.
JoinAttributes = Callable[[Sequence[Mapping[str, Any]]], dict[str, Any]]
#: Joins arrays whose attributes for decoding differ; returns None if it can't.
JoinDifferent = Callable[[str, MemberTable, tuple[str, ...]], Concatenation | None]


class Level(NamedTuple):
    """The dimension along which a level of lists of groups is joined."""

    dim: str
    #: Whether no array of the groups has the dimension.
    is_new: bool


class GroupJoin(NamedTuple):
    """How groups are joined."""

    levels: Sequence[Level]
    #: Whether arrays without the dimensions are compared, or the first one is taken.
    coords: Literal["check", "first"] = "check"
    attributes: JoinAttributes | None = None
    different: JoinDifferent | None = None


def concat_groups(groups: GroupTable, how: GroupJoin) -> ConcatenatedStore:
    """Return groups as one group, whose arrays are concatenations.

    An array is joined along the dimensions that it has. Along a new dimension, all arrays but
    coordinates are stacked, and the coordinate of its name. Other arrays must be equal in all
    groups.

    Raises
    ------
    NodeNotFoundError
        If the groups differ in the names of their arrays.
    MetadataError
        If no array has a dimension, arrays do not fit together, or attributes differ by which
        their elements are decoded.
    """
    names = groups.names()
    dims = {name: _dims(groups, name) for name in names}
    for dim, is_new in how.levels:
        has_dim = any(dim in each for each in dims.values())
        if has_dim == is_new:
            message = (
                "the arrays have this dimension already; concat_dim joins along it"
                if is_new
                else "no array has this dimension; new_dim stacks along a new one"
            )
            known = sorted({name for each in dims.values() for name in each})
            raise MetadataError(message, key="dim", found=dim, expected=f"one of {known}")
    coordinates = _coordinates(groups, dims)
    kept = {
        name: [
            level.dim in dims[name]
            or (level.is_new and (name == level.dim or name not in coordinates))
            for level in how.levels
        ]
        for name in names
    }
    if how.coords == "check":
        _check_equal(groups, {name: each for name, each in kept.items() if not all(each)})
    arrays = {name: _join(groups, name, dims[name], how, kept[name]) for name in names}
    every = [group.metadata.attributes for group in groups.groups]
    attributes = _joined_attributes(every, how.attributes)
    return ConcatenatedStore(arrays, {"": GroupMetadata(3, attributes)})


def _dims(groups: GroupTable, name: str) -> tuple[str, ...]:
    """Return the names of the axes of an array, which must be the same in all groups."""
    first = groups.first.arrays[name]
    names = portable_names(first)
    if names is None or None in names:
        names = tuple(f"dim_{axis}" for axis in range(len(first.shape)))
    seen = {id(first)}
    for group in groups.groups:
        metadata = group.arrays[name]
        if id(metadata) not in seen:
            seen.add(id(metadata))
            own = portable_names(metadata)
            if own is not None and own != names:
                raise MetadataError(
                    "the names of the axes differ from the first group's",
                    key=group.node.join(name).location,
                    found=own,
                    expected=names,
                )
    return names  # type: ignore[return-value]


def _coordinates(groups: GroupTable, dims: Mapping[str, tuple[str, ...]]) -> set[str]:
    """Return the names of coordinates, which are dimensions or named by an attribute."""
    arrays = groups.first.arrays
    attributes = [groups.first.metadata.attributes, *(each.attributes for each in arrays.values())]
    texts = [each.get(key) for each in attributes for key in ("coordinates", "bounds")]
    named = {name for text in texts if isinstance(text, str) for name in text.split()}
    mapped = {each.attributes.get("grid_mapping") for each in arrays.values()}
    return {n for n in arrays if dims[n] == (n,) or n in named or n in mapped}


def _join(
    groups: GroupTable,
    name: str,
    dims: tuple[str, ...],
    how: GroupJoin,
    is_kept: Sequence[bool],
) -> Concatenation:
    """Return the arrays of a name as one array, which is joined along the levels that are kept."""
    ranges = [range(n if kept else 1) for n, kept in zip(groups.counts, is_kept, strict=True)]
    counts = tuple(n for n, kept in zip(groups.counts, is_kept, strict=True) if kept)
    table = groups.table(name, counts, _numbers(groups.counts, ranges))
    kept = [level for level, is_one in zip(how.levels, is_kept, strict=True) if is_one]
    new = [level.dim for level in kept if level.dim not in dims]
    every = (*new, *dims)
    axes = tuple(every.index(level.dim) for level in kept)
    if not _has_same_decoding(table.metadata):
        joined = None if how.different is None else how.different(name, table, every)
        if joined is None:
            raise _different_decoding(groups, name, table)
        return joined
    attributes = _array_attributes(table.metadata, how.attributes)
    return join(table, axes, tuple(range(len(new))), every, attributes)


def _numbers(counts: Shape, ranges: Iterable[range]) -> list[int]:
    """Return the numbers of groups in C order, given by ranges of their indices."""
    numbers = []
    for index in product(*ranges):
        number = 0
        for count, at in zip(counts, index, strict=True):
            number = number * count + at
        numbers.append(number)
    return numbers


def _check_equal(groups: GroupTable, kept: Mapping[str, Sequence[bool]]) -> None:
    """Check that arrays are equal along the levels that the joined ones do not have."""
    tables = [
        [member for member in table if member is not None]
        for name, is_kept in kept.items()
        for table in _compared(groups, name, is_kept)
    ]
    for present, number in zip(tables, different_members(tables), strict=True):
        if number is not None:
            raise MetadataError(
                "this array differs from the first group's, though it does not have the "
                'dimension; coords="first" takes the first one',
                key=location_of_member(present[number]),
                expected=f"the elements of {location_of_member(present[0])}",
            )


def _compared(
    groups: GroupTable, name: str, is_kept: Sequence[bool]
) -> Iterator[Sequence[Member | None]]:
    """Yield the members that must be equal."""
    kept = [range(n if one else 1) for n, one in zip(groups.counts, is_kept, strict=True)]
    for index in product(*kept):
        ranges = [
            range(at, at + 1) if one else range(n)
            for n, one, at in zip(groups.counts, is_kept, index, strict=True)
        ]
        yield groups.table(name, (), _numbers(groups.counts, ranges)).members


def _decoding(metadata: ArrayMetadata) -> dict[str, Any]:
    """Return the attributes that determine how elements are decoded."""
    attributes = {key: metadata.attributes.get(key) for key in _DECODING}
    if metadata.format.fill_masks and metadata.fill_value is not None:
        attributes[FILL_VALUE] = encode_fill_value(metadata.fill_value, metadata.dtype)
    return attributes


def _has_same_decoding(different: Sequence[ArrayMetadata]) -> bool:
    first = _decoding(different[0])
    return all(_decoding(each) == first for each in different[1:])


def _different_decoding(groups: GroupTable, name: str, table: MemberTable) -> MetadataError:
    first = _decoding(table.first)
    other = next(each for each in table.metadata if _decoding(each) != first)
    key = next(key for key, value in _decoding(other).items() if value != first[key])
    return MetadataError(
        "the elements of arrays are decoded by attributes that differ, so they can't be joined "
        "without decoding them",
        key=f"{name}.attrs[{key!r}]",
        found=_decoding(other)[key],
        expected=first[key],
    )


def _array_attributes(
    different: Sequence[ArrayMetadata], joined: JoinAttributes | None
) -> dict[str, Any]:
    """Return the attributes of a joined array, as arrays of format 3 have them."""
    attributes = _joined_attributes([each.attributes for each in different], joined)
    attributes.pop(DIMENSIONS, None)
    decoding = {key: value for key, value in _decoding(different[0]).items() if value is not None}
    return attributes | decoding


def _joined_attributes(
    every: Sequence[Mapping[str, Any]], joined: JoinAttributes | None
) -> dict[str, Any]:
    return common_attributes(every) if joined is None else joined(every)
