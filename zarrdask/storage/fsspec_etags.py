"""Requests with ETags to S3 and to HTTP servers, which file systems of fsspec do not offer."""

from typing import Any, NamedTuple

import fsspec  # noqa: F401
from fsspec.asyn import sync

from zarrdask.storage.byte_ranges import Part, Tag, Version, cut, strong_etag
from zarrdask.storage.fsspec_options import protocols


class Answer(NamedTuple):
    """A value or part of one, its ETag, and which part of how many bytes it is (Content-Range)."""

    value: bytes
    etag: str | None
    content_range: str | None

    def part(self, tag: Tag | None) -> Part | None:
        """Return the answer as a part of a value; None if that has another ETag than `tag`."""
        etag = strong_etag(self.etag) if self._size else None
        if tag not in (None, etag):
            return None  # not every server supports the condition
        if self.content_range is None:
            return Part(self.value, len(self.value), None)  # a server without ranges
        return Part(self.value, self._size, etag)

    def version(self, start: int, length: int | None) -> Version:
        """Return the answer to a request for a value, or for part of it, if it has changed."""
        if self.content_range is None:
            # It is the whole value, also if the server knows no ranges.
            return Version(cut(self.value, start, length), len(self.value), strong_etag(self.etag))
        value = self.value[:length]  # a range from the end is all of the end
        return Version(value, self._size, strong_etag(self.etag) if self._size else None)

    @property
    def _size(self) -> int:
        """The size of the whole value in bytes; 0 if the server does not say."""
        size = (self.content_range or "").rpartition("/")[2]
        return int(size) if size.isdigit() else 0


class NotModifiedError(Exception):
    """The answer of an HTTP server if a value has the ETag that is not wanted."""

    status = 304


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


def request(
    fs: Any,
    path: str,
    part: str | None = None,
    tag: str | None = None,
    unless: str | None = None,
) -> Answer:
    """Return a value, or the part of it that a header ``Range`` says.

    It must have the ETag `tag`, and must not have the ETag `unless`, if they are given.
    """
    call = _from_s3 if "s3" in protocols(fs) else _by_http
    return sync(fs.loop, call, fs, path, part, tag, unless)  # type: ignore[no-any-return]


async def _from_s3(
    fs: Any, path: str, part: str | None, tag: str | None, unless: str | None
) -> Answer:
    bucket, name, _ = fs.split_path(path)
    options = {"Range": part, "IfMatch": tag, "IfNoneMatch": unless, **fs.req_kw}
    options = {option: each for option, each in options.items() if each is not None}
    answer = await fs._call_s3("get_object", Bucket=bucket, Key=name, **options)
    async with answer["Body"] as body:
        return Answer(await body.read(), answer.get("ETag"), answer.get("ContentRange"))


async def _by_http(
    fs: Any, path: str, part: str | None, tag: str | None, unless: str | None
) -> Answer:
    options = dict(fs.kwargs)
    conditions = {"Range": part, "If-Match": tag, "If-None-Match": unless}
    headers = {**options.pop("headers", {}), "Accept-Encoding": "identity"}
    headers |= {name: each for name, each in conditions.items() if each is not None}
    session = await fs.set_session()
    async with session.get(fs.encode_url(path), headers=headers, **options) as answer:
        fs._raise_not_found_for_status(answer, path)
        if answer.status == NotModifiedError.status:
            raise NotModifiedError
        value, found = await answer.read(), answer.headers
        return Answer(value, found.get("ETag"), found.get("Content-Range"))


def can_replace(fs: Any) -> bool:
    """Whether botocore has conditional writes: s3fs leaves out what an old one does not know."""
    operation = fs.s3.meta.service_model.operation_model("PutObject")
    return "IfMatch" in operation.input_shape.members


def replace(fs: Any, path: str, value: bytes, tag: Tag | None) -> None:
    """Store a value in S3 if the present one has an ETag, or if there is none for None."""
    bucket, name, _ = fs.split_path(path)
    # Not `pipe_file`, which may look the key up first: a value that another stored would be lost.
    condition = {"IfNoneMatch": "*"} if tag is None else {"IfMatch": tag}
    fs.call_s3("put_object", Bucket=bucket, Key=name, Body=value, **condition)
