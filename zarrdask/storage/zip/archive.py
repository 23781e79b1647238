"""Read zip archives: `zipfile` reads the directory and decompresses; values are read by position.

An archive may come from an untrusted source: members must not overlap, so that they are together no
longer than the archive, and a value is never longer than the directory says.
"""

import bz2
import re
import struct
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO
from operator import attrgetter
from typing import Any, NamedTuple
from zipfile import ZIP_BZIP2, ZIP_LZMA, ZIP_STORED, BadZipFile, ZipExtFile, ZipFile, ZipInfo

import numpy as np
from toolz import partition_all

from zarrdask import config
from zarrdask.errors import StoreError
from zarrdask.formats.byte_ranges import Buffer, Range, Value, cut
from zarrdask.runtime.packages import load_module
from zarrdask.runtime.scratch import Scratch
from zarrdask.storage.zip.source import ArchiveFile

try:
    crc32 = load_module("isal.isal_zlib").crc32
except ImportError:
    from zlib import crc32

#: A local header: its signature, the method, and the lengths of the name and of the extra field.
_HEADER = struct.Struct("<4s4xH16x2H")
_HEADER_SIGNATURE, _END_SIGNATURE, _END_SIZE = b"PK\3\4", b"PK\5\6", 22
#: Flags of a member: it is encrypted (by one of three methods); its name is UTF-8.
_ENCRYPTED, _UTF8 = 0x0001 | 0x0040 | 0x2000, 0x0800
_ZSTD = 93
#: The number of bytes before those that LZMA compressed. The last four are the dictionary's size.
_LZMA_HEADER = 9
_UNIX, _REGULAR_FILE = 3, 0o100644 << 16
#: A component of a name that is empty, ".", or "..", or an invalid character.
_BAD_NAME = re.compile(r"(^|/)\.{0,2}(/|$)|[\\\0]|[\ud800-\udfff]|^[A-Za-z]:/")
#: The number of bytes at the end of an archive that are read at once. They contain the end of the
#: directory, whose comment may have 64 KiB.
_TAIL = 2**17
#: The number of bytes that are read in addition for the extra field of a local header.
_EXTRA = 64
#: The maximum ratio of compression of Deflate. Other methods may exceed it, for values up to a
#: maximum size in bytes.
_MAX_RATIO, _MAX_SIZE_BEYOND_RATIO = 1032, 2**30
#: The number of compressed bytes that are decompressed at once: LZMA may make 7000 bytes of one.
_STEP = 2**12


class Directory(NamedTuple):
    """The directory of an archive: its members by name, without folders, and its offset.

    If several members have a name, it is the last one that counts. Archives with the same members
    at the same offsets have the same `stamp`.
    """

    members: dict[str, ZipInfo]
    start: int
    stamp: str = ""


def is_name(name: str) -> bool:
    """Whether a key can be the name of a member.

    >>> is_name("a/.zarray"), is_name("../a"), is_name("/a"), is_name("a//b")
    (True, False, False, False)
    """
    return _BAD_NAME.search(name) is None


def encoding(member: ZipInfo) -> str:
    """Return the encoding of the name of a member."""
    name = member.orig_filename
    return "ascii" if name.isascii() else "utf-8" if member.flag_bits & _UTF8 else "cp437"


def read_directory(file: ArchiveFile) -> Directory:
    """Return the directory of an archive.

    Raises
    ------
    StoreError
        If the file is not a zip archive, or is truncated, damaged or malicious.
    """
    source = _SeekableFile(file)
    try:
        with ZipFile(source) as archive:
            members, start, comment = archive.infolist(), archive.start_dir, archive.comment
        if not source.tail[-_END_SIZE - len(comment) :].startswith(_END_SIGNATURE):
            raise BadZipFile("bytes follow its end")
    except (BadZipFile, NotImplementedError, ValueError, struct.error) as error:
        raise StoreError(
            "this is not a zip archive, or its directory is damaged",
            key=file.name,
            found=f"{file.size} bytes: {error}",
        ) from error
    for member in members:
        # From 3.12 on, Python takes another name from an extra field: it is not the header's.
        member.filename = member.orig_filename
    _check_members(members, start, file.name)
    stamp = "".join(f"{each.filename}{each.CRC}{each.header_offset}" for each in members)
    by_name = {each.filename: each for each in members if not each.is_dir()}
    return Directory(by_name, start, f"{file.size:x}-{crc32(stamp.encode()):x}")


class _SeekableFile:
    """A file for `zipfile`. Its end is read at once."""

    def __init__(self, file: ArchiveFile) -> None:
        self._value, self._size, self._at = file.value(Scratch()), file.size, 0
        self._tail_start = max(file.size - _TAIL, 0)
        self.tail = self._read(self._tail_start, file.size)

    def _read(self, start: int, end: int) -> bytes:
        return bytes(self._value.part(start, end - start) or b"") if end > start else b""

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = 0) -> int:
        at = (0, self._at, self._size)[whence] + offset
        if at < 0:
            raise OSError("the offset is negative")
        self._at = at
        return at

    def read(self, length: int = -1) -> bytes:
        start, end = self._at, self._size if length < 0 else min(self._at + length, self._size)
        self._at = max(start, end)
        if start >= self._tail_start:
            return self.tail[start - self._tail_start : end - self._tail_start]
        return self._read(start, end)


