"""A small object store that answers late, on loopback by default: for measurements and tests.

``python -m benchmarks.object_server [SECONDS [HOST]]`` prints its URL, and serves until its
standard input ends; the seconds are by how much each answer is late. It speaks as much of S3 as
clients need for values, parts of them, multipart uploads, listings, deletions and conditions; by
plain HTTP the same objects are read. Signatures are not checked. ``GET /-/stats`` returns how
many requests came, and how many were in flight together; with ``after=30&within=1``, when so many
requests came, but at the latest after a second; ``POST /-/set?delay=0.05`` changes the
delay, and begins to count anew. With ``rate=200`` it accepts 200 requests per second (a token
bucket that holds `burst` tokens, by default a tenth of a second's), and refuses others with 503.
With ``missing=403`` it is a bucket that one may not list: it answers so to listings, and to reads
of objects that do not exist.
"""

import asyncio
import json
import os
import subprocess
import sys
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import formatdate
from hashlib import md5
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit
from xml.etree import ElementTree
from xml.sax.saxutils import escape

HERE = Path(__file__).resolve().parents[1]
PAGE = 1000
DATE = formatdate(usegmt=True)
#: What the headers with metadata of users begin with.
_METADATA = "x-amz-meta-"


@contextmanager
def serving(delay: float = 0, host: str = "127.0.0.1") -> Iterator[str]:
    """Run the server in a process of its own, and yield its URL."""
    command = [sys.executable, "-m", "benchmarks.object_server", str(delay), host]
    with subprocess.Popen(
        command, cwd=HERE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        yield server.stdout.readline().strip()  # type: ignore[union-attr]
        server.communicate()


class Answer(NamedTuple):
    status: int
    body: bytes = b""
    headers: Mapping[str, str] = {}


class Stored(NamedTuple):
    value: bytes
    etag: str
    #: When it was stored, in the form of listings; and the metadata of users, by headers.
    time: str = "2026-01-01T00:00:00.000Z"
    metadata: Mapping[str, str] = {}


@dataclass
class Bucket:
    """Objects by path: "bucket/key"."""

    objects: dict[str, Stored] = field(default_factory=dict)
    delay: float = 0.0
    counts: Counter[str] = field(default_factory=Counter)
    now: int = 0
    most: int = 0
    busy: float = 0.0
    #: The parts of each multipart upload, by their numbers.
    uploads: dict[str, dict[int, bytes]] = field(default_factory=dict)
    #: Answers that are given instead of the right ones, such as 503, one for each request.
    faults: list[int | None] = field(default_factory=list)
    #: The status of answers to reads of objects that do not exist; 403 refuses listings, too.
    missing: int = 404
    #: The requests per second that are accepted, 0 for all; and the tokens of the bucket.
    rate: float = 0.0
    burst: float = 0.0
    tokens: float = 0.0
    filled: float = 0.0

    def _is_refused(self) -> bool:
        """Take a token, and return whether there was none."""
        if not self.rate:
            return False
        now = time.monotonic()
        self.tokens = min(self.burst, self.tokens + (now - self.filled) * self.rate)
        self.filled = now
        if self.tokens < 1:
            self.counts["refused"] += 1
            return True
        self.tokens -= 1
        return False

    async def answer(
        self, method: str, target: str, headers: dict[str, str], body: bytes
    ) -> Answer:
        """Return the answer to a request, when its time has come."""
        parts = urlsplit(target)
        query = {
            name: values[0]
            for name, values in parse_qs(parts.query, keep_blank_values=True).items()
        }
        path = unquote(parts.path).strip("/")
        if path.startswith("-/"):
            await self._counted(int(query.get("after", 0)), float(query.get("within", 0)))
            return self._control(path, query)
        self.counts[method] += 1
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            is_refused = self._is_refused()
            await asyncio.sleep(self.delay)
            if is_refused:
                return error(503, "SlowDown")
            fault = self.faults.pop(0) if self.faults else None
            if fault is not None:
                return error(fault, "SlowDown")
            return getattr(self, f"_{method.lower()}")(path, query, headers, body)
        finally:
            self.now -= 1

    async def _counted(self, after: int, within: float) -> None:
        """Wait for this number of requests, but no longer than so many seconds."""
        end = time.monotonic() + within
        while self.counts.total() < after and time.monotonic() < end:
            await asyncio.sleep(0.001)

    def _control(self, path: str, query: dict[str, str]) -> Answer:
        if path == "-/set":
            self.delay = float(query.get("delay", self.delay))
            faults = query.get("faults", "")
            self.faults = [int(each) or None for each in faults.split(",") if each]
            self.missing = int(query.get("missing", 404))
            self.rate = float(query.get("rate", 0))
            self.burst = float(query.get("burst", self.rate / 10))
            self.tokens, self.filled = self.burst, time.monotonic()
            self.counts.clear()
            self.most = self.now
        stats = {"requests": self.counts, "most": self.most}
        return Answer(200, json.dumps(stats).encode())

    def _get(self, path: str, query: dict[str, str], headers: dict[str, str], _: bytes) -> Answer:
        if "list-type" in query:
            is_secret = self.missing == 403
            return error(403, "AccessDenied") if is_secret else self._list(path, query)
        if path not in self.objects:
            return error(self.missing, "NoSuchKey" if self.missing == 404 else "AccessDenied")
        value, tag, _, metadata = self.objects[path]
        if headers.get("if-match", tag).strip('"') != tag.strip('"'):
            return error(412, "PreconditionFailed")
        about = {"ETag": tag, "Last-Modified": DATE, "Accept-Ranges": "bytes", **metadata}
        if headers.get("if-none-match", "").strip('"') == tag.strip('"'):
            return Answer(304, b"", about)
        wanted = headers.get("range")
        if wanted is None:
            return Answer(200, value, about)
        first, _, last = wanted.removeprefix("bytes=").partition("-")
        start = int(first) if first else max(len(value) - int(last), 0)
        stop = min(int(last) + 1, len(value)) if first and last else len(value)
        if start >= len(value):
            return error(416, "InvalidRange")
        about["Content-Range"] = f"bytes {start}-{stop - 1}/{len(value)}"
        return Answer(206, value[start:stop], about)

    def _head(self, path: str, query: dict[str, str], headers: dict[str, str], _: bytes) -> Answer:
        if "/" not in path:
            return Answer(200, b"", {"x-amz-bucket-region": "us-east-1"})
        return self._get(path, query, headers, _)

    def _put(
        self, path: str, query: dict[str, str], headers: dict[str, str], body: bytes
    ) -> Answer:
        if "uploadId" in query:
            self.uploads[query["uploadId"]][int(query["partNumber"])] = body
            return Answer(200, b"", {"ETag": f'"{query["partNumber"]}"'})
        old = self.objects.get(path)
        if headers.get("if-none-match") == "*" and old is not None:
            return error(412, "PreconditionFailed")
        condition = headers.get("if-match")
        if condition is not None and (old is None or condition.strip('"') != old.etag.strip('"')):
            return error(404 if old is None else 412, "PreconditionFailed")
        tag = f'"{md5(body, usedforsecurity=False).hexdigest()}"'
        if "/" in path:
            metadata = {name: each for name, each in headers.items() if name.startswith(_METADATA)}
            time_now = datetime.now(UTC).isoformat(timespec="milliseconds")[:-6] + "Z"
            self.objects[path] = Stored(body, tag, time_now, metadata)
        return Answer(200, b"", {"ETag": tag})

    def _delete(self, path: str, *_: object) -> Answer:
        self.objects.pop(path, None)
        return Answer(204)

    def _post(self, path: str, query: dict[str, str], _: object, body: bytes) -> Answer:
        if "uploads" in query:
            name = f"upload-{len(self.uploads)}"
            self.uploads[name] = {}
            return xml(
                "<InitiateMultipartUploadResult>"
                f"<UploadId>{name}</UploadId></InitiateMultipartUploadResult>"
            )
        if "uploadId" in query:
            parts = self.uploads[query["uploadId"]]
            stored = self._put(path, {}, {}, b"".join(parts[number] for number in sorted(parts)))
            parts.clear()
            tag = escape(stored.headers["ETag"])
            return xml(
                f"<CompleteMultipartUploadResult><ETag>{tag}</ETag></CompleteMultipartUploadResult>"
            )
        if "delete" not in query:
            return error(501, "NotImplemented")
        keys = [
            each.text for each in ElementTree.fromstring(body).iter() if each.tag.endswith("Key")
        ]
        for key in keys:
            self.objects.pop(f"{path}/{key}", None)
        deleted = "".join(f"<Deleted><Key>{escape(key or '')}</Key></Deleted>" for key in keys)
        return xml(f"<DeleteResult>{deleted}</DeleteResult>")

    def _list(self, bucket: str, query: dict[str, str]) -> Answer:
        start, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        after = query.get("continuation-token", query.get("start-after", ""))
        names: dict[str, Stored | None] = {}
        paths = sorted(self.objects)
        for path in paths[bisect_left(paths, f"{bucket}/{max(start, after)}") :]:
            key = path.removeprefix(f"{bucket}/")
            if path == key or not key.startswith(start) or len(names) > PAGE:
                break
            below, found, _ = key[len(start) :].partition(delimiter) if delimiter else (key, "", "")
            name = start + below + found if found else key
            if name > after:
                names.setdefault(name, None if found else self.objects[path])
        page = list(names.items())[:PAGE]
        items = "".join(
            f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>"
            if stored is None
            else f"<Contents><Key>{escape(name)}</Key><Size>{len(stored.value)}</Size>"
            f"<ETag>{escape(stored.etag)}</ETag><LastModified>{stored.time}</LastModified>"
            "</Contents>"
            for name, stored in page
        )
        more = len(names) > PAGE
        token = (
            f"<NextContinuationToken>{escape(page[-1][0])}</NextContinuationToken>" if more else ""
        )
        return xml(
            f"<ListBucketResult><Name>{bucket}</Name><Prefix>{escape(start)}</Prefix>"
            f"<KeyCount>{len(page)}</KeyCount><MaxKeys>{PAGE}</MaxKeys>"
            f"<IsTruncated>{str(more).lower()}</IsTruncated>{token}{items}</ListBucketResult>"
        )


def xml(text: str) -> Answer:
    body = f'<?xml version="1.0" encoding="UTF-8"?>{text}'.encode()
    return Answer(200, body, {"Content-Type": "application/xml"})


def error(status: int, code: str) -> Answer:
    return xml(f"<Error><Code>{code}</Code><Message>{code}</Message></Error>")._replace(
        status=status
    )


async def converse(
    bucket: Bucket, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Answer the requests of one connection, one after another."""
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            first, *lines = head.decode("latin-1").split("\r\n")
            method, target, _ = first.split(" ")
            pairs = (line.partition(":") for line in lines if line)
            headers = {name.lower(): value.strip() for name, _, value in pairs}
            if headers.get("expect", "").lower() == "100-continue":
                writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            answer = await bucket.answer(method, target, headers, body)
            length = {"Content-Length": str(len(answer.body))}
            lines = [f"{name}: {value}" for name, value in {**length, **answer.headers}.items()]
            start = "\r\n".join([f"HTTP/1.1 {answer.status} _", *lines, "", ""]).encode("latin-1")
            writer.write(start if method == "HEAD" else start + answer.body)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def serve() -> None:
    delay, host = (*sys.argv[1:3], *("0", "127.0.0.1")[len(sys.argv) - 1 :])
    bucket = Bucket(delay=float(delay))
    server = await asyncio.start_server(
        lambda reader, writer: converse(bucket, reader, writer), host, 0, limit=2**20
    )
    print(f"http://{host}:{server.sockets[0].getsockname()[1]}", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    os._exit(0)  # connections that clients keep open are not worth waiting for


if __name__ == "__main__":
    asyncio.run(serve())
