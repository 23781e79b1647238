"""The crash matrix: each store operation of a verb goes wrong once.

After each mishap, a reader sees the old state or the new one (or what the documentation of the verb
says), and nothing foreign is gone. The same call made again ends with exactly the values that it
would have stored without the mishap: nothing is left behind.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import pytest

from tests.crashes.stores import Killed, Mishap, Script, ScriptedStore
from zarrdask.errors import ZarrdaskError

#: Values that no verb may touch, whose names resemble those of chunks and documents.
FOREIGN = {"notes.txt": b"mine", "2024/01": b"mine", "c/0": b"mine", "b/0.0": b"mine"}

Act = Callable[[Any], Any]

#: A death leaves most of what the other mishaps leave, which the stress suite has.
CORE_AND_STRESS = [
    pytest.param([Mishap.DEATH], id="core"),
    pytest.param([*Mishap][1:], id="stress", marks=pytest.mark.stress),
]


@dataclass(frozen=True)
class Verb:
    """A verb: a row of the matrix."""

    #: Runs the verb on a store.
    run: Act
    #: Returns what a reader sees, to be compared by ``==``.
    read: Act
    #: Stores what is there before.
    before: Act = lambda store: None
    #: Returns whether a reader may see a state that is neither the old nor the new one.
    allows: Callable[[Any], bool] = lambda seen: False
    #: The keys of values that may be missing, or older, once a reader sees the new state: such as
    #: those of consolidated metadata, which repeat what other documents say.
    derived: frozenset[str] = frozenset()
    #: Runs the verb again if a reader sees another state than the new one; by default `run`.
    again: Act | None = None


def outcome(act: Act, store: ScriptedStore) -> type[BaseException] | None:
    """Run an act on a store, and return the type of the error that it ends with, if any."""
    try:
        act(store)
    except (Killed, ZarrdaskError, OSError) as error:
        return type(error)
    return None


@dataclass(frozen=True)
class Undisturbed:
    """What a verb does if nothing goes wrong."""

    store: ScriptedStore
    log: list[tuple[str, str]]
    #: What is stored before each operation of the log, where that is all that a death leaves.
    left: list[dict[str, bytes]]
    #: What is stored before.
    values: dict[str, bytes]
    #: What readers see before and afterwards.
    states: tuple[Any, Any]
    #: What is stored after the verb ran once.
    once: dict[str, bytes]
    #: What is stored after it ran twice.
    twice: dict[str, bytes]
    #: The type of the error that the second run ends with, if any.
    error: type[BaseException] | None

    def left_before(self, number: int) -> ScriptedStore:
        """Return the store with what is stored before an operation; a plan may name the store."""
        self.store.values.clear()
        self.store.values.update(self.left[number])
        self.store.script = Script()
        return self.store


def undisturbed(verb: Verb, kind: type[ScriptedStore]) -> Undisturbed:
    """Run a verb without mishaps."""
    store = kind(FOREIGN)
    verb.before(store)
    values, old = dict(store.values), verb.read(store)
    left: list[dict[str, bytes]] = []
    store.script = Script()
    if kind.is_left_by_death:
        store.script.before = lambda: left.append(dict(store.values))
    verb.run(store)
    log, once = store.script.log[:], dict(store.values)
    assert FOREIGN.items() <= once.items()
    states = old, verb.read(store)
    ended = outcome(verb.run, store)
    return Undisturbed(
        store, log, left[: len(log)], values, states, once, dict(store.values), ended
    )


def check(
    verb: Verb, kind: type[ScriptedStore], mishaps: Collection[Mishap] = tuple(Mishap)
) -> None:
    """Check a verb on a kind of store, with each mishap at each operation.

    What comes after a mishap depends on nothing but what is stored then, so each distinct state is
    checked once. The state that a death leaves is that before the operation, so the verb runs again
    to die at three operations only, which shows that nothing goes on after a death.
    """
    expected = undisturbed(verb, kind)
    checked = [expected.values]
    if Mishap.DEATH not in mishaps:
        checked += expected.left  # the core suite, where the verb dies, checks these states
    for mishap in mishaps:
        numbers = [n for n, (name, _) in enumerate(expected.log) if name in kind.affected[mishap]]
        for number in numbers:
            is_known = mishap is Mishap.DEATH and bool(expected.left)
            try:
                if is_known and number not in {numbers[0], numbers[len(numbers) // 2], numbers[-1]}:
                    store, ended = expected.left_before(number), Killed
                else:
                    store = kind(expected.values)
                    store.script = Script(mishap, number)
                    ended = _interrupt(verb, store, expected)
                if ended is not None and store.values not in checked:
                    checked.append(dict(store.values))
                    _check_state(verb, store, expected)
            except BaseException as error:
                operations = "\n".join(map(" ".join, expected.log[: number + 1]))
                error.add_note(f"{mishap.value} at operation {number}, the last of\n{operations}")
                raise


def _interrupt(
    verb: Verb, store: ScriptedStore, expected: Undisturbed
) -> type[BaseException] | None:
    """Run a verb with a mishap, and return how it ended: without an error, it is done.

    A write that was refused as it had been done must not be noticed.
    """
    ended = outcome(verb.run, store)
    assert (ended is Killed) == store.script.is_dead
    if store.script.mishap is Mishap.REFUSAL:
        assert ended is None
    store.script = Script()
    if ended is None:
        assert differences(store.values, expected.once) == {}
    return ended


def _check_state(verb: Verb, store: ScriptedStore, expected: Undisturbed) -> None:
    """Check what a verb that was interrupted left, and what becomes of the same call."""
    assert FOREIGN.items() <= store.values.items()
    old, new = expected.states
    seen = verb.read(store)
    assert seen in (old, new) or verb.allows(seen), f"a reader sees {seen}"
    if seen == new != old:
        # The verb is done, so the same call is another one, whatever became of the first; or a
        # record of the first one is left, so that the same call finishes it.
        ended = outcome(verb.run, store)
        if ended is not None or differences(store.values, expected.once):
            left = differences(store.values, expected.twice).keys() - verb.derived
            assert (left, ended) == (set(), expected.error)
    else:
        (verb.again or verb.run)(store)
        assert differences(store.values, expected.once) == {}


def differences(
    found: dict[str, bytes], expected: dict[str, bytes]
) -> dict[str, tuple[bytes | None, bytes | None]]:
    """Return the values that differ, as they are and as they should be."""
    keys = sorted(found.keys() | expected.keys())
    pairs = {key: (found.get(key), expected.get(key)) for key in keys}
    return {key: (one, other) for key, (one, other) in pairs.items() if one != other}
