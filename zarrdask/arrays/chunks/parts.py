"""Divide the work on the units of an array among threads, and show its progress."""

from collections.abc import Callable
from typing import TypeVar

from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.formats.indexing.projection import Projection
from zarrdask.runtime.progress import Show, eager_show, progress
from zarrdask.runtime.threads import on_each, thread_count

T = TypeVar("T")

#: The number of parts for each thread: with several, all threads end at about the same time.
_PARTS = 4
#: The same if the progress is shown: the minimum number of steps of a bar.
_SHOWN_PARTS = 16
#: The most bytes, decoded, that a part requests from a remote store.
MAX_REQUEST_BYTES = 2**28


def in_parts(
    work: Callable[[Projection], T],
    chunks: StoredChunks,
    projection: Projection,
    *,
    threads: int | None,
    label: str,
    show: Show | None,
    nbytes: int,
) -> list[T]:
    """Do work on the units of an array, divided among threads; return the results of all parts.

    `threads` is by default the setting ``zarrdask.threads``. `show` says whether and how to show a
    progress bar, with the word `label`: None shows one if the work is large (`nbytes`, the size of
    the elements), and the output is a terminal or a notebook.
    """
    count = len(projection.indices)
    if count <= 1 and not show:
        return [work(projection)]
    if show is None:
        show = eager_show(nbytes)
    threads, overlaps = thread_count(threads), chunks.costs.overlaps
    parts = 1
    if show is not False:
        parts = _SHOWN_PARTS
    elif threads > 1 and not overlaps:
        # Requests to a remote store should not be held up by the end of a part.
        parts = _PARTS
    size = max(1, -(-count // (threads * parts)))
    if overlaps:
        # Units that are requested together are in memory at the same time.
        size = min(size, max(MAX_REQUEST_BYTES // max(chunks.metadata.pipeline.spec.nbytes, 1), 1))
    pieces = (
        [projection.some(at, at + size) for at in range(0, count, size)]
        if size < count
        else [projection]
    )
    if show is False:
        return on_each(work, pieces, threads)
    with progress(count, label, show, nbytes=nbytes, leave=False) as shown:

        def work_and_show(part: Projection) -> T:
            result = work(part)
            shown.advance(len(part.indices))
            return result

        return on_each(work_and_show, pieces, threads)
