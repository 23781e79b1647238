"""A pass in which the workers of a cluster exchange the pieces that they have read.

Each worker has an actor from which the others request pieces. The pieces go from worker to worker,
neither through the scheduler nor through this process. If a worker is lost, the pieces that it held
are lost as well, and the box is rewritten from its beginning.
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
from zarrdask.formats.indexing.selection import Region, region_shape
from zarrdask.parallel.execution.executor import Workers
from zarrdask.parallel.execution.locks import secede_if_worker
from zarrdask.parallel.rewrite.exchange import Exchange, ExchangeMember
from zarrdask.runtime.progress import Progress
from zarrdask.storage.adapters.forks import Changes

#: Seconds between two checks whether all workers are still there.
POLL_SECONDS = 1
#: Seconds until the scheduler is certain to know that a worker is lost.
_DETECTION_SECONDS = 5
#: Seconds to wait for workers that replace lost ones.
REPLACEMENT_SECONDS = 60
#: How often workers may be lost before a box is given up.
_MAX_LOSSES = 3


class MemberActor(ExchangeMember):
    """A member of an exchange as an actor, which answers the others while it works."""

    def __init__(self, shared: Any, number: int, name: str) -> None:
        super().__init__(shared.work)
        self._number = number
        self._peers: Sequence[Any] = ()
        self._stopped = threading.Event()
        self._owners: tuple[int, dict[int, int]] = (-1, {})
        _MEMBERS[name] = self

    def meet(self, peers: Sequence[Any]) -> None:
        """Receive the actors of all members."""
        self._peers = peers

    async def send(self, reader: int, writer: int) -> np.ndarray:
        """Return a piece. A coroutine is answered by the event loop, while this member works."""
        return self.piece(reader, writer)

    def rewrite(self, box: int, number: int) -> int | Changes:
        """Write a region of a box; return what `Pass` returns."""
        if self._owners[0] != box:
            self._owners = box, self._exchange.owners(box)
        owners = self._owners[1]

        def request(reader: int, writer: int) -> Callable[[], np.ndarray]:
            owner = owners[reader]
            if owner == self._number:
                return partial(self.piece, reader, writer)
            return partial(_result, self._peers[owner].send(reader, writer), self._is_abandoned)

        return self.write(number, request)

    def _is_abandoned(self) -> bool:
        """Return whether the client of this member is gone: then the worker drops the member."""
        from distributed import get_worker

        actors = list(get_worker().state.actors.values())
        return self._stopped.is_set() or all(actor is not self for actor in actors)

    async def stop(self) -> None:
        """Stop waiting for pieces of other members: they may be lost."""
        self._stopped.set()

    def wait_until_stopped(self, seconds: float) -> bool:
        """Wait for some time at most; return whether the member was stopped."""
        return self._stopped.wait(seconds)

    def end(self) -> None:
        """Free everything, after the calls that came before have ended."""
        self.clear()
        self._peers = ()


#: The members in this process, as long as their workers keep them.
_MEMBERS: WeakValueDictionary[str, MemberActor] = WeakValueDictionary()


def keep_worker_busy(name: str) -> None:
    """Run as a task while a member works: a cluster may close a worker without tasks as idle."""
    secede_if_worker()
    # The reference must not outlive the check: the member goes when the worker drops it.
    while (member := _MEMBERS.get(name)) is not None:
        if member.wait_until_stopped(POLL_SECONDS):
            break
        del member


def check_workers(on: Workers, count: int) -> None:
    """Check that a cluster has at least the workers that an exchange was planned for."""
    if on.client is None:
        raise MetadataError(
            "this plan needs the workers of a cluster, which send each other values; pass the "
            "scheduler that executes the plan to rechunk as well",
            key="scheduler",
            found=counted(on.processes, "process"),
            expected="a distributed client",
        )
    if on.processes < count:
        raise _too_few_workers(on.processes, count)


def _too_few_workers(number: int, count: int) -> StoreError:
    return StoreError(
        "the cluster has fewer workers than the plan was made for; plan again, and execute the new "
        "plan with restart=True if the old one had begun",
        key="scheduler",
        found=number,
        expected=count,
    )


def run_exchange(
    exchange: Exchange,
    shared: Any,
    boxes: Sequence[int],
    on: Workers,
    shown: Progress,
    finished: Callable[[int], None],
) -> None:
    """Rewrite boxes of an array, one after another."""
    # If this is a task itself, it occupies one of the workers.
    secede_if_worker()
    remaining, losses = list(boxes), 0
    while remaining:
        try:
            with _started_members(exchange, shared, on.client) as members:
                while remaining:
                    _rewrite_box(exchange, remaining[0], members, shown)
                    finished(remaining.pop(0))
                    losses = 0
        except _WorkerLostError as error:
            losses += 1
            if losses > _MAX_LOSSES:
                raise StoreError(
                    "workers of the cluster were lost repeatedly; check that they have enough "
                    "memory",
                    key="scheduler",
                    found=f"{losses} losses during one box",
                ) from error


class _WorkerLostError(Exception):
    """A worker is lost, and with it the pieces of a box that it held."""


@dataclass
class _Members:
    """The actors of an exchange, and the addresses of their workers."""

    addresses: list[str]
    client: Any
    futures: Sequence[Any] = ()
    actors: Sequence[Any] = ()
    ended: threading.Event = field(default_factory=threading.Event)

    def all(self, work: Callable[[int], None]) -> None:
        """Call a function for the number of each member, at the same time."""
        self.ended, count = threading.Event(), len(self.addresses)
        with ThreadPoolExecutor(count, thread_name_prefix="zarrdask-box") as threads:
            running = {threads.submit(work, number) for number in range(count)}
            try:
                while running:
                    done, running = wait(running, POLL_SECONDS, FIRST_EXCEPTION)
                    for future in done:
                        future.result()
                    if running and self._are_lost():
                        raise _WorkerLostError
            except ZarrdaskError:
                raise
            except Exception as error:
                self.ended.set()
                # A request to a lost worker may fail before the scheduler knows of the loss.
                if self._are_lost(_DETECTION_SECONDS):
                    raise _WorkerLostError from error
                if isinstance(error, OSError):
                    raise StoreError(f"a worker failed: {error}", key="scheduler") from error
                raise
            finally:
                self.ended.set()

    def wait_for_start(self, number: int) -> None:
        """Wait until an actor is started, unless another one fails first."""
        # Not `result`: the futures of a client are gathered in one request, which a wait that times
        # out cancels for all threads.
        future = self.futures[number]
        error = _wait(future.exception, future.done, self.ended.is_set)
        if error is not None:
            raise error

    def result(self, future: Any) -> Any:
        """Return the result of a call of one member, unless another member fails first."""
        return _result(future, self.ended.is_set)

    def _are_lost(self, seconds: float = 0) -> bool:
        """Return whether workers are lost, or will be within some seconds."""
        end = monotonic() + seconds
        while not self._is_lost(range(len(self.addresses))):
            if monotonic() >= end:
                return False
            sleep(0.2)
        return True

    def _is_lost(self, numbers: Iterable[int]) -> bool:
        """Return whether any of these members is lost."""
        addresses = _worker_addresses(self.client)
        return any(
            self.addresses[number] not in addresses
            or self.futures[number].status not in ("pending", "finished")
            for number in numbers
        )

    def dismiss(self) -> None:
        """Let all members finish their current call and end: nothing is stored afterwards."""
        for step in ("stop", "end"):
            calls = []
            for number, actor in enumerate(self.actors):
                with suppress(RuntimeError):  # the worker is lost
                    calls.append((number, getattr(actor, step)()))
            for number, future in calls:
                with suppress(OSError, RuntimeError, _WorkerLostError):  # the worker was lost
                    _result(future, partial(self._is_lost, [number]))


def _result(future: Any, is_over: Callable[[], bool]) -> Any:
    """Return the result of an actor's method, or raise if the exchange ends before."""
    return _wait(future.result, future.done, is_over)