def _check_members(members: list[ZipInfo], start: int, archive: str) -> None:
    """Check that names are valid, and that members do not overlap each other or the directory."""
    following = start
    for member in sorted(members, key=attrgetter("header_offset"), reverse=True):
        name, offset, packed = member.orig_filename, member.header_offset, member.compress_size
        if not is_name(name.removesuffix("/")):
            raise StoreError(
                "a member of the zip archive has a name that is not a valid key",
                key=archive,
                found=name,
                expected='names joined by "/", none of them "", "." or ".."',
            )
        if offset < 0 or offset + _HEADER.size + len(_stored_name(member)) + packed > following:
            raise StoreError(
                "members of the zip archive overlap, or reach beyond its end",
                key=f"{archive}/{name}",
                found=f"{packed} bytes at {offset}",
                expected=f"an end before {following}",
            )
        following = offset


def _stored_name(member: ZipInfo) -> bytes:
    return member.orig_filename.encode(encoding(member))


def new_member(name: str, crc: int, size: int) -> ZipInfo:
    """Return a member without compression, with a fixed date, and without an offset yet."""
    member = ZipInfo(name)
    member.CRC, member.file_size, member.compress_size = crc, size, size
    member.create_system, member.external_attr = _UNIX, _REGULAR_FILE
    member.flag_bits = 0 if name.isascii() else _UTF8
    return member


