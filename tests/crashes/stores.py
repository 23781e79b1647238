"""Stores in memory that record their operations, and let one of them go wrong."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar

from zarrdask.storage.capabilities import Capabilities
from zarrdask.storage.memory import MemoryStore

Act = Callable[[], Any]


class Killed(BaseException):
    """The process is gone: this is no Exception, and nothing may catch it and go on."""


class Mishap(Enum):
    """What goes wrong at one operation."""

    #: The process is gone before the operation, and so after the one before it.
    DEATH = "death"
    #: A value can't be read, or keys can't be listed.
    READ_ERROR = "read error"
    #: The operation fails, and has done nothing.
    ERROR = "error"
    #: The operation fails, but the value was stored or erased.
    LATE_ERROR = "late error"
    #: A conditional write is repeated below the store, as its answer was lost, and then refused.
    REFUSAL = "refusal"


#: The operations that change a value.
WRITES = ("set", "create", "swap", "erase")


@dataclass
class Script:
    """What happens to the operations of a store: they are recorded, and one may go wrong."""

    mishap: Mishap | None = None
    #: The number of the operation that goes wrong.
    number: int = -1
    #: The operations so far: their names and keys.
    log: list[tuple[str, str]] = field(default_factory=list)
    is_dead: bool = False
    #: Called before each operation.
    before: Act = lambda: None

    def run(self, name: str, key: str, operation: Act, part: Act = lambda: None) -> Any:
        """Run an operation, or let it go wrong; `part` does what a process does before it dies."""
        number = len(self.log)
        self.before()
        self.log.append((name, key))
        mishap = self.mishap if number == self.number else None
        if mishap is Mishap.DEATH:
            part()
            self.is_dead = True
        if self.is_dead:
            raise Killed(f"before {name} {key}")
        if mishap in (Mishap.READ_ERROR, Mishap.ERROR):
            raise OSError(f"an error before {name} {key}")
        result = operation()
        if mishap is Mishap.LATE_ERROR:
            raise OSError(f"an error after {name} {key}")
        return False if mishap is Mishap.REFUSAL else result


class ScriptedStore(MemoryStore):
    """Values in memory, by operations that each affect one key; `script` says how they end.

    An operation on many keys is one operation for each key, so the process can be gone in the
    middle of it. A single value is stored and erased as a whole, as each store guarantees.
    """

    #: Whether `values` is all that a process leaves that dies before an operation.
    is_left_by_death: ClassVar = True
    #: The operations that can go wrong in each way.
    affected: ClassVar = {
        Mishap.DEATH: WRITES,
        Mishap.READ_ERROR: ("get", "list"),
        Mishap.ERROR: WRITES,
        Mishap.LATE_ERROR: WRITES,
        Mishap.REFUSAL: (),
    }

    def __init__(self, values: dict[str, bytes] | None = None) -> None:
        super().__init__()
        self.values.update(values or {})
        self.script = Script()

    def run(self, name: str, key: str, operation: Any, *arguments: Any) -> Any:
        return self.script.run(name, key, lambda: operation(*arguments))

    def get(self, key):
        return self.run("get", key, super().get, key)

    def set(self, key, value):
        self.run("set", key, super().set, key, value)

    def set_many(self, values):
        for key, value in values:
            self.set(key, value)

    def create(self, key, value):
        return self.run("create", key, self._create, key, bytes(value))

    def _create(self, key, value):
        return self.values.setdefault(key, value) is value

    def erase(self, key):
        self.run("erase", key, super().erase, key)

    def list_prefix(self, prefix):
        return self.run(
            "list", prefix, lambda: iter([*super(ScriptedStore, self).list_prefix(prefix)])
        )


class RemoteStore(ScriptedStore):
    """The same as an object store: it has latency, and values can be replaced conditionally.

    Its client repeats requests.
    """

    capabilities = Capabilities(repeats=True, create_exclusive=True, compare_and_swap=True)
    affected: ClassVar = {**ScriptedStore.affected, Mishap.REFUSAL: ("create", "swap")}

    def get_tagged(self, key):
        value = self.get(key)
        return value, value

    def swap(self, key, value, tag):
        return self.run("swap", key, self._swap, key, bytes(value), tag)

    def _swap(self, key, value, tag):
        is_same = self.values.get(key) == tag
        if is_same:
            self.values[key] = value
        return is_same
