"""Divide the work on the units of an array among threads, and show its progress."""

from collections.abc import Callable
from typing import TypeVar

from zarrdask.chunks.stored import StoredChunks
from zarrdask.indexing.projection import Projection
from zarrdask.runtime.progress import Show, eager_show, progress
from zarrdask.runtime.threads import on_each, thread_count

T = TypeVar("T")

#: The number of parts for each thread: with several, all threads end at about the same time.
_PARTS = 4
#: The same if the progress is shown: the minimum number of steps of a bar.
_SHOWN_PARTS = 16


def in_parts(
    work: Callable[[Projection], T],
    chunks: StoredChunks,
    cuts: Projection,
    *,
    threads: int | None,
    label: str,
    show: Show | None,
    nbytes: int,
) -> list[T]:
    """Do work on units, divided among threads.

    Parameters
    ----------
    work : callable
        Does the work on part of the cuts.
    chunks : StoredChunks
        The array.
    cuts : Projection
        The units and their requested parts.
    threads : int, optional
        The number of threads; by default that of the setting ``zarrdask.threads``.
    label : str
        The word for the work in a progress bar.
    show : bool, file or callable, optional
        Whether and how to show a progress bar. None shows one if the work is large, and somebody
        can see it.
    nbytes : int
        The size of the elements, in bytes.

    Returns
    -------
    list
        The results of all parts.
    """
    if show is None:
        show = eager_show(nbytes)
    count = len(cuts.indices)
    if show is not False:
        with progress(count, label, show, nbytes=nbytes, leave=False) as shown:

            def work_and_show(part: Projection) -> T:
                result = work(part)
                shown.advance(len(part.indices))
                return result

            return _divided(work_and_show, cuts, threads, _SHOWN_PARTS)
    if threads == 1 or count <= 1:
        return [work(cuts)]
    # Requests to a store with latency should not be held up by the end of a part.
    return _divided(work, cuts, threads, _PARTS if chunks.units.seekable else 1)


def _divided(
    work: Callable[[Projection], T], cuts: Projection, threads: int | None, parts: int
) -> list[T]:
    """Do work on a number of parts for each thread."""
    count, threads = len(cuts.indices), thread_count(threads)
    size = max(1, -(-count // (threads * parts)))
    return on_each(work, [cuts.some(at, at + size) for at in range(0, count, size)], threads)
