"""Read the values of a zip archive: locate, decompress and check them."""

import bz2
import lzma
import zlib
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from itertools import chain
from typing import Any, cast

import numpy as np
from toolz import partition_all

from zarrdask import config
from zarrdask.errors import StoreError, ZarrdaskError
from zarrdask.storage.base import Scratch
from zarrdask.storage.byte_ranges import Buffer, Range, coalesce, coalesce_any, cut
from zarrdask.storage.keys import Names
from zarrdask.storage.range_requests import JOIN_LIMIT
from zarrdask.storage.zip.directory import (
    LOCAL_SIZE,
    STORED,
    Directory,
    Member,
    local_length,
    read_directory,
)
from zarrdask.storage.zip.source import ByteSource, LocalFile

try:
    _fast: Any = import_module("isal.isal_zlib")
except ImportError:
    _fast = zlib

_FAILURES: tuple[type[Exception], ...] = (
    OSError, EOFError, ValueError, MemoryError, lzma.LZMAError, zlib.error, _fast.error
)  # fmt: skip
_DEFLATED, _BZIP2, _LZMA, _ZSTD = 8, 12, 14, 93
#: The maximum ratio of compression of Deflate. Other methods may exceed it, for values up to a
#: maximum size in bytes.
_MAX_RATIO = 1032
_MAX_SIZE_BEYOND_RATIO = 2**30
#: The number of bytes that are read in addition for the extra field of a local header.
_EXTRA = 64
#: A value of a local file up to this size, in bytes, is read together with its header.
_SMALL = 2**16
# Bytes. Joining neighbouring ranges saves calls; a joined range that is longer than the limit would
# not fit into the cache of the CPU.
_LOCAL_GAP, _LOCAL_LIMIT = 2**12, 2**20
#: A joined range, and the position, offset and length of each range in it.
_Joined = tuple[Range, list[tuple[int, int, int]]]


