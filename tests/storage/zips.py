"""Zip archives that are made by hand, byte by byte, so that they can be wrong."""

import struct
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

ROOT = Path(__file__).parents[2]


@dataclass
class Entry:
    """A member, and what its records say: of themselves what is true, unless told otherwise."""

    name: str
    data: bytes = b""
    method: int = 0
    flags: int = 0
    size: int | None = None
    packed: int | None = None
    crc: int | None = None
    offset: int | None = None
    local_name: str | None = None
    local_extra: bytes = b""
    wide: bool = False


def pack(entries: list[Entry], *, count: int | None = None, prefix: bytes = b"") -> bytes:
    """Return an archive of these members."""
    body, central = bytearray(prefix), bytearray()
    for entry in entries:
        offset = len(body) - len(prefix) if entry.offset is None else entry.offset
        crc = crc32(entry.data) if entry.crc is None else entry.crc
        size = len(entry.data) if entry.size is None else entry.size
        packed = len(entry.data) if entry.packed is None else entry.packed
        name = entry.name.encode()
        local = name if entry.local_name is None else entry.local_name.encode()
        body += struct.pack(
            "<4s5H3L2H", b"PK\3\4", 20, entry.flags, entry.method, 0, 33,
            crc, packed, size, len(local), len(entry.local_extra),
        )  # fmt: skip
        body += local + entry.local_extra + entry.data
        extra = b""
        if entry.wide:
            extra = struct.pack("<2HH", 0x9999, 2, 7)
            extra += struct.pack("<2H3Q", 1, 24, size, packed, offset)
            size = packed = offset = 2**32 - 1
        central += struct.pack(
            "<4s6H3L5H2L", b"PK\1\2", 20, 20, entry.flags, entry.method, 0, 33,
            crc, packed, size, len(name), len(extra), 0, 0, 0, 0, offset,
        )  # fmt: skip
        central += name + extra
    count = len(entries) if count is None else count
    start = len(body) - len(prefix)
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, count, count, len(central), start, 0)
    return bytes(body + central + end)


def zipped(path, values):
    with zipfile.ZipFile(path, "w") as archive:
        for key, value in values.items():
            archive.writestr(key, value)
    return path


def hidden(folder):
    """Return what was made beside an archive, and is left."""
    return [path.name for path in Path(folder).iterdir() if path.name.startswith(".")]


def run_python(code, *args):
    command = [sys.executable, "-c", code, *map(str, args)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, timeout=120, check=False)
