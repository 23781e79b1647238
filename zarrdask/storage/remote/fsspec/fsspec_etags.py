"""Requests with ETags to S3 and to HTTP servers, which file systems of fsspec do not offer."""

from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Any

import fsspec  # noqa: F401
from fsspec.asyn import sync

from zarrdask.formats.byte_ranges import Tag
from zarrdask.storage.remote.body_limit import body_limit, check_body
from zarrdask.storage.remote.client_store import Described, Fetched
from zarrdask.storage.remote.fsspec.fsspec_options import protocols
from zarrdask.storage.request import Request


class NotModifiedError(Exception):
    """The answer 304 of an HTTP server: the value still has the ETag of ``If-None-Match``."""

    status = HTTPStatus.NOT_MODIFIED


def header(start: int, length: int | None) -> str | None:
    """Return the header ``Range`` for part of a value, or None for all of it.

    >>> header(4, 2), header(4, None), header(-4, 4), header(0, None)
    ('bytes=4-5', 'bytes=4-', 'bytes=-4', None)
    """
    if start < 0:
        return f"bytes={start}"
    if length is None:
        return f"bytes={start}-" if start else None
    return f"bytes={start}-{start + length - 1}"


def fetch(fs: Any, path: str, request: Request) -> Fetched:
    """Request a value, or part of it, that meets the conditions of a request."""
    call = _from_s3 if "s3" in protocols(fs) else _by_http
    # The event loop has a thread of its own.
    arguments = fs, path, request, body_limit()
    return sync(fs.loop, call, *arguments)  # type: ignore[no-any-return]


async def _from_s3(fs: Any, path: str, request: Request, limit: int) -> Fetched:
    bucket, name, _ = fs.split_path(path)
    options = {
        "Range": header(request.start, request.length),
        "IfMatch": request.if_match,
        "IfNoneMatch": request.unless,
        "VersionId": request.version_id,
        **fs.req_kw,
    }
    options = {option: each for option, each in options.items() if each is not None}
    answer = await fs._call_s3("get_object", Bucket=bucket, Key=name, **options)
    async with answer["Body"] as body:
        status = answer["ResponseMetadata"]["HTTPStatusCode"]
        check_body(answer.get("ContentLength") or 0, limit)
        # By the version of aiobotocore, this is the answer of aiohttp, or around it.
        steps = getattr(getattr(body, "content", None), "iter_any", None)
        value = await body.read() if steps is None else await _received(steps(), limit)
        etag, version = answer.get("ETag"), answer.get("VersionId")
        return _fetched(value, status, etag, answer.get("ContentRange"), version)


async def _by_http(fs: Any, path: str, request: Request, limit: int) -> Fetched:
    options = dict(fs.kwargs)
    part = header(request.start, request.length)
    conditions = {"Range": part, "If-Match": request.if_match, "If-None-Match": request.unless}
    headers = {**options.pop("headers", {}), "Accept-Encoding": "identity"}
    headers |= {name: each for name, each in conditions.items() if each is not None}
    session = await fs.set_session()
    async with session.get(fs.encode_url(path), headers=headers, **options) as answer:
        fs._raise_not_found_for_status(answer, path)
        if answer.status == NotModifiedError.status:
            raise NotModifiedError
        check_body(answer.content_length or 0, limit)
        value, found = await _received(answer.content.iter_any(), limit), answer.headers
        return _fetched(value, answer.status, found.get("ETag"), found.get("Content-Range"))


async def _received(steps: AsyncIterator[bytes], limit: int) -> bytes:
    """Return a body that is received in steps, unless it is too long."""
    parts, size = [], 0
    async for part in steps:
        size += len(part)
        check_body(size, limit)
        parts.append(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _fetched(
    value: bytes,
    status: int,
    etag: str | None,
    content_range: str | None,
    version_id: str | None = None,
) -> Fetched:
    # A server may send the whole value although part of it was requested.
    is_whole = status != HTTPStatus.PARTIAL_CONTENT and content_range is None
    size = str(len(value)) if is_whole else (content_range or "").rpartition("/")[2]
    described = Described(int(size) if size.isdigit() else 0, etag, etag, version_id)
    return Fetched(value, lambda: described, is_whole=is_whole)


def describe(fs: Any, path: str) -> Described:
    """Request the properties of a value in S3."""
    bucket, name, _ = fs.split_path(path)
    head = fs.call_s3("head_object", Bucket=bucket, Key=name, **fs.req_kw)
    etag, version = head.get("ETag"), head.get("VersionId")
    return Described(int(head["ContentLength"]), etag, etag, version, head.get("LastModified"))


def replace(fs: Any, path: str, value: bytes, tag: Tag | None) -> None:
    """Store a value in S3 if the present one has an ETag, or if there is none for None.

    Raises
    ------
    NotImplementedError
        If it is not S3, or botocore has no conditional writes: s3fs would leave the condition out.
    """
    client = getattr(fs, "s3", None)
    if client is None:
        raise NotImplementedError
    operation = client.meta.service_model.operation_model("PutObject")
    if "IfMatch" not in operation.input_shape.members:
        raise NotImplementedError
    bucket, name, _ = fs.split_path(path)
    # Not `pipe_file`, which may look the key up first: it could replace another writer's value.
    condition = {"IfNoneMatch": "*"} if tag is None else {"IfMatch": tag}
    fs.call_s3("put_object", Bucket=bucket, Key=name, Body=value, **condition)
