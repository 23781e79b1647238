"""S3 for tests: moto's server on loopback, which remembers the requests, and its buckets."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from uuid import uuid4

import boto3
import numpy as np
from moto.server import ThreadedMotoServer

VALUES = np.arange(13 * 20, dtype="f4").reshape(13, 20)
KEYS = {"key": "testing", "secret": "testing"}
LAYOUTS: dict[str, dict[str, Any]] = {
    "v3": {"chunks": (5, 8)},
    "v3-shards": {"chunks": (2, 4), "shards": (6, 8)},
    "v2": {"chunks": (5, 8), "zarr_format": 2},
}


class Request(NamedTuple):
    method: str
    path: str
    range: str | None
    sent: int
    authorization: str = ""
    payer: str | None = None


class Log:
    """Remembers what a WSGI application was asked for.

    Attributes
    ----------
    status : str or None
        The status of all answers, instead of those of the application.
    """

    def __init__(self, app: Any) -> None:
        self.app = app
        self.requests: list[Request] = []
        self.status: str | None = None

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        if self.status is None:
            body = b"".join(self.app(environ, start_response))
        else:
            body = b"refused"
            start_response(self.status, [("Content-Length", str(len(body)))])
        self.requests.append(
            Request(
                environ["REQUEST_METHOD"],
                environ["PATH_INFO"],
                environ.get("HTTP_RANGE"),
                len(body),
                environ.get("HTTP_AUTHORIZATION", ""),
                environ.get("HTTP_X_AMZ_REQUEST_PAYER"),
            )
        )
        return [body]

    def taken(self) -> list[Request]:
        found, self.requests = self.requests, []
        return found


class Bucket(NamedTuple):
    url: str
    options: dict[str, Any]
    log: Log
    client: Any

    def names(self) -> list[str]:
        name = self.url.removeprefix("s3://")
        return [
            item["Key"] for item in self.client.list_objects_v2(Bucket=name).get("Contents", ())
        ]


class Service(NamedTuple):
    endpoint: str
    log: Log

    def new_bucket(self) -> Bucket:
        client = boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id=KEYS["key"],
            aws_secret_access_key=KEYS["secret"],
            region_name="us-east-1",
        )
        name = f"bucket-{uuid4().hex}"
        client.create_bucket(Bucket=name)
        options = {**KEYS, "endpoint_url": self.endpoint}
        return Bucket(f"s3://{name}", options, self.log, client)


@contextmanager
def serving() -> Iterator[Service]:
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    log = Log(server._server.app)
    server._server.app = log
    host, port = server.get_host_and_port()
    try:
        yield Service(f"http://{host}:{port}", log)
    finally:
        server.stop()