class Archive:
    """A zip archive for reading. Threads and forked processes may share it.

    Parameters
    ----------
    source : ByteSource
        The file.
    directory : Directory, optional
        The directory of the archive; by default it is read from the file.

    Raises
    ------
    StoreError
        If the file is not a zip archive, or a damaged or malicious one.
    """

    def __init__(self, source: ByteSource, directory: Directory | None = None) -> None:
        self.source = source
        if directory is None:
            directory = read_directory(source.read, source.size, source.name)
        self.directory = directory
        self.members = directory.members
        #: The offset of the stored bytes of a member, by the offset of its header.
        self._starts: dict[int, int] = {}
        self._changes = 0
        self._folders: tuple[int, dict[str, Names]] | None = None
        self._local = source if isinstance(source, LocalFile) else None

    @property
    def stamp(self) -> str:
        """A text that differs between archives, but not between copies of an archive."""
        return self.directory.stamp

    @property
    def folders(self) -> dict[str, Names]:
        """The sorted names directly below each prefix that has any."""
        # If members are added meanwhile, the number changes, so that the result is not used again.
        number = self._changes
        if self._folders is None or self._folders[0] != number:
            self._folders = number, list_folders(list(self.members))
        return self._folders[1]

    def forget(self) -> None:
        """Forget data that were derived from the members, which were changed."""
        self._changes += 1

    def forget_places(self) -> None:
        """Forget the offsets of values, as the file was emptied."""
        self._starts.clear()

    # ---- whole values

    def get(self, key: str) -> bytes | None:
        """Return a value, or None if there is none."""
        member = self.members.get(key)
        if member is None:
            return None
        if self._local is None:
            (data,) = self._fetch([[member]])
        else:
            self._local.check()
            data = self._local.read(self._start(member), member.packed)
        return bytes(self._decoded(member, data))

    def get_many(self, keys: Iterable[str], scratch: Scratch) -> Iterator[Buffer | None]:
        """Yield the value of each key; each is valid until the next one is requested."""
        if self._local is None:
            yield from self._get_remote(keys)
            return
        self._local.check()
        for key in keys:
            member = self.members.get(key)
            if member is None:
                yield None
                continue
            data = self._read_into(self._local, member, scratch)
            yield data if member.method == STORED else self._decoded(member, data)

    def _read_into(self, source: LocalFile, member: Member, scratch: Scratch) -> memoryview:
        """Return the stored bytes of a member in a buffer, checked if they are not compressed."""
        start = self._starts.get(member.offset)
        if start is None and member.packed > _SMALL:
            start = self._start(member)
        if start is None:
            # Read header and value by one call. The header contains its own length.
            _, length = _with_header(member, member.packed)
            view = scratch.reserve(length)[:length]
            view = view[: source.read_into(view, member.offset)]
            skip = self._header(member, view)
            view = view[skip : skip + member.packed]
            if len(view) == member.packed:
                return self._decoded(member, view) if member.method == STORED else view
            start = member.offset + skip
        view = scratch.reserve(member.packed)[: member.packed]
        view = view[: source.read_into(view, start)]
        return self._decoded(member, view) if member.method == STORED else view

    def _get_remote(self, keys: Iterable[str]) -> Iterator[Buffer | None]:
        present = list[list[Member]]()
        batches = list[list[Member | None]]()
        for batch in partition_all(config.get("requests"), keys):
            batches.append([self.members.get(key) for key in batch])
            present.append([member for member in batches[-1] if member is not None])
        values = self._fetch(present)
        for member in chain.from_iterable(batches):
            yield None if member is None else self._decoded(member, next(values))

    def _fetch(self, batches: Iterable[Sequence[Member]]) -> Iterator[Buffer]:
        """Yield the stored bytes of members, requested together with their headers.

        Members of a batch that are close to each other are one request.
        """
        plans = [(members, *self._planned(members)) for members in batches]
        parts = self.source.read_all(whole for _, _, groups in plans for whole, _ in groups)
        for members, ranges, groups in plans:
            pieces_of = dict[int, memoryview]()
            for (_, pieces), data in zip(groups, parts, strict=False):
                for at, offset, length in pieces:
                    pieces_of[at] = memoryview(data)[offset : offset + length]
            for at, member in enumerate(members):
                yield self._value(member, ranges[at], pieces_of[at])

    def _planned(self, members: Sequence[Member]) -> tuple[list[Range], list[_Joined]]:
        """Return the range of each member, and the ranges that are requested for them."""
        ranges = [
            (self._starts[member.offset], member.packed)
            if member.offset in self._starts
            else _with_header(member, member.packed)
            for member in members
        ]
        return ranges, coalesce_any(ranges, config.get("coalesce-gap"), JOIN_LIMIT)

    def _value(self, member: Member, part: Range, data: memoryview) -> Buffer:
        """Return the stored bytes of a member in the range that was read for it."""
        if part[0] != member.offset:
            return data
        skip = self._header(member, data)
        value = data[skip : skip + member.packed]
        if len(value) < member.packed:
            value = memoryview(self.source.read(member.offset + skip, member.packed))
        return value

    # ---- parts of values

    def get_range(self, key: str, start: int, length: int | None) -> Buffer | None:
        """Return part of a value; a negative start counts from the end."""
        member = self.members.get(key)
        if member is None:
            return None
        if not _is_plain(member):
            return cut(cast("bytes", self.get(key)), start, length)
        begin = max(member.size + start, 0) if start < 0 else min(start, member.size)
        left = member.size - begin
        size = left if length is None else min(length, left)
        self._check()
        return self._part(member, begin, size)

    def get_ranges(
        self, key: str, ranges: Sequence[Range], scratch: Scratch
    ) -> Iterator[Buffer | None]:
        """Yield parts of one value, given as (start, length) in the order of their starts."""
        member = self.members.get(key)
        if member is None:
            yield from (None for _ in ranges)
            return
        if not _is_plain(member):
            value = cast("bytes", self.get(key))
            yield from (cut(value, *each) for each in ranges)
            return
        self._check()
        first = self._start(member)
        gap, limit = (
            (config.get("coalesce-gap"), JOIN_LIMIT)
            if self._local is None
            else (_LOCAL_GAP, _LOCAL_LIMIT)
        )
        groups = [
            ((start, max(min(length, member.size - start), 0)), parts)
            for (start, length), parts in coalesce(ranges, gap, limit)
        ]
        if self._local is None:
            wholes = self.source.read_all((first + start, n) for (start, n), _ in groups)
            for data, ((_, length), parts) in zip(wholes, groups, strict=True):
                yield from self._cut(member, memoryview(data), length, parts)
            return
        for (start, length), parts in groups:
            view = scratch.reserve(length)[:length]
            view = view[: self._local.read_into(view, first + start)]
            yield from self._cut(member, view, length, parts)

    def _cut(
        self, member: Member, data: memoryview, length: int, parts: Sequence[Range]
    ) -> Iterator[memoryview]:
        if len(data) != length:
            raise self._failed(member, "the zip archive is truncated", found=f"{len(data)} bytes")
        for offset, size in parts:
            yield data[offset : offset + size]

    def _part(self, member: Member, begin: int, size: int) -> bytes:
        """Return part of a stored member."""
        is_unseen = self._local is None and member.offset not in self._starts
        if is_unseen and begin + size <= config.get("coalesce-gap"):
            # Read from the header on, by one request: the part is rarely far behind it.
            both = self.source.read(*_with_header(member, begin + size))
            skip = self._header(member, both) + begin
            if len(both) >= skip + size:
                return both[skip : skip + size]
        data = self.source.read(self._start(member) + begin, size) if size else b""
        if len(data) != size:
            raise self._failed(member, "the zip archive is truncated", found=f"{len(data)} bytes")
        return data

    # ---- members

    def _check(self) -> None:
        if self._local is not None:
            self._local.check()

    def _start(self, member: Member) -> int:
        """Return the offset of the stored bytes of a member in the file."""
        start = self._starts.get(member.offset)
        if start is None:
            length = LOCAL_SIZE + len(member.encoded_name)
            start = member.offset + self._header(member, self.source.read(member.offset, length))
        return start

    def _header(self, member: Member, data: bytes | memoryview) -> int:
        """Return the length of a member's header, and remember the offset of its stored bytes."""
        length = local_length(data, member, self.source.name)
        self._starts[member.offset] = member.offset + length
        return length

    def _decoded(self, member: Member, data: Buffer) -> Any:
        """Return the value of a member for its stored bytes."""
        if member.is_encrypted:
            raise self._failed(
                member, "the zip archive is encrypted, which is not supported; decrypt it first"
            )
        if len(data) != member.packed:
            raise self._failed(
                member,
                "the zip archive is truncated",
                found=f"{len(data)} bytes",
                expected=f"{member.packed}",
            )
        value = data if member.method == STORED else self._unpacked(member, data)
        if len(value) != member.size:
            raise self._failed(
                member,
                "the size of the member is not that in the directory of the zip archive",
                found=f"{len(value)} bytes or more",
                expected=f"{member.size}",
            )
        if _fast.crc32(value) != member.crc:
            raise self._failed(member, "the CRC-32 of the member does not match its value")
        return value

    def _unpacked(self, member: Member, data: Buffer) -> Buffer:
        size, packed = member.size, max(member.packed, 1)
        if size > packed * _MAX_RATIO and (
            member.method == _DEFLATED or size > _MAX_SIZE_BEYOND_RATIO
        ):
            raise self._failed(
                member,
                "the size of the decompressed member is implausible",
                found=f"{member.packed} bytes for {size}",
                expected=f"at most {_MAX_RATIO} times as many",
            )
        try:
            return unpack(member.method, data, size)
        except _FAILURES as error:
            reason = error.message if isinstance(error, ZarrdaskError) else str(error)
            raise self._failed(member, f"the member can't be decompressed: {reason}") from error

    def _failed(
        self, member: Member, message: str, *, found: Any = None, expected: Any = None
    ) -> StoreError:
        key = f"{self.source.name}/{member.name}"
        return StoreError(message, key=key, found=found, expected=expected)


