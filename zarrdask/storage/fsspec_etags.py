"""Requests with ETags to S3 and to HTTP servers, which file systems of fsspec do not offer."""

from typing import Any, NamedTuple

import fsspec  # noqa: F401
from fsspec.asyn import sync

from zarrdask.storage.byte_ranges import Part, Tag
from zarrdask.storage.fsspec_options import protocols


class Answer(NamedTuple):
    """A value or part of one, its ETag, and which part of how many bytes it is (Content-Range)."""

    value: bytes
    etag: str | None
    content_range: str | None

    def part(self, tag: Tag | None) -> Part | None:
        """Return the answer as a part of a value; None if that has another ETag than `tag`."""
        size = "" if self.content_range is None else self.content_range.rpartition("/")[2]
        is_strong = self.etag is not None and self.etag.startswith('"') and size.isdigit()
        etag = self.etag if is_strong else None
        if tag not in (None, etag):
            return None  # not every server knows the condition
        if self.content_range is None:
            return Part(self.value, len(self.value), None)  # the server knows no ranges
        return Part(self.value, int(size) if size.isdigit() else 0, etag)


def request(fs: Any, path: str, part: str | None = None, tag: str | None = None) -> Answer:
    """Return a value, or the part of it that a header ``Range`` says, if it has an ETag."""
    call = _from_s3 if "s3" in protocols(fs) else _by_http
    return sync(fs.loop, call, fs, path, part, tag)  # type: ignore[no-any-return]


async def _from_s3(fs: Any, path: str, part: str | None, tag: str | None) -> Answer:
    bucket, name, _ = fs.split_path(path)
    options = {"Range": part, "IfMatch": tag, **fs.req_kw}
    options = {option: each for option, each in options.items() if each is not None}
    answer = await fs._call_s3("get_object", Bucket=bucket, Key=name, **options)
    async with answer["Body"] as body:
        return Answer(await body.read(), answer.get("ETag"), answer.get("ContentRange"))


async def _by_http(fs: Any, path: str, part: str | None, tag: str | None) -> Answer:
    options = dict(fs.kwargs)
    headers = {**options.pop("headers", {}), "Range": part, "Accept-Encoding": "identity"}
    if tag is not None:
        headers["If-Match"] = tag
    session = await fs.set_session()
    async with session.get(fs.encode_url(path), headers=headers, **options) as answer:
        fs._raise_not_found_for_status(answer, path)
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
