"""A rewrite by the workers of a cluster that hand each other what they read.

Each worker has an actor, which others ask for pieces: these go from worker to worker, and neither
the scheduler nor this process has to do with them. If a worker is lost, what was kept of the box
is, too: it is done again.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from math import prod
from queue import Empty, SimpleQueue
from time import monotonic, sleep
from typing import Any
from uuid import uuid4
from weakref import WeakValueDictionary

import numpy as np

from zarrdask.display.words import counted
from zarrdask.errors import MetadataError, StoreError, ZarrdaskError
from zarrdask.execution.executor import Workers
from zarrdask.execution.locks import make_way
from zarrdask.execution.progress import Progress
from zarrdask.indexing.selection import Region, region_shape
from zarrdask.rewrite.exchange import Exchange, Member

#: In seconds: how often one looks whether all workers are there; until the scheduler knows that
#: one is lost; until another one has come.
_LOOK, _NOTICED, _COME = 1, 5, 60
#: What a wait ends with when its time is over: the second, if distributed noticed in two places.
_TIMEOUTS = (TimeoutError, UnboundLocalError)
#: How often workers may be lost until a box is done.
_LOSSES = 3


class ActingMember:
    """A member of an exchange, as an actor: asked by others while it works.

    Parameters
    ----------
    carried : Carried
        Has the `Exchange`.
    number : int
        Which of the members it is.
    name : str
        By which this process knows it.
    """

    def __init__(self, carried: Any, number: int, name: str) -> None:
        self._do: Exchange = carried.do
        self._member = Member(carried.do)
        self._number = number
        self._peers: Sequence[Any] = ()
        self._left = threading.Event()
        self._owners: tuple[int, dict[int, int]] = (-1, {})
        _HERE[name] = self

    def meet(self, peers: Sequence[Any]) -> None:
        """Know the actors of all members."""
        self._peers = peers

    def take(self, number: int) -> None:
        """Read a region, and keep it."""
        self._member.take(number)

    async def piece(self, reader: int, writer: int) -> np.ndarray:
        """Return a piece, also while this member works: it is answered between its tasks."""
        return self._member.piece(reader, writer)

    def give(self, box: int, number: int) -> int:
        """Write a region of a box; return how many units there are then."""
        if self._owners[0] != box:
            self._owners = box, self._do.owners(box)
        owners = self._owners[1]

        def ask(reader: int, writer: int) -> Callable[[], np.ndarray]:
            owner = owners[reader]
            if owner == self._number:
                return lambda: self._member.piece(reader, writer)
            return partial(_result, self._peers[owner].piece(reader, writer), self._is_over)

        return self._member.give(number, ask)

    def _is_over(self) -> bool:
        """Whether nobody waits for this any more: the worker forgets it if the client is gone."""
        from distributed import get_worker

        actors = list(get_worker().state.actors.values())
        return self._left.is_set() or all(actor is not self for actor in actors)

    def clear(self) -> None:
        """Forget what was read."""
        self._member.clear()

    async def leave(self) -> None:
        """Wait for none of the others any more: they may be lost."""
        self._left.set()

    def attend(self) -> bool:
        """Wait a moment; return whether this is to go on."""
        return not self._left.wait(_LOOK)

    def end(self) -> None:
        """Forget all, when what was begun before has ended."""
        self._member.clear()
        self._peers = ()


#: The members in this process, as long as their workers have them.
_HERE: WeakValueDictionary[str, ActingMember] = WeakValueDictionary()


def attend(name: str) -> None:
    """Be a task as long as a member works: a worker without tasks may be closed as idle."""
    make_way()
    while (member := _HERE.get(name)) is not None and member.attend():
        del member  # if the worker forgets it, it is gone


def check_workers(on: Workers, count: int) -> None:
    """Check that there are as many workers of a cluster as an exchange was planned for.

    Raises
    ------
    MetadataError
        If they are of no cluster.
    StoreError
        If there are fewer.
    """
    if on.client is None:
        raise MetadataError(
            "workers of a cluster are to hand each other values; plan it for what executes it",
            key="scheduler",
            found=counted(on.processes, "process"),
            expected="a distributed client, or scheduler= of rechunk",
        )
    if on.processes < count:
        raise _too_few(on.processes, count)


def _too_few(found: int, count: int) -> StoreError:
    return StoreError(
        "there are fewer workers than this was planned for; plan it again, and execute it with "
        "restart=True if it was begun",
        key="scheduler",
        found=found,
        expected=count,
    )


def exchange(
    do: Exchange,
    task: Any,
    boxes: Sequence[int],
    on: Workers,
    shown: Progress,
    finished: Callable[[int], None],
) -> None:
    """Rewrite boxes of an array, one after another.

    Parameters
    ----------
    do : Exchange
    task : Carried
        The same, as workers get it.
    boxes : sequence of int
        Which.
    on : Workers
        Of a cluster.
    shown : Progress
        Counts the bytes that are read and written.
    finished : callable
        Called with the number of each box, when it is done.

    Raises
    ------
    StoreError
        If a store fails, or the cluster does, or there are fewer workers than the plan was made
        for.
    """
    # If this is a task itself, its worker is one of them.
    make_way()
    left, losses = list(boxes), 0
    while left:
        try:
            with _members(do, task, on.client) as members:
                while left:
                    _rewrite(do, left[0], members, shown)
                    finished(left.pop(0))
                    losses = 0
        except _LostError as error:
            losses += 1
            if losses > _LOSSES:
                raise StoreError(
                    "workers were lost again and again; do they have enough memory?",
                    key="scheduler",
                    found=f"{losses} times in one box",
                ) from error


class _LostError(Exception):
    """A worker is gone, and with it what it kept of a box."""


@dataclass
class _Members:
    """The actors, and the workers that they are on."""

    addresses: list[str]
    client: Any
    futures: Sequence[Any] = ()
    actors: Sequence[Any] = ()
    ended: threading.Event = field(default_factory=threading.Event)

    def all(self, work: Callable[[int], None]) -> None:
        """Do work for each of them at the same time; look now and then whether they are there.

        Raises
        ------
        _LostError
            If one is gone.
        """
        self.ended, count = threading.Event(), len(self.addresses)
        with ThreadPoolExecutor(count, thread_name_prefix="zarrdask-box") as threads:
            left = {threads.submit(work, at) for at in range(count)}
            try:
                while left:
                    done, left = wait(left, _LOOK, FIRST_EXCEPTION)
                    for future in done:
                        future.result()
                    if left and self._are_lost():
                        raise _LostError
            except ZarrdaskError:
                raise
            except Exception as error:
                self.ended.set()
                # Who asked a worker that is lost may know it before the scheduler does.
                if self._are_lost(_NOTICED):
                    raise _LostError from error
                if isinstance(error, OSError):
                    raise StoreError(f"a worker failed: {error}", key="scheduler") from error
                raise
            finally:
                self.ended.set()

    def result(self, future: Any) -> Any:
        """Return what there is to come from one, unless another one failed."""
        return _result(future, self.ended.is_set)

    def _are_lost(self, seconds: float = 0) -> bool:
        """Whether workers are gone, or will be within some time."""
        end = monotonic() + seconds
        while not self._is_lost(range(len(self.addresses))):
            if monotonic() >= end:
                return False
            sleep(0.2)
        return True

    def _is_lost(self, numbers: Iterable[int]) -> bool:
        there = _workers(self.client)
        return any(
            self.addresses[at] not in there
            or self.futures[at].status not in ("pending", "finished")
            for at in numbers
        )

    def dismiss(self) -> None:
        """Let all that are there end what they do, and leave: nothing is stored afterwards."""
        for step in ("leave", "end"):
            begun = []
            for at, actor in enumerate(self.actors):
                with suppress(RuntimeError):  # it is lost
                    begun.append((at, getattr(actor, step)()))
            for at, future in begun:
                with suppress(OSError, RuntimeError, _LostError):  # it was, meanwhile
                    _result(future, partial(self._is_lost, [at]))


def _result(future: Any, is_over: Callable[[], bool]) -> Any:
    """Return what an actor returns, unless all is over before: one that is lost never returns."""
    while not is_over():
        try:
            return future.result(timeout=_LOOK)
        except _TIMEOUTS:
            if future.done():  # it may be its own error
                return future.result()
    raise _LostError


def _workers(client: Any) -> set[str]:
    """Return the addresses of all workers that are there.

    Raises
    ------
    StoreError
        If the scheduler can't be reached.
    """
    try:
        # Not `scheduler_info`, which others of this process may change before it is returned.
        return set(client.sync(client.scheduler.identity, n_workers=-1)["workers"])
    except (OSError, RuntimeError, AttributeError) as error:
        raise StoreError(
            "the scheduler of the cluster can't be reached any more", key="scheduler"
        ) from error


@contextmanager
def _members(do: Exchange, task: Any, client: Any) -> Iterator[_Members]:
    """Have an actor on each worker."""
    # Bound to this client: those that come as results are to the one that is current.
    from distributed import Actor

    addresses, names = _addresses(do.processes, client), [uuid4().hex for _ in range(do.processes)]
    futures = [
        client.submit(
            ActingMember,
            task,
            at,
            name,
            actor=True,
            workers=[address],
            key=f"rechunk_member-{name}",
        )
        for at, (address, name) in enumerate(zip(addresses, names, strict=True))
    ]
    members = _Members(addresses, client, futures)
    attending = []
    try:
        members.all(lambda at: members.result(futures[at]))
        with client.as_current():
            both = zip(addresses, futures, strict=True)
            members.actors = [Actor(ActingMember, address, f.key) for address, f in both]
        members.all(lambda at: members.result(members.actors[at].meet(members.actors)))
        attending = [
            client.submit(attend, name, workers=[address], key=f"rechunk_attend-{name}")
            for address, name in zip(addresses, names, strict=True)
        ]
        yield members
    finally:
        members.dismiss()
        client.cancel([*futures, *attending])


def _addresses(count: int, client: Any) -> list[str]:
    """Return the addresses of so many workers."""
    end = monotonic() + _COME
    while len(found := sorted(_workers(client))) < count:
        if monotonic() > end:
            raise _too_few(len(found), count)
        sleep(0.2)
    return found[:count]


def _rewrite(do: Exchange, box: int, members: _Members, shown: Progress) -> None:
    """Rewrite a box: members read all of it, then write all of it."""
    readers, writers, count = do.readers(box), SimpleQueue[int](), _Count(shown)
    for number in do.writers(box):
        writers.put(number)

    def read(at: int) -> None:
        for number in readers[at :: do.processes]:
            members.result(members.actors[at].take(number))
            count.advance(_bytes(do, do.reads.region(number)))

    def write(at: int) -> None:
        with suppress(Empty):
            while True:
                number = writers.get_nowait()
                members.result(members.actors[at].give(box, number))
                count.advance(_bytes(do, do.units.region(number)))

    try:
        members.all(read)
        members.all(write)
        members.all(lambda at: members.result(members.actors[at].clear()))
    except BaseException:
        count.take_back()
        raise


def _bytes(do: Exchange, region: Region) -> int:
    return prod(region_shape(region)) * do.itemsize


class _Count:
    """The bytes of a box that several threads have read and written."""

    def __init__(self, shown: Progress) -> None:
        self._shown, self._mutex, self._done = shown, threading.Lock(), 0

    def advance(self, nbytes: int) -> None:
        """Count bytes."""
        with self._mutex:
            self._done += nbytes
            self._shown.advance(nbytes)

    def take_back(self) -> None:
        """Count nothing of the box: it is to be done again."""
        self._shown.advance(-self._done)
