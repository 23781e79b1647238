"""Damage: to bytes, and to JSON documents by their structure."""

import json
from collections.abc import Callable
from random import Random
from typing import Any

#: What stands in a document for what `json` itself could not write.
TOKENS = {
    "deep list": "[" * 200_000 + "]" * 200_000,
    "deep object": '{"a":' * 990 + "1" + "}" * 990,
    "deeper object": '{"a":' * 50_000 + "1" + "}" * 50_000,
    "long number": "9" * 5000,
    "large number": "1e999",
    "lone surrogate": '"\\ud800"',
}
NUMBERS = (0, 1, -1, 2, 3, 7, 255, 256, 2**31 - 1, 2**31, 2**32, 2**62, 2**63, 2**64 - 1, 2**64)
HUGE = (10**12, 10**15, 10**18, 10**30, -(2**63) - 1, 10**400)
FLOATS = (0.0, -0.0, 1.0, 1.5, -2.5, 1e308, 1e-320, float("nan"), float("inf"), float("-inf"))
STRINGS = (
    *("", "x", "0", "1", "NaN", "Infinity", "-Infinity", "+Infinity", "NaT", "0x7fc00000", "0x"),
    *("0b1", "true", "null", "é\U0001f600", "\x00", "a" * 5000, "AAAA", "AAA", "=", "C", "F", "/"),
    *(".", "..", "<f4", ">f8", "|O", "<M8", "<M8[ns]", "<M8[0s]", "<m8[99999999999999999999s]"),
    *("|V0", "|S0", "<U0", "|V99999999999", "<U999999999", "|S-1", "<f3", "f8", "<|f8", "b1"),
    *("r0", "r7", "r8", "r16", "r99999999999", "int8", "float16", "complex64", "string", "bytes"),
    *("regular", "rectilinear", "default", "v2", "gzip", "blosc", "zstd", "crc32c", "pickle"),
    *("transpose", "sharding_indexed", "vlen-utf8", "numcodecs.zlib", "start", "end", "little"),
    *("big", "array", "group", "https://example.com/x", "https://purl.org/zarr/spec/core/3.0"),
)


# --------------------------------------------------------------------------------------------
# Bytes


def damage_bytes(data: bytes, random: Random, others: list[bytes]) -> tuple[str, bytes]:
    """Return what was done, and the damaged bytes."""
    name = random.choice([*(["flip"] * 4), *BYTES])
    found = BYTES[name](bytearray(data), random, others)
    return name, bytes(found)


def position(data: bytearray, random: Random) -> int:
    """Return a place, as often as not near one of the ends: there are headers and indices."""
    near = min(len(data), 32)
    return random.choice(
        [
            random.randrange(len(data)),
            random.randrange(near),
            len(data) - 1 - random.randrange(near),
        ]
    )


def flip(data: bytearray, random: Random, others: list[bytes]) -> bytearray:
    if data:
        data[position(data, random)] ^= 1 << random.randrange(8)
    return data


def flips(data: bytearray, random: Random, others: list[bytes]) -> bytearray:
    for _ in range(random.randrange(2, 9)):
        flip(data, random, others)
    return data


def byte(data: bytearray, random: Random, others: list[bytes]) -> bytearray:
    if data:
        data[position(data, random)] = random.choice([0, 1, 127, 128, 255, random.randrange(256)])
    return data


def number(data: bytearray, random: Random, others: list[bytes]) -> bytearray:
    """Put a number where one may stand."""
    width, value = random.choice([2, 4, 8]), random.choice([*NUMBERS, len(data), len(data) + 1])
    if len(data) >= width:
        at = min(position(data, random), len(data) - width)
        at -= random.choice([0, at % 4])
        order = random.choice(["little", "big"])
        data[at : at + width] = (value % 2 ** (8 * width)).to_bytes(width, order)
    return data


def truncate(data: bytearray, random: Random, others: list[bytes]) -> bytearray:
    return data[: random.choice([random.randrange(len(data) + 1), max(len(data) - 1, 0)])]


def behead(data: bytearray, random: Random, others: list[bytes]) -> bytearray:
    return data[random.randrange(len(data) + 1) :]


def extend(data: bytearray, random: Random, others: list[bytes]) -> bytearray:
    size = random.choice([1, 4, 16, 1000])
    return data + random.choice([bytes(size), random.randbytes(size), bytes(data)])


def insert(data: bytearray, random: Random, others: list[bytes]) -> bytearray:
    at = random.randrange(len(data) + 1)
    return data[:at] + random.randbytes(random.choice([1, 2, 8])) + data[at:]


def cut(data: bytearray, random: Random, others: list[bytes]) -> bytearray:
    start = random.randrange(len(data) + 1)
    return data[:start] + data[start + random.choice([1, 4, 8, 100]) :]


def repeat(data: bytearray, random: Random, others: list[bytes]) -> bytearray:
    start = random.randrange(len(data) + 1)
    stop = min(start + random.choice([1, 16, 64]), len(data))
    return data[:stop] + data[start:]


def swap(data: bytearray, random: Random, others: list[bytes]) -> bytearray:
    return bytearray(random.choice(others))


