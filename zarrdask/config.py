"""Settings. They live in Dask's configuration, under ``zarrdask``, so one mechanism serves both."""

import os
from functools import cache
from importlib import import_module
from typing import Any

from zarrdask.errors import MetadataError

DEFAULTS: dict[str, Any] = {
    # Bytes: neighbouring stored units are grouped into one Dask block up to this size.
    "block-size": 16 * 2**20,
    # Threads of an eager read or write (z[...]); null means one for each core.
    "threads": None,
    # Bytes: memory of blocks that is kept, to be used again; 0 keeps none.
    "keep-memory": 256 * 2**20,
    # Whether a unit that holds only the fill value is stored all the same.
    "write-empty-chunks": False,
    # Where the files are by which processes lock stored units; null is the temporary directory.
    "lock-directory": None,
    # Whether symbolic links below the root of a local store are followed.
    "follow-links": True,
    # Whether what the specifications forbid, but real writers make, is refused.
    "strict": False,
    # Whether a v2 array that does not name its separator is looked at, whether it is nested.
    "v2-nested-legacy": False,
    # What becomes of consolidated metadata when a node that they tell of is changed: "drop" or
    # "update".
    "consolidated-after-change": "drop",
    # Whether a prefix without a document is read as a v3 group if something is below it.
    "implicit-groups": False,
    # Whether an unknown data type of the v3 draft is read as one of its fallbacks.
    "draft-fallback": False,
    # Whether a group of the v3 draft that has no document gets one when the last node below it
    # is erased; it vanishes otherwise.
    "draft-keep-groups": False,
    # Bytes: the size of a chunk, and of a shard, that "auto" aims at.
    "chunk-size": 2**20,
    "shard-size": 64 * 2**20,
    # Ranges of one value closer than this many bytes are read as one (stores with latency).
    "coalesce-gap": 64 * 2**10,
    # Requests that one call keeps in flight (stores with latency).
    "requests": 64,
    # How often an operation is tried again that failed for a passing reason, and the longest
    # pause before that, in seconds.
    "retries": 5,
    "retry-delay": 10,
}

#: The least values of settings that can't be 0.
_LEAST = {"requests": 1}
_SIZE = 'a number of bytes, or text such as "16 MiB"'


@cache
def _dask_config() -> Any:
    # The one use of Dask below graph/, and only when a setting is asked for: opening a store
    # and looking at it must not pay for the import.
    config = import_module("dask.config")
    config.update_defaults({"zarrdask": DEFAULTS})
    return config


def get(name: str) -> Any:
    """Return the setting ``zarrdask.<name>``; a size may be written as "16 MiB".

    Raises
    ------
    MetadataError
        If its value is none that it can have. The error names its key.

    Examples
    --------
    >>> get("block-size")
    16777216
    """
    # With the default again: leaving `with dask.config.set(...)` may take all of ours away.
    default = DEFAULTS[name]
    value = _dask_config().get(f"zarrdask.{name}", default)
    if value is default:
        return value
    key = f"zarrdask.{name}"
    if isinstance(default, bool):
        return _flag(value, key)
    if isinstance(default, int):
        return _number(value, key, least=_LEAST.get(name, 0))
    if name == "threads":
        return None if value is None else _number(value, key, least=1)
    if not isinstance(value, str | os.PathLike | None):
        raise MetadataError(
            "this setting has a value of another type", key=key, found=value, expected="text"
        )
    return value


def _flag(value: Any, key: str) -> bool:
    if isinstance(value, bool | int) and value in (0, 1):
        return bool(value)
    raise MetadataError(
        "this setting is either on or off", key=key, found=value, expected="true or false"
    )


def _number(value: Any, key: str, *, least: int) -> int | float:
    number = parse_size(value, key) if isinstance(value, str) else value
    # Written so that NaN does not pass.
    if isinstance(number, int | float) and least <= number < float("inf"):
        return number
    raise MetadataError(
        "this setting is out of range", key=key, found=value, expected=f"a number from {least}"
    )


def parse_size(text: str, key: str) -> int:
    """Return a number of bytes that is written as text, such as "16 MiB".

    Raises
    ------
    MetadataError
        If the text is no size. The error names the key.

    Examples
    --------
    >>> parse_size("1 MB", "chunks"), parse_size("64 KiB", "chunks")
    (1000000, 65536)
    """
    try:
        size = int(import_module("dask.utils").parse_bytes(text))
    except (ValueError, TypeError, OverflowError) as error:
        raise MetadataError(
            "this text is not a size in bytes", key=key, found=text, expected=_SIZE
        ) from error
    if size < 0:
        raise MetadataError("a size can't be negative", key=key, found=text, expected=_SIZE)
    return size