def _wait(
    answer: Callable[..., Any], is_done: Callable[[], bool], is_over: Callable[[], bool]
) -> Any:
    """Call a method that waits for a future, for short times only: a lost actor never returns."""
    while not is_over():
        try:
            return answer(timeout=POLL_SECONDS)
        except TimeoutError:
            if is_done():  # the actor itself may have raised it
                return answer()
    raise _WorkerLostError


def _worker_addresses(client: Any) -> set[str]:
    """Return the addresses of all workers of a cluster."""
    try:
        # Other threads may change `scheduler_info` before it is returned.
        return set(client.sync(client.scheduler.identity, n_workers=-1)["workers"])
    except (OSError, RuntimeError, AttributeError) as error:
        raise StoreError(
            "the scheduler of the cluster can't be reached any more", key="scheduler"
        ) from error


@contextmanager
def _started_members(exchange: Exchange, shared: Any, client: Any) -> Iterator[_Members]:
    """Start an actor on each worker, and end them afterwards."""
    from distributed import Actor

    addresses = _wait_for_workers(exchange.processes, client)
    names = [uuid4().hex for _ in range(exchange.processes)]
    futures = [
        client.submit(
            MemberActor,
            shared,
            number,
            name,
            actor=True,
            workers=[address],
            key=f"rechunk_member-{name}",
        )
        for number, (address, name) in enumerate(zip(addresses, names, strict=True))
    ]
    members = _Members(addresses, client, futures)
    busy_tasks = []
    try:
        members.all(members.wait_for_start)
        # The actors that are results of futures belong to the current client, not to this one.
        with client.as_current():
            pairs = zip(addresses, futures, strict=True)
            members.actors = [Actor(MemberActor, address, f.key) for address, f in pairs]
        members.all(lambda number: members.result(members.actors[number].meet(members.actors)))
        busy_tasks = [
            client.submit(keep_worker_busy, name, workers=[address], key=f"rechunk_attend-{name}")
            for address, name in zip(addresses, names, strict=True)
        ]
        yield members
    finally:
        members.dismiss()
        client.cancel([*futures, *busy_tasks])