class Archive:
    """A zip archive for reading. Threads and forked processes may share it."""

    def __init__(self, file: ArchiveFile, directory: Directory) -> None:
        self.file = file
        self.members = directory.members
        self.stamp = directory.stamp
        #: The offset of the stored bytes of members that were read in part.
        self._starts: dict[ZipInfo, int] = {}
        self._changes = 0
        self._names: tuple[int, list[str]] = -1, []

    def changed(self) -> None:
        """Discard the sorted names, as the members have changed."""
        self._changes += 1

    def names(self, prefix: str) -> Sequence[str]:
        """Return the sorted names that begin with a prefix, which is "" or ends with "/"."""
        # If members are added concurrently, the number changes, and the result is not used again.
        number = self._changes
        if self._names[0] != number:
            self._names = number, sorted(list(self.members))  # noqa: C414 - threads add to it
        names = self._names[1]
        if not prefix:
            return names
        after = prefix[:-1] + chr(ord("/") + 1)
        return names[bisect_left(names, prefix) : bisect_left(names, after)]

    def get(self, key: str) -> bytes | None:
        """Return a value, or None if there is none."""
        (value,) = self.get_many([key], Scratch())
        return None if value is None else bytes(value)

    def get_many(self, keys: Iterable[str], scratch: Scratch) -> Iterator[Buffer | None]:
        """Yield the value of each key; each is valid until the next one is requested.

        Members that are close to each other in a remote archive are one request.
        """
        for batch in partition_all(1 if self.file.is_local else config.get("requests"), keys):
            members = [self.members.get(key) for key in batch]
            ordered = sorted({each for each in members if each}, key=attrgetter("header_offset"))
            if ordered:
                file = self.file.value(scratch)
                parts = dict(zip(ordered, file.parts([*map(_whole, ordered)]), strict=True))
            for member in members:
                yield None if member is None else self._decoded(member, parts[member], file)

    def get_range(self, key: str, start: int, length: int | None) -> Buffer | None:
        """Return part of a value; a negative start counts from the end."""
        member = self.members.get(key)
        if member is None:
            return None
        size = member.file_size
        begin = max(size + start, 0) if start < 0 else start
        ranges = [(begin, size if length is None else length)]
        (part,) = self.get_ranges(key, ranges, Scratch())
        return part

    def get_ranges(
        self, key: str, ranges: Sequence[Range], scratch: Scratch
    ) -> Iterator[Buffer | None]:
        """Yield parts of one value, given as (start, length) in the order of their starts."""
        member = self.members.get(key)
        if member is None:
            yield from (None for _ in ranges)
            return
        if not _is_plain(member):
            value = self.get(key) or b""
            yield from (cut(value, *each) for each in ranges)
            return
        file = self.file.value(scratch)
        first, size = self._start(member, file), member.file_size
        clipped = [(first + at, max(min(length, size - at), 0)) for at, length in ranges]
        parts = file.parts([each for each in clipped if each[1]])
        for _, length in clipped:
            yield self._complete(member, next(parts) if length else b"", length)

    def _start(self, member: ZipInfo, file: Value) -> int:
        """Return the offset of the stored bytes of a member in the file."""
        start = self._starts.get(member)
        if start is None:
            length = _HEADER.size + len(_stored_name(member))
            header = file.part(member.header_offset, length) or b""
            start = member.header_offset + self._header_size(member, header)
            self._starts[member] = start
        return start

    def _header_size(self, member: ZipInfo, data: Buffer) -> int:
        """Return the length of the local header of a member, with the name and extra field."""
        name = _stored_name(member)
        if len(data) >= _HEADER.size + len(name):
            signature, method, name_size, extra_size = _HEADER.unpack_from(data)
            expected = _HEADER_SIGNATURE, member.compress_type, name
            if (signature, method, data[_HEADER.size : _HEADER.size + name_size]) == expected:
                return int(_HEADER.size + name_size + extra_size)
        raise self._failed(
            member,
            "the zip archive is damaged: the header of a member does not match the directory",
            found=f"offset {member.header_offset}",
        )

    def _decoded(self, member: ZipInfo, data: Buffer | None, file: Value) -> Any:
        """Return the value of a member for the bytes of the file from its local header on."""
        if member.flag_bits & _ENCRYPTED:
            raise self._failed(
                member, "the zip archive is encrypted, which is not supported; decrypt it first"
            )
        skip = self._header_size(member, data or b"")
        packed: Buffer = memoryview(data or b"")[skip : skip + member.compress_size]
        if len(packed) < member.compress_size:  # as the extra field is long
            rest = file.part(member.header_offset + skip, member.compress_size)
            packed = self._complete(member, rest, member.compress_size)
        value = packed if member.compress_type == ZIP_STORED else self._unpacked(member, packed)
        if len(value) != member.file_size:
            raise self._failed(
                member,
                "the member has another size than the directory of the zip archive says",
                found=f"{len(value)} bytes or more",
                expected=f"{member.file_size}",
            )
        if crc32(value) != member.CRC:
            raise self._failed(member, "the CRC-32 of the member does not match its value")
        return value

    def _unpacked(self, member: ZipInfo, packed: Buffer) -> Buffer:
        if member.file_size > max(_MAX_RATIO * len(packed), _MAX_SIZE_BEYOND_RATIO):
            raise self._failed(
                member,
                "the size of the decompressed member is implausible",
                found=f"{len(packed)} bytes for {member.file_size}",
                expected=f"at most {_MAX_RATIO} times as many",
            )
        try:
            return unpack(member, packed)
        except Exception as error:  # each method has errors of its own
            raise self._failed(
                member,
                f"the member can't be decompressed: {error}",
                found=f"method {member.compress_type}",
                expected="0, 8 (Deflate), 12 (bzip2), 14 (LZMA) or 93 (Zstandard)",
            ) from error

    def _complete(self, member: ZipInfo, data: Buffer | None, length: int) -> Buffer:
        """Return bytes of a member that were read, after checking their number."""
        if data is None or len(data) < length:
            raise self._failed(
                member,
                "the zip archive is truncated",
                found=f"{len(data or b'')} bytes",
                expected=length,
            )
        return data

    def _failed(
        self, member: ZipInfo, message: str, *, found: Any = None, expected: Any = None
    ) -> StoreError:
        key = f"{self.file.name}/{member.filename}"
        return StoreError(message, key=key, found=found, expected=expected)


def _whole(member: ZipInfo) -> Range:
    """Return the range of a member with its header, whose length is an estimate."""
    length = _HEADER.size + len(_stored_name(member)) + _EXTRA + member.compress_size
    return member.header_offset, length


def _is_plain(member: ZipInfo) -> bool:
    """Whether parts of a value can be read without decoding all of it."""
    is_whole = member.compress_size == member.file_size
    return member.compress_type == ZIP_STORED and is_whole and not member.flag_bits & _ENCRYPTED


def unpack(member: ZipInfo, packed: Buffer) -> Buffer:
    """Decompress the bytes of a member, to at most the size that the directory says."""
    if member.compress_type == _ZSTD:
        content = np.empty(member.file_size, np.uint8)
        # The CRC-32 of the member detects a frame with fewer bytes.
        load_module("numcodecs.zstd").decompress(packed, content)
        return content.data
    if member.compress_type == ZIP_BZIP2:
        # `zipfile` sets no limit: a few bytes may decompress to many millions.
        return bz2.BZ2Decompressor().decompress(packed, member.file_size + 1)
    if member.compress_type == ZIP_LZMA and len(packed) >= _LZMA_HEADER:
        # The header determines how much memory is allocated: no value needs more than its size.
        (claimed,) = struct.unpack_from("<L", packed, _LZMA_HEADER - 4)
        size = struct.pack("<L", min(claimed, max(member.file_size, 2**12)))
        packed = b"".join((packed[: _LZMA_HEADER - 4], size, packed[_LZMA_HEADER:]))
    value = bytearray()
    with ZipExtFile(BytesIO(packed), "r", member) as file:
        while step := file.read1(_STEP):
            value += step
    return value
