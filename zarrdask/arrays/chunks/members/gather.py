"""Gather elements of a concatenation from the members that a request overlaps."""

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from zarrdask.arrays.chunks.members.concatenation import Concatenation, Member
from zarrdask.arrays.chunks.members.stale_members import check_members
from zarrdask.arrays.chunks.read import request_shape
from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.arrays.chunks.together import ArrayRead, read_alone, read_together
from zarrdask.errors import CodecError
from zarrdask.formats.codecs.decode import Blocks, put_fill
from zarrdask.formats.indexing.projection import AnyRequest, Points, Regions, Request, project
from zarrdask.formats.indexing.selection import pick_size
from zarrdask.runtime import buffers
from zarrdask.runtime.threads import on_each, thread_count

#: From so many members for each thread on, each thread reads whole members.
_MEMBERS_PER_THREAD = 2


class _Part(NamedTuple):
    """Elements of one member that are in one block of the result."""

    request: Request
    #: The memory for them: a part of the block, or memory of their own.
    memory: np.ndarray
    #: The block and the index in it to which memory of their own is copied; None if it is not.
    target: tuple[np.ndarray, Any] | None
    shape: tuple[int, ...]

    def finish(self) -> None:
        """Copy the elements to the result, unless they were read into it."""
        if self.target is not None:
            block, index = self.target
            block[index] = self.memory.reshape(self.shape)


class _Piece(NamedTuple):
    """The read from one member."""

    read: ArrayRead
    parts: list[_Part]

    def finish(self) -> None:
        """Copy the elements to the result."""
        for part in self.parts:
            part.finish()


def gather(
    concatenation: Concatenation,
    request: AnyRequest,
    out: np.ndarray | Blocks,
    *,
    threads: int | None,
) -> None:
    """Read the requested elements to a block, or to several; as `read_region`.

    Requests to remote members are in flight together.
    """
    if concatenation.is_saved:
        cells = project(request, concatenation.axes).indices
        check_members(concatenation, filter(None, map(concatenation.member, cells)))
    pieces = list(_pieces(concatenation, request, out))
    if any(piece.read.chunks.costs.overlaps for piece in pieces):
        for number in read_together(piece.read for piece in pieces):
            pieces[number].finish()
        return
    is_many = len(pieces) >= _MEMBERS_PER_THREAD * thread_count(threads)

    def read(piece: _Piece) -> None:
        try:
            read_alone(piece.read, threads=1 if is_many else threads, show=False)
        except CodecError as error:
            raise error.within(piece.read.chunks.store.url) from error.__cause__
        piece.finish()

    on_each(read, pieces, threads if is_many else 1)


def _pieces(
    concatenation: Concatenation, request: AnyRequest, out: np.ndarray | Blocks
) -> Iterator[_Piece]:
    """Yield the read from each member; missing members are filled in."""
    metadata = concatenation.metadata
    for index, inside, outside in zip(*project(request, concatenation.axes), strict=True):
        member = concatenation.member(index)
        if member is None:
            put_fill(out, outside, metadata.fill)
            continue
        # None stands for all elements of a member.
        spans = zip(concatenation.axes, index, strict=True)
        whole = tuple(slice(0, axis.span(at)[1] - axis.start(at), 1) for axis, at in spans)
        chunks = member.chunks(concatenation.options)
        part = partial(_part, concatenation, member, chunks)
        if isinstance(out, Blocks):
            targets = [(out.blocks[number], own) for number, own in outside]
            pairs = zip(inside.regions, targets, strict=True)
            parts = [part(whole if own is None else own, *target) for own, target in pairs]
            requests = Regions(tuple([each.request for each in parts]))  # type: ignore[misc]
            blocks = Blocks([each.memory for each in parts], chunks.metadata.dtype)
            yield _Piece(ArrayRead(chunks, requests, blocks), parts)
        else:
            own = part(whole if inside is None else inside, out, outside)
            yield _Piece(ArrayRead(chunks, own.request, own.memory), [own])


def _part(
    concatenation: Concatenation,
    member: Member,
    chunks: StoredChunks,
    inside: Request,
    out: np.ndarray,
    outside: Any,
) -> _Part:
    added = concatenation.added
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
            return _Part(request, out[(*index, ...)], None, shape)
    memory = buffers.empty(request_shape(request), chunks.metadata.dtype)
    return _Part(request, memory, (out, outside), shape)


def _is_whole(member: Member) -> bool:
    """Whether a member has all axes of its array."""
    return len(member.axes) == len(member.region)


def is_region(request: Request) -> bool:
    """Whether a request selects a slice of each axis."""
    return not isinstance(request, Points) and all(isinstance(pick, slice) for pick in request)