def _with_header(member: Member, count: int) -> Range:
    """Return the range of a member's header and the first of its stored bytes.

    The length of the header is known only when it is read: the range may be a little too long, or
    too short if the extra field is longer than `_EXTRA`.
    """
    length = LOCAL_SIZE + len(member.encoded_name) + _EXTRA + count
    return member.offset, min(length, member.limit - member.offset)


def _is_plain(member: Member) -> bool:
    """Whether parts of a value can be read without decoding all of it."""
    return member.method == STORED and member.packed == member.size and not member.is_encrypted


def unpack(method: int, data: Buffer, size: int) -> Buffer:
    """Decompress the bytes of a member, to at most one byte more than the expected size."""
    if method == _DEFLATED:
        inflate = _fast.decompressobj(-15)
        value: Buffer = inflate.decompress(data, size + 1)
        if not inflate.eof and len(value) <= size:
            # The end of the stream may come after the last byte.
            value += inflate.decompress(inflate.unconsumed_tail, 1)
        if not inflate.eof and len(value) <= size:
            raise ValueError("the compressed bytes end early")
        return value
    if method == _BZIP2:
        return bz2.BZ2Decompressor().decompress(data, size + 1)
    if method == _LZMA:
        return _unpack_lzma(bytes(data), size)
    if method == _ZSTD:
        # The CRC-32 of the member detects a frame with fewer bytes.
        content = np.empty(size, np.uint8)
        try:
            import_module("numcodecs.zstd").decompress(data, content)
        except RuntimeError as error:
            raise ValueError(str(error)) from error
        return content.data
    raise ValueError(f"the method {method} is not supported; 0, 8, 12, 14 and 93 are")


