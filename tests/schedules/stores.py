"""Kinds of stores that two writers share: each writer has a handle whose operations may pause."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar
from unittest.mock import patch

from tests.crashes.stores import Killed, RemoteStore, ScriptedStore
from zarrdask.storage.local.local_store import LocalStore
from zarrdask.storage.locks import chunk_locks as locks


@dataclass
class Pause:
    """What happens at one of the operations of a writer; they are counted."""

    #: The number of the operation before which `then` is called.
    number: int = -1
    then: Callable[[], None] = lambda: None
    log: list[tuple[str, str]] = field(default_factory=list)
    is_dead: bool = False
    #: Held during an operation: all threads of a writer stand still together.
    turn: Any = field(default_factory=threading.RLock)

    def before(self, name: str, key: str) -> None:
        """Count an operation, and pause before it if it is the one."""
        with self.turn:
            number = len(self.log)
            self.log.append((name, key))
            if number == self.number:
                self.then()
        if self.is_dead:
            raise Killed(f"before {name} {key}")

    def die(self) -> None:
        """Let the process of the writer be gone: no operation takes place any more."""
        self.is_dead = True


class Paused(ScriptedStore):
    """Values in memory, whose operations pause."""

    def __init__(self, values: dict[str, bytes], pause: Pause, url: str) -> None:
        super().__init__()
        self.values, self.pause, self.location = values, pause, url

    @property
    def url(self) -> str:
        return self.location

    def run(self, name: str, key: str, operation: Any, *arguments: Any) -> Any:
        self.pause.before(name, key)
        return operation(*arguments)


class PausedRemote(Paused, RemoteStore):
    """The same as an object store with conditional writes, whose client sends a request once."""

    capabilities = replace(RemoteStore.capabilities, repeats=False)


class PausedRepeating(Paused, RemoteStore):
    """The same where the client may repeat requests."""


class Memory:
    """A store in the memory of a process, without conditional writes."""

    store: ClassVar[type[Paused]] = Paused
    #: Whether a second machine can reach the store.
    machines: ClassVar = (1,)

    def __init__(self, folder: Path) -> None:
        self.values: dict[str, bytes] = {}

    @contextmanager
    def writer(self, pause: Pause, machine: int) -> Iterator[Any]:
        """Yield the store of a writer on a machine: locks of other machines are not known there."""
        yield self.store(self.values, pause, f"memory://{machine}")

    @contextmanager
    def reader(self) -> Iterator[Any]:
        """Yield a store that nobody pauses."""
        yield self.store(self.values, Pause(), "memory://reader")

    def snapshot(self) -> Any:
        """Return all that is stored."""
        return dict(self.values)

    def restore(self, snapshot: Any) -> None:
        """Store what a snapshot has, and nothing else."""
        self.values.clear()
        self.values.update(snapshot)


class ObjectStore(Memory):
    """An object store with conditional writes, which several machines reach."""

    store = PausedRemote
    machines = (1, 2)


class RepeatingObjectStore(ObjectStore):
    """The same, by a client that repeats requests."""

    store = PausedRepeating


#: What the thread of a writer does at operations on a local disk, and where it locks files.
_WRITER = threading.local()
_LOCAL_OPERATIONS = ("get", "get_many", "set", "create", "erase", "erase_values", "erase_prefix")


class LocalDisk:
    """A directory, which machines reach over a network, each with its own folder of lock files."""

    machines = (1, 2)

    def __init__(self, folder: Path) -> None:
        self.folder, self.root = folder, folder / "data"

    @contextmanager
    def writer(self, pause: Pause, machine: int) -> Iterator[Any]:
        locked_in = self.folder / f"locks-{machine}"
        before = vars(_WRITER).copy()
        vars(_WRITER).update(pause=pause, locks=str(locked_in))
        try:
            yield LocalStore(str(self.root))
        finally:
            vars(_WRITER).clear()
            vars(_WRITER).update(before)

    @contextmanager
    def reader(self) -> Iterator[Any]:
        with self.writer(Pause(), 0) as store:
            yield store

    def snapshot(self) -> Any:
        files = (path for path in self.root.rglob("*") if path.is_file())
        return {str(path.relative_to(self.root)): path.read_bytes() for path in files}

    def restore(self, snapshot: Any) -> None:
        import shutil

        shutil.rmtree(self.root, ignore_errors=True)
        for name, value in snapshot.items():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_bytes(value)


KINDS = {
    "memory": Memory,
    "object store": ObjectStore,
    "object store, repeated requests": RepeatingObjectStore,
    "local disk": LocalDisk,
}


def _pausing(name: str) -> Any:
    operation = getattr(LocalStore, name)

    def call(self: Any, key: Any, *arguments: Any, **options: Any) -> Any:
        if name in ("get_many", "erase_values"):
            key = list(key)
            keys = " ".join(key)
        else:
            keys = key
        if (pause := getattr(_WRITER, "pause", None)) is not None:
            pause.before(name, keys)
        return operation(self, key, *arguments, **options)

    return call


@contextmanager
def pausing_disk(default: str) -> Iterator[None]:
    """Let operations on local disks pause, and the writers of each machine lock its own files."""
    with ExitStack() as stack:
        for name in _LOCAL_OPERATIONS:
            stack.enter_context(patch.object(LocalStore, name, _pausing(name)))
        stack.enter_context(
            patch.object(locks, "lock_directory", lambda: getattr(_WRITER, "locks", default))
        )
        yield
