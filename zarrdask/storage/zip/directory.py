"""The central directory of a zip archive (APPNOTE 6.3.10): parsed, checked and rendered."""

import re
import struct
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import NamedTuple
from zlib import crc32

from zarrdask.errors import StoreError

# The records of the format, which begin with a signature.
_END = struct.Struct("<4s4H2LH")
_END_64 = struct.Struct("<4sQ2H2L4Q")
_LOCATOR_64 = struct.Struct("<4sLQL")
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_LOCAL = struct.Struct("<4s5H3L2H")
_END_MAGIC, _END_64_MAGIC, _LOCATOR_64_MAGIC = b"PK\5\6", b"PK\6\6", b"PK\6\7"
_CENTRAL_MAGIC, _LOCAL_MAGIC = b"PK\1\2", b"PK\3\4"
LOCAL_SIZE = _LOCAL.size

STORED = 0
#: Flags of a member: it is encrypted (by one of three methods); its name is UTF-8.
_ENCRYPTED, _UTF8 = 0x0001 | 0x0040 | 0x2000, 0x0800
_MAX_16, _MAX_32 = 2**16 - 1, 2**32 - 1
#: The extra field for numbers of more than 32 bits.
_ZIP64 = 1
# Versions of the format: 2.0, and 4.5 for ZIP64; "made by" Unix.
_VERSION, _VERSION_64, _UNIX = 20, 45, 3 << 8
#: 1 January 1980: a fixed date, so that archives of the same values have the same bytes.
_DATE = 0x0021
_REGULAR_FILE = 0o100644 << 16
#: A component of a name that is empty, ".", or "..", or an invalid character.
_BAD_NAME = re.compile(r"(^|/)\.{0,2}(/|$)|[\\\0]|[\ud800-\udfff]|^[A-Za-z]:/")


class Member(NamedTuple):
    """A member of an archive, as described by the central directory.

    Attributes
    ----------
    name : str
        The name, which is the key of the value.
    flags, method : int
        The flags and the method of compression, as numbers of the format.
    crc : int
        The CRC-32 of the value.
    packed, size : int
        The length of the stored bytes, and of the value.
    offset : int
        The offset of the local header in the file.
    limit : int
        The offset of the next record, before which the member ends.
    """

    name: str
    flags: int
    method: int
    crc: int
    packed: int
    size: int
    offset: int
    limit: int

    @property
    def is_encrypted(self) -> bool:
        """Whether the value is encrypted."""
        return bool(self.flags & _ENCRYPTED)

    @property
    def encoded_name(self) -> bytes:
        """The name as it is stored in the archive."""
        return self.name.encode("utf-8" if self.flags & _UTF8 else "cp437")


class Directory(NamedTuple):
    """A central directory.

    Attributes
    ----------
    members : dict of str to Member
        The members by name, without folders. If a name occurs several times, this is the last one.
    start : int
        The offset of the directory in the file.
    stamp : str
        A text that is the same for archives with the same members at the same offsets.
    """

    members: dict[str, Member]
    start: int
    stamp: str = ""


def is_name(name: str) -> bool:
    """Whether a key can be the name of a member.

    >>> is_name("a/.zarray"), is_name("../a"), is_name("/a"), is_name("a//b")
    (True, False, False, False)
    """
    return _BAD_NAME.search(name) is None


# --------------------------------------------------------------------------------------------
# Reading


def read_directory(read: Callable[[int, int], bytes], size: int, archive: str) -> Directory:
    """Return the central directory of an archive.

    Parameters
    ----------
    read : callable
        A function that returns bytes of the file, for an offset and a length.
    size : int
        The length of the file.
    archive : str
        The name of the archive in errors.

    Raises
    ------
    StoreError
        If the file is not a zip archive, or is truncated, damaged or malicious.
    """
    tail_start = max(size - _END.size - _MAX_16 - _LOCATOR_64.size, 0)
    tail = read(tail_start, size - tail_start)
    at = _find_end(tail)
    if at is None:
        raise StoreError(
            "this is not a zip archive, or its end is missing", key=archive, found=f"{size} bytes"
        )
    _, disk, _, _, count, length, start, _ = _END.unpack_from(tail, at)
    end = tail_start + at
    if _MAX_16 in (disk, count) or _MAX_32 in (length, start):
        locator = tail[at - _LOCATOR_64.size : at] if at >= _LOCATOR_64.size else b""
        if locator.startswith(_LOCATOR_64_MAGIC):
            _, _, end, _ = _LOCATOR_64.unpack(locator)
            disk, count, length, start = _read_end_64(read, end, size, archive)
    shift = end - length - start
    if disk or shift < 0:
        raise StoreError(
            "the zip archive is truncated, or consists of several volumes",
            key=archive,
            found=f"a central directory of {length} bytes at {start}, which ends at {end}",
        )
    # All offsets are shifted if bytes precede the archive, such as a program that unpacks it.
    data = read(start + shift, length)
    members = _members(data, count, shift, archive)
    return _checked(members, start + shift, archive)._replace(stamp=f"{size:x}-{crc32(data):x}")


