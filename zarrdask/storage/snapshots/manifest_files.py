"""Files of manifests, JSON or Parquet, whose content is checked when it is read."""

import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from io import BytesIO
from typing import Any

from zarrdask.errors import MetadataError, UnsupportedError
from zarrdask.formats.store_keys import check_relative
from zarrdask.runtime.packages import load_module
from zarrdask.storage.file_calls import replace
from zarrdask.storage.local.atomic import put_file
from zarrdask.storage.local.open_file import check_file_name, reported, write_whole
from zarrdask.storage.snapshots.digests import EXPECTED, is_digest

#: The member that says that a JSON document is a manifest, and the key of a Parquet file's.
_FORMAT = "zarrdask-manifest"
_SUFFIX = ".parquet"
#: The fields of an entry; the first two are required.
_FIELDS = ("key", "size", "version", "digest", "version_id")
#: A file of Parquet that names more rows, or more bytes, for each of its own bytes is damaged: the
#: keys differ, so that they can't be compressed without limit.
_MAX_ROWS_PER_BYTE, _MAX_RATIO = 4, 1000

Row = dict[str, Any]


def save(path: str | os.PathLike[str], location: str, entries: Iterable[Any]) -> None:
    """Write the entries of a manifest to a file, in the format that the file's name ends with."""
    check_file_name(str(path))
    data = render(location, entries, str(path), parquet=os.fspath(path).endswith(_SUFFIX))
    with reported(str(path)):
        target = os.path.realpath(path)
        if os.path.exists(target) and not os.path.isfile(target):
            with open(path, "wb") as file:  # such as /dev/stdout
                file.write(data)
        else:
            put_file(target, lambda file: write_whole(file, data), replace, lambda directory: False)


def load(path: str | os.PathLike[str]) -> tuple[str, list[Row]]:
    """Return the location and the valid entries of a manifest, in the order of their keys."""
    check_file_name(str(path))
    with reported(str(path)), open(path, "rb") as file:
        data = file.read()
    return parse(data, str(path))


def render(location: str, entries: Iterable[Any], name: str, *, parquet: bool) -> bytes:
    """Return the content of a file; its name is for messages."""
    rows = [asdict(entry) for entry in entries]
    if parquet:
        return _to_parquet(location, rows, name)
    # Few objects have version IDs.
    kept = [{k: v for k, v in row.items() if k != "version_id" or v} for row in rows]
    return json.dumps({"format": _FORMAT, "location": location, "entries": kept}).encode()


def parse(data: bytes, name: str) -> tuple[str, list[Row]]:
    """Return the location and the valid entries in the content of a file, as `load`."""
    is_parquet = data.startswith(b"PAR1")
    location, rows = _from_parquet(data, name) if is_parquet else _from_json(data, name)
    entries = [_checked(row, name) for row in rows]
    if len({entry["key"] for entry in entries}) < len(entries):
        raise MetadataError("a key occurs twice in the manifest", key=name)
    return location, sorted(entries, key=lambda entry: str(entry["key"]))


def is_manifest_file(path: str) -> bool:
    """Whether a local file is a manifest, by its beginning and its name."""
    try:
        with open(path, "rb") as file:
            start = file.read(len(_FORMAT) + 16)
    except (OSError, ValueError):
        return False
    return _FORMAT.encode() in start or (start.startswith(b"PAR1") and path.endswith(_SUFFIX))


def _from_json(data: bytes, path: str) -> tuple[str, Sequence[Any]]:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise MetadataError("the file is not JSON", key=path, found=str(error)) from error
    is_manifest = isinstance(document, dict) and document.get("format") == _FORMAT
    if not (is_manifest and isinstance(document.get("entries"), list)):
        raise MetadataError("the file is not a manifest", key=path, expected=_FORMAT)
    return str(document.get("location")), document["entries"]


def _to_parquet(location: str, rows: Sequence[Row], path: str) -> bytes:
    pyarrow, parquet = _pyarrow(path)
    columns = {
        name: pyarrow.array(
            [row[name] for row in rows], pyarrow.int64() if name == "size" else pyarrow.string()
        )
        for name in _FIELDS
    }
    table = pyarrow.table(columns).replace_schema_metadata({_FORMAT: location})
    buffer = BytesIO()
    parquet.write_table(table, buffer, compression="zstd")
    return buffer.getvalue()


def _from_parquet(data: bytes, path: str) -> tuple[str, Sequence[Any]]:
    pyarrow, parquet = _pyarrow(path)
    try:
        file = parquet.ParquetFile(pyarrow.BufferReader(data))
        location = (file.schema_arrow.metadata or {}).get(_FORMAT.encode())
        described = file.metadata
        groups = (described.row_group(n).total_byte_size for n in range(described.num_row_groups))
        rows, size = described.num_rows, sum(groups)
        if rows > _MAX_ROWS_PER_BYTE * len(data) or size > _MAX_RATIO * len(data):
            found = f"{rows} rows, {size} bytes"
            raise MetadataError("the file is damaged: it is too short", key=path, found=found)
        if location is None or not {*file.schema_arrow.names} <= {*_FIELDS}:
            raise MetadataError("the file is not a manifest", key=path, expected=_FORMAT)
        return location.decode(errors="replace"), file.read().to_pylist()
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        if isinstance(error, MetadataError):
            raise
        raise MetadataError("the file is not Parquet", key=path, found=str(error)) from error


def _pyarrow(path: str) -> tuple[Any, Any]:
    try:
        return load_module("pyarrow"), load_module("pyarrow.parquet")
    except ImportError as error:
        raise UnsupportedError(
            "manifests in Parquet need pyarrow, which is not installed; use a name that ends with "
            ".json, or install zarrdask[parquet]",
            key=path,
        ) from error


def _checked(row: Any, path: str) -> Row:
    """Return an entry of a file, if it is valid."""
    if not isinstance(row, dict) or not {"key", "size"} <= row.keys() <= {*_FIELDS}:
        raise MetadataError("invalid entry", key=path, found=row, expected=list(_FIELDS))
    key = check_relative(row["key"], path)
    checks: dict[str, tuple[Callable[[Any], bool], str]] = {
        "size": (_is_size, "bytes"),
        "version": (_is_text, "text"),
        "version_id": (_is_text, "text"),
        "digest": (lambda value: value is None or is_digest(value), EXPECTED),
    }
    for name, (is_valid, expected) in checks.items():
        if not is_valid(row.get(name)):
            key = f"{path} {key}"
            raise MetadataError(f"invalid {name}", key=key, found=row[name], expected=expected)
    return row


def _is_size(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**63


def _is_text(value: Any) -> bool:
    return isinstance(value, str | None)
