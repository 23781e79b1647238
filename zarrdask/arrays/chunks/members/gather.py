"""Gather elements of a concatenation from the members that a request overlaps."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from zarrdask.arrays.chunks.members.concatenation import Concatenation, Member
from zarrdask.arrays.chunks.members.stale_members import check_members
from zarrdask.arrays.chunks.read import read_region, request_shape
from zarrdask.arrays.chunks.together import ArrayRead, read_together
from zarrdask.errors import CodecError
from zarrdask.formats.codecs.decode import put_fill
from zarrdask.formats.indexing.projection import Points, Request, project
from zarrdask.formats.indexing.selection import pick_size, whole_region
from zarrdask.runtime import buffers
from zarrdask.runtime.threads import on_each, thread_count

#: From so many members for each thread on, each thread reads whole members.
_MEMBERS_PER_THREAD = 2


class _Piece(NamedTuple):
    """What is read from one member."""

    read: ArrayRead
    #: The shape of the elements, and their index in the result; None if they are read into it.
    shape: tuple[int, ...]
    outside: Any

    def finish(self, out: np.ndarray) -> None:
        """Copy the elements to the result, unless they were read into it."""
        if self.outside is not None:
            out[self.outside] = np.asarray(self.read.out).reshape(self.shape)


def gather(
    concatenation: Concatenation, request: Request, out: np.ndarray, *, threads: int | None
) -> None:
    """Read the requested elements to a block; as `zarrdask.arrays.chunks.read.read_region`.

    Requests to remote members are in flight together.
    """
    if concatenation.is_saved:
        cells = project(request, concatenation.axes).indices
        check_members(concatenation, filter(None, map(concatenation.member, cells)))
    pieces = list(_pieces(concatenation, request, out))
    if any(piece.read.chunks.is_remote for piece in pieces):
        for number in read_together(piece.read for piece in pieces):
            pieces[number].finish(out)
        return
    is_many = len(pieces) >= _MEMBERS_PER_THREAD * thread_count(threads)

    def read(piece: _Piece) -> None:
        chunks, own, block = piece.read
        try:
            read_region(chunks, own, threads=1 if is_many else threads, out=block)  # type: ignore[arg-type]
        except CodecError as error:
            raise error.within(chunks.store.url) from error.__cause__
        piece.finish(out)

    on_each(read, pieces, threads if is_many else 1)


def _pieces(concatenation: Concatenation, request: Request, out: np.ndarray) -> Iterator[_Piece]:
    """Yield what is read from each member; missing ones are filled in."""
    metadata = concatenation.metadata
    # None stands for all elements of a member.
    for index, inside, outside in zip(*project(request, concatenation.axes), strict=True):
        member = concatenation.member(index)
        if member is None:
            put_fill(out, outside, metadata.fill)
            continue
        if inside is None:
            inside = whole_region(
                tuple(
                    axis.span(at)[1] - axis.start(at)
                    for axis, at in zip(concatenation.axes, index, strict=True)
                )
            )
        yield _piece(concatenation, member, inside, out, outside)


def _piece(
    concatenation: Concatenation, member: Member, inside: Request, out: np.ndarray, outside: Any
) -> _Piece:
    chunks, added = member.chunks(concatenation.options), concatenation.added
    if isinstance(inside, Points):
        own = concatenation.own_axes(inside.coordinates)
        request = member.requested(Points(own))
        # The only element of a member without axes may be selected several times.
        shape: tuple[int, ...] = (len(own[0]),) if own else ()
    else:
        request = member.requested(concatenation.own_axes(inside))
        # An axis along which members are stacked may be selected several times, too.
        shape = tuple(1 if axis in added else pick_size(pick) for axis, pick in enumerate(inside))
        if _is_whole(member) and chunks.metadata.dtype == out.dtype and is_region(inside):
            axes = [] if outside is ... else list(outside)
            index = [each.start if axis in added else each for axis, each in enumerate(axes)]
            return _Piece(ArrayRead(chunks, request, out[(*index, ...)]), shape, None)
    memory = buffers.empty(request_shape(request), chunks.metadata.dtype)
    return _Piece(ArrayRead(chunks, request, memory), shape, outside)


def _is_whole(member: Member) -> bool:
    """Whether a member has all axes of its array."""
    return len(member.axes) == len(member.region)


def is_region(request: Request) -> bool:
    """Whether a request selects a slice of each axis."""
    return not isinstance(request, Points) and all(isinstance(pick, slice) for pick in request)
