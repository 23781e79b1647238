"""Leases: locks that are values in a store, which exclude the writers of all machines."""

import os
import random
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Event, Thread
from typing import Any, ClassVar
from uuid import uuid4

from zarrdask.errors import StoreError, UnsupportedError
from zarrdask.runtime.system import clock
from zarrdask.storage.base import Store


@dataclass
class Lease:
    """A lock that is a value in a store.

    Attributes
    ----------
    key : str
        The key of the value.
    name : bytes
        The name of the writer that took the lease, with which the value begins.
    held_until : float
        Until when the lease is known to be held, by the clock of this process. Nobody can take it
        for `EXPIRY` seconds after a renewal; half of them are relied on.
    is_settled : bool
        Whether the change is complete, so that losing the lease no longer matters.
    """

    #: Seconds between two renewals, and seconds without any after which others take the lease.
    RENEWAL: ClassVar[float] = 10.0
    EXPIRY: ClassVar[float] = 60.0
    #: Seconds after which a writer that can't see the renewals of its lease checks again, before it
    #: stores anything, that it holds the lease.
    CHECK_INTERVAL: ClassVar[float] = 1.0

    key: str
    name: bytes
    held_until: float = float("-inf")
    is_settled: bool = False

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.key, self.name)

    def check(self, store: Store) -> None:
        """Check that the lease is held, by a request if that is not known."""
        now = clock()
        if now <= self.held_until:
            return
        value = store.get(self.key)
        if value is None or not bytes(value).startswith(self.name):
            raise StoreError(
                "another writer took this lease, which was not renewed in time: nothing more is "
                "written",
                key=f"{store.url}/{self.key}",
            )
        self.held_until = now + self.CHECK_INTERVAL

    def renewed(self, at: float) -> None:
        """Note that the lease was renewed by a request that was sent at a time."""
        self.held_until = at + self.EXPIRY / 2

    @classmethod
    @contextmanager
    def hold(cls, store: Store, key: str) -> "Iterator[Lease | None]":
        """Hold a lock that is a value in a store, which excludes the writers of all machines.

        The store has `compare_and_swap`. The holder renews the value, and erases it at the end. If
        it is killed, the next one waits until the value has not changed for `EXPIRY` seconds of its
        own clock, and replaces it then. Where the server has no conditional writes, nothing is
        locked, and the result is None. If another writer took the lease, as this one could not
        renew it in time, a `StoreError` is raised at the end.
        """
        name = f"{socket.gethostname()} {os.getpid()} {uuid4().hex}".encode()
        taken = _take(store, key, name)
        if taken is None:
            yield None
            return
        held = cls(key, name)
        held.renewed(taken)
        ended, lost = Event(), Event()
        renewal = Thread(target=_renew, args=(store, held, ended, lost), daemon=True)
        renewal.start()
        try:
            yield held
        finally:
            ended.set()
            renewal.join()
            if not lost.is_set():
                store.erase(key)
        if lost.is_set() and not held.is_settled:
            raise StoreError(
                "another writer changed the shape at the same time, as this one could not renew "
                "its lease in time; check the array",
                key=f"{store.url}/{key}",
            )


def _take(store: Store, key: str, name: bytes) -> float | None:
    """Store a name as the value of a lease when no other writer holds it, if the server can.

    The result is when the request was sent, by the clock of this process; None if the server can't.
    """
    tag, since = None, 0.0
    while True:
        try:
            is_free, sent = tag is None or time.monotonic() - since > Lease.EXPIRY, clock()
            if is_free and store.swap(key, name, tag):
                return sent
        except UnsupportedError:
            return None
        _, found = store.get_tagged(key)
        if found != tag:
            tag, since = found, time.monotonic()
        if tag is not None:
            time.sleep(random.uniform(0.02, 0.2))


def _renew(store: Store, held: Lease, ended: Event, lost: Event) -> None:
    """Change the value of a lease from time to time, so that others see that it is held.

    A renewal is a check, too: it succeeds only if no other writer took the lease. At the end, a
    lease that could not be renewed for long, as the process was stopped, is read.
    """
    key, name = held.key, held.name
    number, renewed, is_last = 0, clock(), False
    while not is_last:
        is_last, now = ended.wait(Lease.RENEWAL), clock()
        if is_last and now - renewed < Lease.EXPIRY / 2:
            return
        with suppress(StoreError):  # The next attempt may succeed.
            value, tag = store.get_tagged(key)
            number += 1
            if value is None or not bytes(value).startswith(name):
                lost.set()
                return
            if store.swap(key, b"%s %d" % (name, number), tag):
                renewed = now
                held.renewed(now)
