"""Tables of members, and the concatenation that has them as cells."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, product
from typing import Any

import numpy as np

from zarrdask import config
from zarrdask.arrays.chunks.members.concatenation import (
    Concatenation,
    Member,
    boundaries_of,
    location_of_member,
)
from zarrdask.arrays.chunks.members.held_values import HeldValues
from zarrdask.arrays.nodes.array import Array
from zarrdask.arrays.nodes.concatenations.joined_metadata import (
    common_attributes,
    concatenated_metadata,
)
from zarrdask.errors import CodecError, MetadataError
from zarrdask.formats.dtypes.checked_cast import check_meaning
from zarrdask.formats.grids.chunk_grid import Shape
from zarrdask.formats.indexing.selection import whole_region
from zarrdask.formats.metadata.losses import cast_loss
from zarrdask.formats.metadata.model import ArrayMetadata


@dataclass(frozen=True)
class MemberTable:
    """The members of a concatenation in C order; at least one is not missing."""

    #: The number of members along each level of lists.
    counts: Shape
    members: Sequence[Member | None]
    #: The metadata of each member, with attributes and names; None if it is missing.
    labelled: Sequence[ArrayMetadata | None]
    storage_options: Mapping[str, Any] | None = None

    @cached_property
    def metadata(self) -> list[ArrayMetadata]:
        """The different metadata of the members, the first one first."""
        return list({id(each): each for each in self.labelled if each is not None}.values())

    @property
    def first(self) -> ArrayMetadata:
        """The metadata of the first member."""
        return self.metadata[0]

    @property
    def ndim(self) -> int:
        """The number of axes of each member."""
        return next(len(member.axes) for member in self.members if member is not None)


def join(
    table: MemberTable,
    axes: tuple[int, ...],
    added: tuple[int, ...],
    names: Sequence[str | None] | None,
    attributes: Mapping[str, Any] | None = None,
) -> Concatenation:
    """Return the members of a table as one array.

    Parameters
    ----------
    table : MemberTable
    axes : tuple of int
        The axis of the result for each level of lists.
    added : tuple of int
        The axes among them that the members do not have.
    names : sequence of (str or None), optional
        The names of the axes.
    attributes : mapping, optional
        The attributes; by default those that all members have in common.

    Raises
    ------
    MetadataError
        If the shapes of the members do not fit together.
    UnsupportedError, CodecError
        If their data types have none in common, or the setting does not permit the cast.
    """
    cells = _Cells(table, axes, added)
    if attributes is None:
        attributes = common_attributes(each.attributes for each in table.metadata)
    metadata = concatenated_metadata(
        table.metadata,
        tuple(map(sum, cells.lengths)),
        cells.chunk_lengths(),
        dimension_names=names,
        attributes=attributes,
    )
    _check_casts(table.metadata, metadata)
    boundaries = tuple(map(boundaries_of, cells.lengths))
    return Concatenation(metadata, boundaries, cells.members, added, table.storage_options)


def _check_casts(members: Sequence[ArrayMetadata], metadata: ArrayMetadata) -> None:
    """Check that the setting ``zarrdask.casting`` permits the casts to a common data type."""
    casting = config.get("casting")
    for each in members if casting != "numpy" else ():
        check_meaning(each.dtype, metadata.dtype)
        loss = cast_loss(each.dtype, metadata.dtype)
        if loss is not None and casting == "safe":
            raise CodecError(
                "the setting zarrdask.casting does not permit joining arrays of these data types; "
                "set it to 'numpy', or convert the arrays first",
                key="sources",
                found=loss,
                expected="a cast without loss",
            )


def in_memory(array: Array) -> Concatenation:
    """Return an array in memory as a concatenation of one member, which has the values itself."""
    metadata, chunks = array.metadata, array._stored
    keys = [key for key in chunks.store.list_prefix(chunks.prefix) if not key.endswith(".json")]
    values = {key: chunks.store.get(key) or b"" for key in keys}
    axes, region = tuple(range(array.ndim)), whole_region(array.shape)
    member = Member(HeldValues(values), chunks.prefix, metadata, region, axes, None)
    return join(MemberTable((), [member], [metadata]), (), (), metadata.dimension_names)


class _Cells:
    """The members of a table in the order of the axes of the result, and their lengths."""

    def __init__(self, table: MemberTable, axes: tuple[int, ...], added: tuple[int, ...]) -> None:
        self.added = added
        self.ndim = table.ndim + len(added)
        #: The number of cells along each axis of the result.
        self.counts = [1] * self.ndim
        for axis, count in zip(axes, table.counts, strict=True):
            self.counts[axis] = count
        # From the order of the lists to the order of the axes.
        order = sorted(range(len(axes)), key=axes.__getitem__)
        numbers = np.arange(len(table.members)).reshape(table.counts).transpose(order)
        self.members = [table.members[number] for number in numbers.reshape(-1).tolist()]
        self.own = [axis for axis in range(self.ndim) if axis not in added]
        #: The first member with each position along each axis of the result.
        self.first: list[list[Member | None]] = [[None] * count for count in self.counts]
        self._lengths: list[list[int | None]] = [[None] * count for count in self.counts]
        for index, member in zip(product(*map(range, self.counts)), self.members, strict=True):
            if member is not None:
                self._add(index, member)
        self.lengths = [self._complete(axis) for axis in range(self.ndim)]

    def _add(self, index: tuple[int, ...], member: Member) -> None:
        shape = member.shape
        if len(shape) != len(self.own):
            raise MetadataError(
                "the sources differ in their number of axes",
                key=location_of_member(member),
                found=len(shape),
                expected=len(self.own),
            )
        for axis, length in zip(self.own, shape, strict=True):
            at = index[axis]
            known = self._lengths[axis][at]
            if known is None:
                self._lengths[axis][at], self.first[axis][at] = length, member
            elif known != length:
                raise MetadataError(
                    f"this array does not fit the others: its length along axis {axis} differs",
                    key=location_of_member(member),
                    found=length,
                    expected=known,
                )

    def _complete(self, axis: int) -> list[int]:
        """Return the lengths along an axis; missing members are as long as all others."""
        if axis in self.added:
            return [1] * self.counts[axis]
        known = {length for length in self._lengths[axis] if length is not None}
        if None in self._lengths[axis] and len(known) != 1:
            raise MetadataError(
                "the length of a missing array is not known, as the others differ in theirs",
                key="sources",
                found=sorted(known),
                expected="arrays of one length, where some are missing",
            )
        return [next(iter(known)) if n is None else n for n in self._lengths[axis]]

    def chunk_lengths(self) -> list[tuple[int, ...]]:
        """Return the lengths of the chunks along each axis, from the first members there."""
        result = []
        for axis, (lengths, first) in enumerate(zip(self.lengths, self.first, strict=True)):
            if axis in self.added:
                result.append((1,) * len(lengths))
                continue
            own = self.own.index(axis)
            typical = next(member for member in first if member is not None).lengths(own)
            parts = (typical if member is None else member.lengths(own) for member in first)
            result.append(tuple(chain.from_iterable(parts)))
        return result