def _unpack_lzma(data: bytes, size: int) -> bytes:
    """Decompress LZMA bytes, which begin with the properties of the stream."""
    length = int.from_bytes(data[2:4], "little")
    properties = data[4 : 4 + length]
    if len(properties) != 5 or properties[0] >= 9 * 5 * 5:
        raise ValueError("the properties of LZMA are missing")
    rest, lc = divmod(properties[0], 9)
    pb, lp = divmod(rest, 5)
    # The stream can't refer to bytes before the beginning of the value.
    dictionary = min(int.from_bytes(properties[1:], "little"), max(size, 2**12))
    filters = [
        {"id": lzma.FILTER_LZMA1, "dict_size": max(dictionary, 2**12), "lc": lc, "lp": lp, "pb": pb}
    ]
    decompressor = lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=filters)
    return decompressor.decompress(data[4 + length :], size + 1)


def list_folders(names: Iterable[str]) -> dict[str, Names]:
    """Return the sorted names of keys, and of prefixes, directly below each prefix.

    >>> list_folders(["a/b", "c"])
    {'': (['c'], ['a']), 'a/': (['b'], [])}
    """
    folders: dict[str, Names] = {"": ([], [])}
    for full in names:
        above, slash, name = full.rpartition("/")
        parent = prefix = above + slash
        below: list[tuple[str, str]] = []
        while prefix not in folders:
            folders[prefix] = [], []
            above, slash, folder = prefix[:-1].rpartition("/")
            prefix = above + slash
            below.append((prefix, folder))
        for outer, folder in below:
            folders[outer][1].append(folder)
        folders[parent][0].append(name)
    for keys, prefixes in folders.values():
        keys.sort()
        prefixes.sort()
    return folders
