"""Concatenations that are saved as files, from their documents.

It is the content of a file (``.json``), or the metadata of a Parquet file whose columns are those
of the document (``.parquet``).
"""

import io
import json
import os
from typing import Any

from zarrdask.arrays.chunks.members.concatenated_store import ConcatenatedStore
from zarrdask.arrays.hierarchy.manifest import KEY, parse_manifest
from zarrdask.errors import MetadataError
from zarrdask.formats.metadata.json import parse_json
from zarrdask.runtime.packages import load_module
from zarrdask.storage.resolve import open_store

#: The endings of names of files that hold a concatenation.
SUFFIXES = (".json", ".parquet")
#: The beginnings of these files.
JSON_START, PARQUET_MAGIC = f'{{"{KEY}"'.encode(), b"PAR1"


def is_manifest(url: Any) -> bool:
    """Whether a URL leads to a file which may hold a concatenation."""
    if not isinstance(url, str | os.PathLike):
        return False
    text = os.fspath(url)
    return isinstance(text, str) and text.endswith(SUFFIXES) and "::" not in text


def split_url(url: Any) -> tuple[str, str]:
    """Return the directory, absolute, and the name of a file."""
    text = os.fspath(url)
    if "://" not in text:
        text = os.path.abspath(os.path.expanduser(text))
    base, _, name = text.rpartition("/")
    return base, name


def open_manifest(url: Any, storage_options: dict[str, Any] | None) -> ConcatenatedStore | None:
    """Return the concatenation in a file, or None if there is none in it."""
    base, name = split_url(url)
    data = open_store(base, storage_options if "://" in base else None).get(name)
    if data is None:
        return None
    if name.endswith(".parquet"):
        document = _from_parquet(bytes(data), f"{base}/{name}")
    else:
        document = parse_json(bytes(data), f"{base}/{name}")
    return parse_manifest(document, f"{base}/{name}", base, storage_options)


def encode_manifest(document: dict[str, Any], *, parquet: bool) -> bytes:
    """Return a document as the content of a file."""
    if parquet:
        return _to_parquet(document)
    return json.dumps(document, separators=(",", ":")).encode()


def _to_parquet(document: dict[str, Any]) -> bytes:
    pyarrow = load_module("pyarrow")
    columns = document["columns"]
    longest = max(map(len, columns), default=0)
    padded = {
        str(number): pyarrow.array([*values, *[None] * (longest - len(values))])
        for number, values in enumerate(columns)
    }
    head = document | {"columns": [len(values) for values in columns]}
    table = pyarrow.table(padded).replace_schema_metadata({KEY: json.dumps(head)})
    buffer = io.BytesIO()
    load_module("pyarrow.parquet").write_table(table, buffer, compression="zstd")
    return buffer.getvalue()


def _from_parquet(data: bytes, url: str) -> dict[str, Any]:
    pyarrow = load_module("pyarrow")
    try:
        table = load_module("pyarrow.parquet").read_table(pyarrow.BufferReader(data))
    except (pyarrow.ArrowInvalid, OSError) as error:
        raise MetadataError(f"this is not a Parquet file: {error}", key=url) from error
    head = (table.schema.metadata or {}).get(KEY.encode())
    if head is None:
        raise MetadataError("this Parquet file is not a saved concatenation", key=url)
    document: dict[str, Any] = json.loads(head)
    lengths = document["columns"]
    columns = [table.column(str(n)).to_pylist()[:length] for n, length in enumerate(lengths)]
    return document | {"columns": columns}