def _find_end(tail: bytes) -> int | None:
    """Return the offset of the last record of an archive, whose comment ends with the file."""
    at = len(tail) - _END.size + 4
    while (at := tail.rfind(_END_MAGIC, 0, at)) >= 0:
        comment = int.from_bytes(tail[at + _END.size - 2 : at + _END.size], "little")
        if at + _END.size + comment == len(tail):
            return at
        at += 3
    return None


def _read_end_64(
    read: Callable[[int, int], bytes], at: int, size: int, archive: str
) -> tuple[int, int, int, int]:
    data = read(at, _END_64.size) if at + _END_64.size <= size else b""
    if len(data) < _END_64.size or not data.startswith(_END_64_MAGIC):
        raise StoreError("the ZIP64 record of the zip archive is missing", key=archive, found=at)
    _, _, _, _, disk, _, _, count, length, start = _END_64.unpack(data)
    return disk, count, length, start


def _members(data: bytes, count: int, shift: int, archive: str) -> list[Member]:
    """Return the members in the order of the directory, with the lowest possible limits."""
    members = []
    at, step = 0, _CENTRAL.size
    try:
        while at < len(data):
            (
                magic, _, _, flags, method, _, _, crc, packed, size,
                name_length, extra_length, comment_length, _, _, _, offset,
            ) = _CENTRAL.unpack_from(data, at)  # fmt: skip
            if magic != _CENTRAL_MAGIC:
                break  # a signature of the directory may follow
            name_end = at + step + name_length
            encoded = data[at + step : name_end]
            if _MAX_32 in (packed, size, offset):
                extra = data[name_end : name_end + extra_length]
                size, packed, offset = _wide(extra, size, packed, offset)
            name = encoded.decode("utf-8" if flags & _UTF8 else "cp437")
            at = name_end + extra_length + comment_length
            offset += shift
            end = offset + LOCAL_SIZE + name_length + packed
            members.append(Member(name, flags, method, crc, packed, size, offset, end))
    except (struct.error, UnicodeDecodeError) as error:
        raise StoreError(
            "the central directory of the zip archive is damaged", key=archive, found=str(error)
        ) from error
    if at > len(data) or len(members) != count:
        raise StoreError(
            "the central directory of the zip archive is damaged",
            key=archive,
            found=f"{len(members)} members",
            expected=f"{count}",
        )
    return members


def _wide(extra: bytes, *numbers: int) -> Iterator[int]:
    """Yield the numbers of a member, taking those of more than 32 bits from an extra field."""
    field = b""
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<2H", extra, at)
        if kind == _ZIP64:
            field = extra[at + 4 : at + 4 + length]
            break
        at += 4 + length
    for number in numbers:
        if number == _MAX_32:
            (number,) = struct.unpack_from("<Q", field)
            field = field[8:]
        yield number


def _checked(members: list[Member], start: int, archive: str) -> Directory:
    """Return a directory, after checking that names are valid and members do not overlap."""
    limits = {}
    following = start
    for member in sorted(members, key=attrgetter("offset"), reverse=True):
        if member.limit > following:
            raise StoreError(
                "members of the zip archive overlap, or reach beyond its end",
                key=f"{archive}/{member.name}",
                found=f"{member.packed} bytes at {member.offset}",
                expected=f"an end before {following}",
            )
        limits[member.offset], following = following, member.offset
    by_name = {}
    for member in members:
        if not is_name(member.name.removesuffix("/")):
            raise StoreError(
                "a member of the zip archive has a name that is not a valid key",
                key=archive,
                found=member.name,
                expected='names joined by "/", none of them "", "." or ".."',
            )
        if not member.name.endswith("/"):
            by_name[member.name] = Member(*member[:-1], limits[member.offset])
    return Directory(by_name, start)