def empty(data: bytearray, random: Random, others: list[bytes]) -> bytearray:
    return bytearray()


BYTES: dict[str, Callable[[bytearray, Random, list[bytes]], bytearray]] = {
    function.__name__: function
    for function in (
        *(flip, flips, byte, number, truncate, behead, extend, insert, cut, repeat, swap, empty),
    )
}


# --------------------------------------------------------------------------------------------
# Documents


def damage_document(data: bytes, random: Random, others: list[Any]) -> tuple[str, bytes]:
    """Return what was done, and the damaged document."""
    document = json.loads(data)
    done = []
    for _ in range(random.choice([1, 1, 1, 2, 3])):
        every = places(document)
        if not every:
            break
        top = [place for place in every if len(place[2]) == 1]
        container, key, path = random.choice(random.choice([every, top]))
        name = random.choice(list(STRUCTURE))
        STRUCTURE[name](container, key, random, others)
        done.append(f"{name} {'/'.join(map(str, path))}")
    text = json.dumps(document, ensure_ascii=random.random() < 0.5)
    for token, stands_for in TOKENS.items():
        text = text.replace(f'"{token}"', stands_for)
    return ", ".join(done), text.encode("utf-8", "surrogatepass")


def places(document: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, Any, tuple[Any, ...]]]:
    """Return every container, with a key in it, and the path to there."""
    items = document.items() if isinstance(document, dict) else enumerate(document)
    found = []
    for key, value in items:
        found.append((document, key, (*path, key)))
        if isinstance(value, dict | list):
            found += places(value, (*path, key))
    return found


def evil(random: Random) -> Any:
    """Return a value that is wrong nearly everywhere."""
    return random.choice(
        [
            random.choice([None, True, False]),
            random.choice(NUMBERS),
            random.choice(NUMBERS) * -1,
            random.choice(HUGE),
            random.choice(FLOATS),
            random.choice(STRINGS),
            random.choice([[], {}, [[]], [{}], [None], [1, 2, 3], {"name": "x"}, {"id": "x"}]),
            [random.choice(NUMBERS)] * random.choice([1, 2, 3, 33, 65, 300]),
            random.choice(list(TOKENS)),
        ]
    )


def drop(container: Any, key: Any, random: Random, others: list[Any]) -> None:
    del container[key]


def replace(container: Any, key: Any, random: Random, others: list[Any]) -> None:
    container[key] = evil(random)


def nudge(container: Any, key: Any, random: Random, others: list[Any]) -> None:
    """Change a number a little, or anything into another type."""
    value: Any = container[key]
    if isinstance(value, int | float):
        more = [value + 1, value - 1, -value, value * 2, value * 10**6]
        inexact = float(value) if abs(value) < 2**64 else 1e300
        value = random.choice([*more, inexact, str(value), [value]])
    elif isinstance(value, str):
        value = random.choice([value[:-1], value + " ", value.upper(), [value], {"name": value}])
    elif isinstance(value, list):
        more = [value * 2, value[::-1], value[:-1], str(value)]
        value = random.choice([*more, dict(enumerate(value)), *value])
    elif isinstance(value, dict):
        value = random.choice([list(value), list(value.values()), {"name": value}, [value]])
    container[key] = value


def duplicate(container: Any, key: Any, random: Random, others: list[Any]) -> None:
    if isinstance(container, list):
        container.insert(random.randrange(len(container) + 1), container[key])
    else:
        container[random.choice(["x", f"{key}2", ""])] = container[key]


def grow(container: Any, key: Any, random: Random, others: list[Any]) -> None:
    if isinstance(container, list):
        container.insert(random.randrange(len(container) + 1), evil(random))
    else:
        known = ["extensions", "storage_transformers", "dimension_names", "must_understand"]
        container[random.choice([*known, "x", "configuration", "typesize"])] = evil(random)


def graft(container: Any, key: Any, random: Random, others: list[Any]) -> None:
    """Put what another document has under the same name."""
    donors = [above[name] for above, name, _ in places(random.choice(others)) if name == key]
    if donors:
        container[key] = json.loads(json.dumps(random.choice(donors)))


STRUCTURE: dict[str, Callable[[Any, Any, Random, list[Any]], None]] = {
    function.__name__: function for function in (drop, replace, nudge, duplicate, grow, graft)
}


def damage_text(data: bytes, random: Random, others: list[bytes]) -> tuple[str, bytes]:
    """Damage a document as text, not by its structure."""
    name = random.choice(["bytes", "twice", "wrapped", "encoded"])
    if name == "bytes":
        done, found = damage_bytes(data, random, others)
        return f"text {done}", found
    if name == "twice":
        # The same member twice: JSON leaves open what that means.
        members = data.strip()[1:-1]
        return "text twice", b"{" + members + b"," + members + b"}" if members else b"{}"
    if name == "wrapped":
        return "text wrapped", random.choice([b"[" + data + b"]", b'"' + data + b'"', b" " + data])
    encoding = random.choice(["utf-16", "utf-32", "utf-8-sig"])
    return f"text {encoding}", data.decode().encode(encoding)