def _wait_for_workers(count: int, client: Any) -> list[str]:
    """Return the addresses of a number of workers, as soon as the cluster has them."""
    end = monotonic() + REPLACEMENT_SECONDS
    while len(addresses := sorted(_worker_addresses(client))) < count:
        if monotonic() > end:
            raise _too_few_workers(len(addresses), count)
        sleep(0.2)
    return addresses[:count]


def _rewrite_box(exchange: Exchange, box: int, members: _Members, shown: Progress) -> None:
    """Rewrite a box: the members read all of it, then write all of it."""
    readers, writers, counts = exchange.readers(box), SimpleQueue[int](), list[int]()
    for number in exchange.writers(box):
        writers.put(number)

    def count(region: Region) -> None:
        nbytes = prod(region_shape(region)) * exchange.dtype.itemsize
        counts.append(nbytes)
        shown.advance(nbytes)

    def read(member: int) -> None:
        for number in readers[member :: exchange.processes]:
            members.result(members.actors[member].read(number))
            count(exchange.reads.region(number))

    def write(member: int) -> None:
        with suppress(Empty):
            while True:
                number = writers.get_nowait()
                members.result(members.actors[member].rewrite(box, number))
                count(exchange.units.region(number))

    try:
        members.all(read)
        members.all(write)
        members.all(lambda member: members.result(members.actors[member].clear()))
    except BaseException:
        shown.advance(-sum(counts))  # the box is rewritten from its beginning
        raise