def local_length(header: bytes | memoryview, member: Member, archive: str) -> int:
    """Return the length of a member's local header, with its name and extra field.

    Raises
    ------
    StoreError
        If this is not the header of the member.
    """
    name = member.encoded_name
    if len(header) >= LOCAL_SIZE + len(name):
        magic, _, _, method, _, _, _, _, _, name_length, extra = _LOCAL.unpack_from(header)
        length: int = LOCAL_SIZE + name_length + extra
        if (
            (magic, method, name_length) == (_LOCAL_MAGIC, member.method, len(name))
            and header[LOCAL_SIZE : LOCAL_SIZE + name_length] == name
            and member.offset + length + member.packed <= member.limit
        ):
            return length
    raise StoreError(
        "the zip archive is damaged: the header of a member does not match the directory",
        key=f"{archive}/{member.name}",
        found=f"offset {member.offset}",
    )


# --------------------------------------------------------------------------------------------
# Writing


def new_member(name: str, crc: int, size: int) -> Member:
    """Return a member without compression, which has no offset yet."""
    return Member(name, 0 if name.isascii() else _UTF8, STORED, crc, size, size, 0, 0)


def render_local(member: Member) -> bytes:
    """Return the local header of a member."""
    extra, packed, size = b"", member.packed, member.size
    if max(packed, size) >= _MAX_32:
        extra = struct.pack("<2H2Q", _ZIP64, 16, size, packed)
        packed = size = _MAX_32
    name = member.encoded_name
    version = _VERSION_64 if extra else _VERSION
    head = _LOCAL.pack(
        _LOCAL_MAGIC, version, member.flags, member.method, 0, _DATE,
        member.crc, packed, size, len(name), len(extra),
    )  # fmt: skip
    return head + name + extra


def parse_local(data: bytes, at: int) -> tuple[Member, int] | None:
    """Return the member of a local header of `render_local`, and the offset of its value.

    If the header is incomplete, None is returned.
    """
    if at + LOCAL_SIZE > len(data):
        return None
    (
        magic, _, flags, method, _, _, crc, packed, size, name_length, extra_length
    ) = _LOCAL.unpack_from(data, at)  # fmt: skip
    name_end = at + LOCAL_SIZE + name_length
    if magic != _LOCAL_MAGIC or name_end + extra_length > len(data):
        return None
    name = data[at + LOCAL_SIZE : name_end].decode()
    if extra_length:
        size, packed = _wide(data[name_end : name_end + extra_length], size, packed)
    return Member(name, flags, method, crc, packed, size, 0, 0), name_end + extra_length


def render_directory(members: Iterable[Member], start: int) -> Iterator[bytes]:
    """Yield the central directory and the end of the archive, in pieces.

    Parameters
    ----------
    members : iterable of Member
        The members.
    start : int
        The offset of the directory in the file.
    """
    count = length = 0
    for member in members:
        record = _render_central(member)
        count += 1
        length += len(record)
        yield record
    if count >= _MAX_16 or max(length, start) >= _MAX_32:
        version = _UNIX | _VERSION_64
        end = start + length
        yield _END_64.pack(
            _END_64_MAGIC,
            _END_64.size - 12,
            version,
            _VERSION_64,
            0,
            0,
            count,
            count,
            length,
            start,
        )
        yield _LOCATOR_64.pack(_LOCATOR_64_MAGIC, 0, end, 1)
    short = min(count, _MAX_16)
    yield _END.pack(_END_MAGIC, 0, 0, short, short, min(length, _MAX_32), min(start, _MAX_32), 0)


def _render_central(member: Member) -> bytes:
    wide = b""
    numbers = []
    for number in (member.size, member.packed, member.offset):
        if number >= _MAX_32:
            wide += struct.pack("<Q", number)
        numbers.append(min(number, _MAX_32))
    size, packed, offset = numbers
    extra = struct.pack("<2H", _ZIP64, len(wide)) + wide if wide else b""
    name = member.encoded_name
    version = _VERSION_64 if extra else _VERSION
    head = _CENTRAL.pack(
        _CENTRAL_MAGIC, _UNIX | version, version, member.flags, member.method, 0, _DATE,
        member.crc, packed, size, len(name), len(extra), 0, 0, 0, _REGULAR_FILE, offset,
    )  # fmt: skip
    return head + name + extra
