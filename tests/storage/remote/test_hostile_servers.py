"""HTTP servers that send bodies without an end, or send requests to other hosts."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from dask import config

import zarrdask
from zarrdask.errors import StoreError
from zarrdask.storage.resolve import resolve

DOCUMENT = {
    "zarr_format": 2,
    "shape": [4],
    "chunks": [4],
    "dtype": "<i4",
    "compressor": None,
    "filters": None,
    "fill_value": 0,
    "order": "C",
}
SECRETS = ("X-Api-Key", "X-Token", "Authorization", "Cookie")
HEADERS = {**dict.fromkeys(SECRETS, "secret"), "User-Agent": "me"}
#: As many bytes as a server sends before it stops by itself.
MANY_BYTES = 2**27


class Handler(BaseHTTPRequestHandler):
    """Answers requests by the first part of the path; the server remembers the headers."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.server.asked.append(dict(self.headers))
        kind, _, name = self.path.lstrip("/").partition("/")
        if name == ".zarray":
            self.send(json.dumps(DOCUMENT).encode())
        elif name != "0":
            self.send(b"", 404)
        elif kind == "moved":
            self.send(b"", 307, {"Location": self.server.elsewhere + "/plain/0"})
        elif kind == "long":
            self.send(b"", length=MANY_BYTES, endless=True)
        elif kind == "endless":
            self.send(b"", chunked=True, endless=True)
        else:
            self.send(np.arange(4, dtype="<i4").tobytes())

    def do_HEAD(self):
        self.send(b"", 404)

    def send(self, body, status=200, headers=None, *, length=None, chunked=False, endless=False):
        self.send_response(status)
        for name, text in (headers or {}).items():
            self.send_header(name, text)
        if chunked:
            self.send_header("Transfer-Encoding", "chunked")
        else:
            self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)
        step = bytes(2**20)
        while endless and self.server.sent < MANY_BYTES:
            try:
                self.wfile.write(b"100000\r\n" + step + b"\r\n" if chunked else step)
            except OSError:
                self.close_connection = True
                return
            self.server.sent += len(step)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def serve():
    servers = []

    def start(elsewhere=""):
        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.asked, server.sent, server.elsewhere = [], 0, elsewhere
        server.url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("remote", ["auto", "fsspec"])
def test_headers_of_the_user_are_not_sent_to_another_host(serve, remote):
    other = serve()
    own = serve(other.url.replace("127.0.0.1", "localhost"))
    options = {"headers": HEADERS}
    with config.set({"zarrdask.remote": remote, "zarrdask.retries": 0}):
        z = zarrdask.open_array(f"{own.url}/moved", storage_options=options)
        assert z[...].tolist() == [0, 1, 2, 3]
        entry = resolve(f"{own.url}/moved", options).stat("0")
    assert entry is None or entry.size in (None, 16)
    assert all(asked["X-Api-Key"] == "secret" for asked in own.asked)
    assert other.asked
    assert not [name for asked in other.asked for name in SECRETS if name in asked]


def test_headers_stay_on_the_way_to_the_same_host(serve):
    own = serve()
    own.elsewhere = own.url
    z = zarrdask.open_array(f"{own.url}/moved", storage_options={"headers": HEADERS})
    assert z[...].tolist() == [0, 1, 2, 3]
    assert all(asked["X-Api-Key"] == "secret" for asked in own.asked)


def test_obstore_gets_only_headers_that_it_keeps(serve):
    with config.set({"zarrdask.remote": "obstore"}):
        with pytest.raises(StoreError, match="headers"):
            resolve(serve().url, {"headers": {"X-Api-Key": "secret"}})
        resolve(serve().url, {"headers": {"Authorization": "Bearer secret", "user-agent": "me"}})


@pytest.mark.parametrize("remote", ["auto", "fsspec"])
@pytest.mark.parametrize("kind", ["long", "endless"])
def test_a_body_that_is_longer_than_a_chunk_can_be_is_cut_off(serve, remote, kind):
    server = serve()
    with config.set({"zarrdask.remote": remote, "zarrdask.retries": 0}):
        z = zarrdask.open_array(f"{server.url}/{kind}")
        with pytest.raises(StoreError, match=r"0: .*the server sent more than \d+ bytes"):
            z[...]
    assert server.sent < MANY_BYTES


@pytest.mark.slow
def test_tasks_have_the_same_limit(serve):
    server = serve()
    x = zarrdask.from_zarr(f"{server.url}/endless")
    with config.set({"zarrdask.retries": 0}), pytest.raises(StoreError, match="sent more than"):
        x.sum().compute()
    assert server.sent < MANY_BYTES
