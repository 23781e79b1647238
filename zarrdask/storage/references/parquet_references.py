"""References in Parquet, as kerchunk writes them: only the needed files are read.

A directory has the documents of all nodes in ``.zmetadata``, and for each array the files
``refs.0.parq``, ``refs.1.parq`` and so on. A file has a row for each of ``record_size`` chunks, in
C order of the chunk grid, with the columns ``path``, ``offset``, ``size`` and ``raw``.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from hashlib import blake2b
from math import prod
from threading import Lock
from typing import Any, ClassVar, NamedTuple

from zarrdask.errors import MetadataError, StoreError
from zarrdask.formats.byte_ranges import Buffer
from zarrdask.formats.store_keys import Names, right_below
from zarrdask.runtime.packages import load_module
from zarrdask.runtime.scratch import Scratch
from zarrdask.storage.base import Store

#: The document that makes a directory one of references.
DOCUMENT = ".zmetadata"
#: Bytes of decoded files that are kept.
MAX_BYTES = 2**26
#: The largest file that is decoded, in bytes, and the bytes of a row besides its texts.
MAX_FILE_BYTES, _ROW_BYTES = 2**28, 32
_TEXTS = ("path", "raw")
_COLUMNS = ("path", "offset", "size", "raw")
_ARRAY = re.compile(r"(.+)/\.zarray")
_CHUNK = re.compile(r"\d+(\.\d+)*", re.ASCII)
_FILE = re.compile(r"refs\.(\d+)\.parq", re.ASCII)


class _File(NamedTuple):
    """A file of references: the path of its array, and its number."""

    array: str
    number: int


class ParquetReferences:
    """The references in a directory of Parquet files, whose ``.zmetadata`` is the document.

    Raises
    ------
    MetadataError
        If the document is not valid.
    StoreError
        If pyarrow is not installed.
    """

    #: Empty: only references in JSON may have templates.
    templates: ClassVar[Mapping[str, str]] = {}

    def __init__(self, store: Store, document: bytes) -> None:
        try:
            self._pyarrow = load_module("pyarrow")
            self._parquet = load_module("pyarrow.parquet")
        except ModuleNotFoundError as error:
            raise StoreError(
                "references in Parquet need pyarrow; install zarrdask[parquet]", key=store.url
            ) from error
        self.store = store
        self.digest = blake2b(document, digest_size=12).hexdigest()
        try:
            parsed = json.loads(document)
            self._documents: dict[str, Any] = dict(parsed["metadata"])
            self._rows = int(parsed["record_size"])
            if self._rows < 1:
                raise ValueError(f"record_size is {self._rows}")
            arrays = [name[1] for name in map(_ARRAY.fullmatch, self._documents) if name]
            self._grids = {array: self._grid(array) for array in arrays}
        except (ValueError, TypeError, KeyError, ArithmeticError, RecursionError) as error:
            raise MetadataError(
                "this is not a document of references in Parquet",
                key=f"{store.url}/{DOCUMENT}",
                found=f"{type(error).__name__}: {error}",
                expected="a JSON object with the documents of v2 in metadata, and record_size",
            ) from error
        #: Decoded files, the one that was used last at the end.
        self._files: dict[_File, tuple[Any, ...]] = {}
        self._lock = Lock()

    def load(self, keys: Iterable[str]) -> Mapping[str, Any]:
        """Return the references of the keys that exist; all files are requested together."""
        entries, rows = dict[str, Any](), dict[str, tuple[_File, int]]()
        for key in keys:
            if key in self._documents:
                entries[key] = self._documents[key]
            elif (row := self._row(key)) is not None:
                rows[key] = row
        files = self._load({file for file, _ in rows.values()})
        return entries | {key: _reference(files[file], at) for key, (file, at) in rows.items()}

    def list_dir(self, prefix: str) -> Names:
        """Return the names right below a prefix; files are read only for the chunks of an array."""
        array = prefix.removesuffix("/")
        chunks = self._chunks(array) if array in self._grids else ()
        return right_below(prefix, [*self._named(prefix), *chunks])

    def list_prefix(self, prefix: str) -> Iterator[str]:
        """Yield every key that begins with a prefix."""
        yield from self._named(prefix)
        for array in self._grids:
            if f"{array}/".startswith(prefix):
                yield from self._chunks(array)

    def _named(self, prefix: str) -> list[str]:
        return [key for key in self._documents if key.startswith(prefix)]

    # ---- chunks

    def _grid(self, array: str) -> tuple[int, ...]:
        """Return the number of chunks along each axis of an array."""
        if ".." in array.split("/"):
            raise ValueError(f"{array!r} is not a path")
        document = self._documents[f"{array}/.zarray"]
        axes = zip(document["shape"], document["chunks"], strict=True)
        # An array without axes has one chunk, which has the key "0".
        return tuple(-(-int(size) // int(length)) for size, length in axes) or (1,)

    def _row(self, key: str) -> tuple[_File, int] | None:
        """Return the file and the row of a chunk; None if the key is not one of a chunk."""
        array, _, chunk = key.rpartition("/")
        grid = self._grids.get(array, ())
        if not _CHUNK.fullmatch(chunk):
            return None
        index, number = [int(position) for position in chunk.split(".")], 0
        if len(index) != len(grid):
            return None
        for position, length in zip(index, grid, strict=True):
            if position >= length:
                return None
            number = number * length + position
        file, row = divmod(number, self._rows)
        return _File(array, file), row

    def _chunks(self, array: str) -> Iterator[str]:
        """Yield the keys of the chunks of an array that have references."""
        grid = self._grids[array]
        for name in filter(None, map(_FILE.fullmatch, self.store.list_dir(f"{array}/")[0])):
            file = _File(array, int(name[1]))
            columns, first = self._load([file])[file], file.number * self._rows
            rows = min(len(columns[0]) if columns else 0, self._rows, prod(grid) - first)
            for number in (first + at for at in range(rows) if _reference(columns, at) is not None):
                rest, index = number, list[str]()
                for length in reversed(grid):
                    rest, position = divmod(rest, length)
                    index.insert(0, str(position))
                yield f"{array}/{'.'.join(index)}"

    # ---- files

    def _load(self, files: Collection[_File]) -> Mapping[_File, tuple[Any, ...]]:
        """Return the columns of files; columns of missing files are empty."""
        # The lock is not held while files are requested: the threads that request them may wait
        # for it.
        with self._lock:
            loaded = {file: self._files[file] for file in files if file in self._files}
        missing = [file for file in files if file not in loaded]
        keys = [f"{array}/refs.{number}.parq" for array, number in missing]
        values = self.store.get_many(keys, Scratch()) if keys else ()
        for file, key, value in zip(missing, keys, values, strict=True):
            loaded[file] = () if value is None else self._decode(key, value)
        with self._lock:
            for file in loaded:
                self._files.pop(file, None)
            self._files |= loaded
            sizes = {file: sum(each.nbytes for each in self._files[file]) for file in self._files}
            while sum(sizes.values()) > MAX_BYTES:
                oldest = next(iter(sizes))
                del sizes[oldest], self._files[oldest]
        return loaded

    def _decode(self, key: str, value: Buffer) -> tuple[Any, ...]:
        try:
            # A text that many rows have in common is in memory once, as it is in the file.
            buffer = self._pyarrow.py_buffer(bytes(value))
            file = self._parquet.ParquetFile(buffer, read_dictionary=_TEXTS)
            self._check_size(key, file.metadata)
            table = file.read(columns=_COLUMNS, use_threads=False)
            return tuple(table.column(name).combine_chunks() for name in _COLUMNS)
        except (self._pyarrow.ArrowException, OSError, KeyError) as error:
            raise StoreError(
                f"this file of references is damaged: {error}", key=f"{self.store.url}/{key}"
            ) from error

    def _check_size(self, key: str, metadata: Any) -> None:
        """Check the size of a file when it is decoded: a few megabytes may be many gigabytes."""
        groups = [metadata.row_group(at) for at in range(metadata.num_row_groups)]
        columns = [group.column(at) for group in groups for at in range(group.num_columns)]
        packed = sum(column.total_uncompressed_size for column in columns)
        rows, expected = metadata.num_rows, f"at most {self._rows} rows (record_size)"
        if rows > self._rows:
            description = f"{rows} rows"
        elif packed + rows * _ROW_BYTES > MAX_FILE_BYTES:
            description = f"{packed} bytes, in {rows} rows"
            expected = (
                f"at most {MAX_FILE_BYTES} bytes; write the references with fewer rows a file"
            )
        else:
            return
        raise StoreError(
            "this file of references is too large when it is decoded",
            key=f"{self.store.url}/{key}",
            found=description,
            expected=expected,
        )


def _reference(columns: tuple[Any, ...], at: int) -> Any:
    """Return the reference in a row of a file: as in kerchunk's JSON, or bytes; None if missing."""
    if not columns or at >= len(columns[0]):
        return None
    path, offset, size, raw = (column[at].as_py() for column in columns)
    if isinstance(raw, bytes | str):
        return raw
    if not isinstance(path, str):
        return None
    return [path, offset, size] if offset or size else [path]
