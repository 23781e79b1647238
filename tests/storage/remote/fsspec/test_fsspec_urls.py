"""zarrdask on URLs: everything from opening to deleting, through fsspec and obstore."""

import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any, ClassVar, NamedTuple
from urllib.parse import quote, unquote
from uuid import uuid4

import dask
import dask.array as da
import fsspec
import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from zarrdask.storage.resolve import resolve

VALUES = np.arange(13 * 20, dtype="f4").reshape(13, 20)


LAYOUTS: dict[str, dict[str, Any]] = {
    "v3": {"chunks": (5, 8)},
    "v3-dots": {"chunks": (5, 8), "separator": "."},
    "v3-shards": {"chunks": (2, 4), "shards": (6, 8)},
    "v2": {"chunks": (5, 8), "zarr_format": 2},
    "v2-nested": {"chunks": (5, 8), "zarr_format": 2, "separator": "/"},
}


layouts = pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)


def write(
    url: Any, component: str | None = None, values: np.ndarray = VALUES, **options: Any
) -> Any:
    z = zarrdask.create_array(url, component, shape=values.shape, dtype=values.dtype, **options)
    z[...] = values
    return z


def both_ways(url: Any, component: str | None = None) -> Iterator[np.ndarray]:
    """Read eagerly, with several threads, and through Dask, with several too."""
    yield zarrdask.open_array(url, component)[...]
    yield zarrdask.from_zarr(url, component, chunks="stored").compute(scheduler="threads")


def check(url: Any, component: str | None = None, values: np.ndarray = VALUES) -> None:
    for found in both_ways(url, component):
        np.testing.assert_array_equal(found, values)
        assert found.dtype == values.dtype


@pytest.fixture
def memory() -> Iterator[str]:
    url = f"memory://{uuid4().hex}"
    yield url
    fs = fsspec.filesystem("memory")
    if fs.exists(url):
        fs.rm(url, recursive=True)


class TestMemory:
    @layouts
    def test_eager_writes(self, memory, layout):
        write(memory, "a/b", **layout)
        check(memory, "a/b")
        check(f"{memory}/a/b")

    @layouts
    def test_regions(self, memory, layout):
        write(memory, **layout)
        block = da.from_array(np.full((4, 9), -1, "f4"), chunks=-1)
        zarrdask.to_zarr(block, memory, region=np.s_[3:7, 5:14])
        expected = VALUES.copy()
        expected[3:7, 5:14] = -1
        check(memory, values=expected)

    @pytest.mark.parametrize("name", ["a*", "a?", "[ab]", "a#b", "a%20b", "ä ö"])
    def test_names_are_no_patterns(self, memory, name):
        root = zarrdask.create_group(memory)
        for other in ("a", "ab", name):
            write(root.store, other)
        check(memory, name)
        assert sorted(root) == sorted(["a", "ab", name])
        del root[name]
        assert sorted(root) == ["a", "ab"]
        check(memory, "ab")

    def test_an_fsspec_mapping(self, memory):
        mapping = fsspec.get_mapper(memory)
        write(mapping, "x", chunks=(5, 8))
        check(mapping, "x")
        check(memory, "x")
        assert "x/zarr.json" in mapping

    def test_names_of_tasks_tell_arrays_apart(self, memory):
        for name in "ab":
            write(memory, name)
        names = [zarrdask.from_zarr(memory, name).name for name in "aab"]
        assert names[0] == names[1] != names[2]


@pytest.mark.parametrize("name", ["a?sig=secret", "a.zip?X-Amz-Signature=secret"])
def test_a_signed_url_is_shown_without_its_signature(tmp_path, memory, name):
    write(str(tmp_path / "x"))
    is_zip = ".zip" in name
    url = f"zip://::{memory}/{name}" if is_zip else f"{memory}/{name}"
    if is_zip:
        with fsspec.open(f"{memory}/{name}", "wb") as file:
            file.write(zipped(tmp_path / "x", tmp_path / "a.zip").read_bytes())
    else:
        write(url)
    z, x = zarrdask.open_array(url), zarrdask.from_zarr(url)
    np.testing.assert_array_equal(z[...], VALUES)
    with pytest.raises(zarrdask.errors.NodeNotFoundError) as error:
        zarrdask.open_array(url, "missing")
    shown = repr(z), z._repr_html_(), str(z.info), z.store.url, str(x.dask), str(error.value)
    assert not [text for text in shown if "secret" in text]
    assert "=***" in repr(z)
    # Two URLs that differ in what is not shown are two stores.
    assert z.store.identity.token != resolve(url.replace("secret", "other")).identity.token


class TestFile:
    @layouts
    def test_escapes_are_decoded(self, tmp_path, layout):
        url = f"file://{tmp_path}/my%20data/%C3%A4"
        write(url, "x", **layout)
        assert (tmp_path / "my data" / "ä" / "x").is_dir()
        check(url, "x")
        check(f"{url}/x")
        check(tmp_path / "my data" / "ä", "x")

    def test_a_path_is_taken_as_it_is(self, tmp_path):
        write(str(tmp_path / "my%20data"))
        assert (tmp_path / "my%20data" / "zarr.json").is_file()
        check(f"file://{tmp_path}/my%2520data")

    def test_another_protocol_for_local_files(self, tmp_path):
        write(f"local://{tmp_path}/x", chunks=(5, 8))
        check(tmp_path / "x")
        check(f"local://{tmp_path}/x")


def zipped(directory: Path, target: Path) -> Path:
    with zipfile.ZipFile(target, "w") as archive:
        for file in sorted(directory.rglob("*")):
            archive.write(file, file.relative_to(directory))
    return target


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A zip file with a group and an array in each layout, the names being those of `LAYOUTS`."""
    tmp_path = tmp_path_factory.mktemp("zip")
    root = zarrdask.create_group(tmp_path / "store", attributes={"n": 1})
    with dask.config.set({"zarrdask.mixed-formats": True}):
        for name, layout in LAYOUTS.items():
            write(root.store, f"sub/{name}", **layout)
    return zipped(tmp_path / "store", tmp_path / "my store.zip")


class TestZip:
    def test_reading(self, archive):
        for name, form in product(LAYOUTS, ["{}", "zip://::{}", "zip://::file://{}"]):
            check(form.format(archive), f"sub/{name}")

    def test_a_path_within_the_url(self, archive):
        check(f"zip://sub/v3-shards::{archive}")
        check(f"zip://sub::{archive}", "v3-shards")

    def test_members(self, archive):
        group = zarrdask.open_group(archive)
        assert dict(group.attrs) == {"n": 1}
        assert list(group) == ["sub"]
        assert sorted(group["sub"]) == sorted(LAYOUTS)
        assert zarrdask.open_array(archive, "sub/v3").nchunks_stored() == 9

    def test_writing_fails_elsewhere_than_on_a_local_disk(self, archive):
        name = f"/{uuid4().hex}.zip"
        fsspec.filesystem("memory").pipe_file(name, archive.read_bytes())
        url = f"memory:/{name}"
        check(url, "sub/v3")
        with pytest.raises(zarrdask.errors.ReadOnlyError, match="local disk"):
            zarrdask.create_array(url, "new", shape=(1,), dtype="i4")
        with pytest.raises(zarrdask.errors.ReadOnlyError, match="local disk"):
            zarrdask.open_array(url, "sub/v3", mode="r+")[...] = 0
        with pytest.raises(zarrdask.errors.ReadOnlyError, match="local disk"):
            del zarrdask.open_group(url, mode="r+")["sub"]
        assert fsspec.filesystem("memory").cat_file(name) == archive.read_bytes()

    def test_no_such_file(self, tmp_path):
        with pytest.raises(zarrdask.ZarrdaskError, match=r"no\.zip"):
            zarrdask.open(f"zip://::{tmp_path}/no.zip")
        with pytest.raises(zarrdask.errors.NodeNotFoundError, match=r"no\.zip"):
            zarrdask.open(tmp_path / "no.zip")

    @pytest.mark.parametrize("form", ["{}", "zip://::{}"])
    def test_not_a_zip_file(self, tmp_path, form):
        (tmp_path / "x.zip").write_bytes(b"something else")
        with pytest.raises(zarrdask.errors.StoreError, match=r"x\.zip"):
            zarrdask.open(form.format(tmp_path / "x.zip"))

    def test_a_directory_may_be_called_so(self, tmp_path):
        (tmp_path / "x.zip").mkdir()
        write(tmp_path / "x.zip")
        assert (tmp_path / "x.zip" / "zarr.json").is_file()
        check(tmp_path / "x.zip")


class Request(NamedTuple):
    method: str
    path: str
    range: str | None
    sent: int


@dataclass
class Server:
    """A web server for a directory, which remembers what it was asked for."""

    root: Path
    url: str = ""
    ranges: bool = True
    index: bool = False
    delay: float = 0
    fail: Callable[[str], HTTPStatus | None] = lambda path: None
    requests: list[Request] = field(default_factory=list)
    busy: int = 0
    peak: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def taken(self) -> list[Request]:
        """Return the requests since the last call, and forget them."""
        with self.lock:
            found, self.requests = self.requests, []
        return found

    def answer(self, path: str, wanted: str | None) -> tuple[int, bytes, str]:
        """Return the status of an answer, its body, and its type or the range that it is."""
        status = self.fail(path)
        if status is not None:
            return status, b"no", "text/plain"
        file = self.root / path
        if file.is_dir() and self.index:
            names = (f"{p.name}/" if p.is_dir() else p.name for p in sorted(file.iterdir()))
            links = "".join(f'<li><a href="{quote(name)}">{name}</a></li>' for name in names)
            return 200, f"<html><ul>{links}</ul></html>".encode(), "text/html"
        if not file.is_file():
            return 404, b"nothing here", "text/plain"
        data = file.read_bytes()
        if wanted is None or not self.ranges:
            return 200, data, "application/octet-stream"
        first, _, last = wanted.removeprefix("bytes=").partition("-")
        start = int(first) if first else max(len(data) - int(last), 0)
        stop = min(int(last) + 1, len(data)) if first and last else len(data)
        if start >= len(data):
            return 416, b"", "application/octet-stream"
        return 206, data[start:stop], f"bytes {start}-{stop - 1}/{len(data)}"


def handler(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 2**16  # head and body in one packet

        def do_GET(self) -> None:
            path = unquote(self.path).strip("/")
            with server.lock:
                server.busy += 1
                server.peak = max(server.peak, server.busy)
            time.sleep(server.delay)
            wanted = self.headers.get("Range")
            status, body, kind = server.answer(path, wanted)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Content-Type" if status != 206 else "Content-Range", kind)
            self.end_headers()
            sent = 0 if self.command == "HEAD" else len(body)
            with server.lock:
                server.busy -= 1
                server.requests.append(Request(self.command, path, wanted, sent))
            if sent:
                with suppress(ConnectionError):  # who asked may have given up
                    self.wfile.write(body)
                    self.wfile.flush()

        do_HEAD = do_GET

        def log_message(self, *args: Any) -> None:
            """Keep quiet."""

    return Handler


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    found = Server(tmp_path)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler(found)) as httpd:
        httpd.daemon_threads = True
        httpd.block_on_close = False
        found.url = f"http://127.0.0.1:{httpd.server_port}"
        thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield found
        httpd.shutdown()
        thread.join()


@pytest.fixture(params=["auto", "fsspec"])
def by(request: pytest.FixtureRequest, setting: Any) -> None:
    """What opens URLs: obstore, which is installed, or fsspec."""
    setting({"zarrdask.remote": request.param})


@pytest.mark.usefixtures("by")
class TestHttp:
    @pytest.fixture(autouse=True)
    def impatient(self, setting):
        """What fails is tried again as often as ever, with short pauses."""
        setting({"zarrdask.retry-delay": 0.01})

    @layouts
    def test_reading(self, server, layout):
        write(server.root, "my group/x", **layout)
        check(server.url, "my group/x")
        check(f"{server.url}/my%20group", "x")

    @pytest.mark.parametrize("ranges", [False, True])
    def test_ranges_may_be_ignored_by_the_server(self, server, ranges):
        server.ranges, value = ranges, bytes(range(100))
        (server.root / "value").write_bytes(value)
        store = resolve(server.url)
        for start, length in [(10, None), (60, 200), (10, 5), (-9, 4), (0, 500)]:
            expected = value[start:][:length]
            assert bytes(store.get_range("value", start, length)) == expected

    def test_absent_chunks_hold_the_fill_value(self, server):
        z = zarrdask.create_array(
            server.root, shape=(6,), dtype="f8", chunks=(2,), fill_value=np.nan
        )
        z[2:4] = 1
        check(server.url, values=np.array([np.nan, np.nan, 1, 1, np.nan, np.nan]))

    def test_only_the_chunks_that_a_slice_meets_are_asked_for(self, server):
        write(server.root, chunks=(5, 8))
        z, x = zarrdask.open_array(server.url), zarrdask.from_zarr(server.url)
        server.taken()
        np.testing.assert_array_equal(z[6:8, 3:9], VALUES[6:8, 3:9])
        assert sorted(r.path for r in server.taken()) == ["c/1/0", "c/1/1"]
        np.testing.assert_array_equal(x[6:8, 3:9].compute(), VALUES[6:8, 3:9])
        assert sorted(r.path for r in server.taken()) == ["c/1/0", "c/1/1"]
        dask.compute(x[0, 0], x[12, 19], scheduler="sync")
        assert sorted(r.path for r in server.taken()) == ["c/0/0", "c/2/2"]

    def test_opening_reads_metadata_only(self, server):
        write(server.root, "g/x", chunks=(5, 8))
        zarrdask.from_zarr(server.url, "g/x")
        asked = server.taken()
        assert {r.path.rpartition("/")[2][0] for r in asked} == {"z", "."}
        assert len(asked) <= 4  # one for each document that may be there

    def test_a_slow_request_does_not_hold_up_those_after_it(self, server):
        write(server.root, chunks=(1, 20))
        z, is_next = zarrdask.open_array(server.url), threading.Event()

        def answer_in_another_order(path):
            if path == "c/4/0":  # a batch of four would end before it
                is_next.set()
            return None if path != "c/3/0" or is_next.wait(20) else HTTPStatus.NOT_FOUND

        server.fail = answer_in_another_order
        with dask.config.set({"zarrdask.threads": 1, "zarrdask.requests": 4}):
            np.testing.assert_array_equal(z[...], VALUES)
        assert server.peak <= 4

    def test_only_requests_that_failed_are_repeated(self, server):
        write(server.root, "x", chunks=(1, 20))
        write(server.root, "y", chunks=(1, 4), shards=(1, 20))
        x, y = zarrdask.open_array(server.url, "x"), zarrdask.open_array(server.url, "y")
        refused = set()

        def refuse_once(path):
            if path in refused or not path.endswith(("3/0", "7/0", "8/0")):
                return None
            refused.add(path)
            return HTTPStatus.SERVICE_UNAVAILABLE

        # The rate is limited to that of the requests that were accepted before.
        np.testing.assert_array_equal(x[...], VALUES)
        server.fail = refuse_once
        server.taken()
        np.testing.assert_array_equal(x[...], VALUES)
        assert len(server.taken()) == 13 + 3
        np.testing.assert_array_equal(y[:, 0], VALUES[:, 0])
        assert len(server.taken()) == 2 * 13 + 3

    def test_a_server_that_always_fails_is_asked_so_often_and_so_long(self, server, setting):
        write(server.root, chunks=(1, 20))
        z = zarrdask.open_array(server.url)
        server.fail = lambda path: HTTPStatus.SERVICE_UNAVAILABLE
        setting({"zarrdask.threads": 1, "zarrdask.requests": 2, "zarrdask.retries": 3})
        server.taken()
        with pytest.raises(zarrdask.errors.StoreError, match="503"):
            z[...]
        # Most are not asked for: when one fails for good, another one may be asked for already.
        assert len({request.path for request in server.taken()}) <= 4
        setting({"zarrdask.retry-time": 0})
        with pytest.raises(zarrdask.errors.StoreError, match="503"):
            z[0]
        assert len(server.taken()) == 1

    def test_a_server_error_is_no_fill_value(self, server):
        write(server.root, chunks=(5, 8))
        z, x = zarrdask.open_array(server.url), zarrdask.from_zarr(server.url)
        for status in (HTTPStatus.INTERNAL_SERVER_ERROR, HTTPStatus.FORBIDDEN):
            server.fail = lambda path, status=status: status if path == "c/1/0" else None
            for read in (lambda: z[...], lambda: z[7, 0], x.compute):
                with pytest.raises(zarrdask.errors.StoreError, match="c/1/0"):
                    read()
            assert z[0, 0] == 0

    def test_a_server_error_is_no_absent_node(self, server):
        write(server.root)
        server.fail = lambda path: HTTPStatus.SERVICE_UNAVAILABLE
        with pytest.raises(zarrdask.errors.StoreError):
            zarrdask.open(server.url)

    def test_no_server(self):
        with pytest.raises(zarrdask.errors.StoreError):
            zarrdask.open("http://127.0.0.1:1/x.zarr")

    def test_nothing_there(self, server):
        with pytest.raises(zarrdask.errors.NodeNotFoundError, match="nowhere") as caught:
            zarrdask.open_array(server.url, "nowhere")
        assert f"{server.url}/nowhere" in str(caught.value)
        assert str(caught.value).count("http://") == 1

    def test_a_shard_cut_off(self, server):
        write(server.root, chunks=(2, 4), shards=(6, 8))
        shard = server.root / "c" / "0" / "0"
        shard.write_bytes(shard.read_bytes()[:10])
        for read in (lambda z: z[...], lambda z: z[0, 0]):
            with pytest.raises(zarrdask.ZarrdaskError, match="c/0/0"):
                read(zarrdask.open_array(server.url))

    def test_writing_fails(self, server):
        write(server.root)
        with pytest.raises(zarrdask.errors.StoreError):
            zarrdask.open_array(server.url, mode="r+")[...] = 0
        check(server.root)


@pytest.mark.usefixtures("by")
class TestHttpGroups:
    @pytest.fixture(autouse=True)
    def group(self, server):
        root = zarrdask.create_group(server.root)
        for name in ("a", "my group/b"):
            write(root.store, name, chunks=(5, 8))

    @pytest.mark.parametrize(
        "act",
        [list, len, zarrdask.Group.tree, lambda group: group["a"].nchunks_stored()],
        ids=["list", "len", "tree", "nchunks_stored"],
    )
    def test_without_an_index_there_is_no_listing(self, server, act):
        # Not an empty group: that would be a wrong answer.
        group = zarrdask.open_group(server.url)
        with pytest.raises(zarrdask.errors.UnsupportedError, match="list"):
            act(group)

    def test_an_index_of_the_server_is_a_listing(self, server):
        server.index = True
        group = zarrdask.open_group(server.url)
        assert sorted(group) == ["a", "my group"]
        assert [path for path, _ in group.walk()] == ["a", "my group", "my group/b"]


@pytest.mark.usefixtures("by")
class TestHttpShards:
    """Shards of 16 chunks of 64 KiB, so that what is read shows in bytes."""

    SIZE = 2**16
    INDEX = 16 * 16 + 4
    VALUES = np.arange(1024 * 512, dtype="f4").reshape(1024, 512)

    @pytest.fixture(autouse=True)
    def array(self, server):
        codecs: dict[str, Any] = {"chunks": (128, 128), "shards": (512, 512), "compressors": []}
        write(server.root, values=self.VALUES, **codecs)

    def reads(self, server: Server, act: Callable[[], Any], expected: np.ndarray) -> list[Request]:
        server.taken()
        np.testing.assert_array_equal(act(), expected)
        return server.taken()

    @pytest.mark.parametrize(
        ("part", "chunks"),
        [
            (np.s_[3, 5], 1),
            (np.s_[130:140, 130:140], 1),
            (np.s_[200, 10:500], 4),
            (np.s_[:, 0], 8),
            (np.s_[600:610], 4),
            (np.s_[::512, ::511], 4),
        ],
    )
    @pytest.mark.parametrize("way", ["eager", "dask"])
    def test_slices_read_the_index_and_the_chunks_they_meet(self, server, part, chunks, way):
        if way == "eager":
            z = zarrdask.open_array(server.url)
            asked = self.reads(server, lambda: z[part], self.VALUES[part])
        else:
            x = zarrdask.from_zarr(server.url)[part]
            asked = self.reads(server, lambda: x.compute(scheduler="sync"), self.VALUES[part])
        shards = {r.path for r in asked}
        assert all(r.range for r in asked)
        assert sum(r.sent for r in asked) == len(shards) * self.INDEX + chunks * self.SIZE

    def test_a_whole_shard_is_not_read_piece_by_piece(self, server):
        z = zarrdask.open_array(server.url)
        asked = self.reads(server, lambda: z[:512], self.VALUES[:512])
        assert len(asked) <= 2
        assert sum(r.sent for r in asked) <= 2 * self.INDEX + 16 * self.SIZE

    def test_a_server_that_sends_everything_is_understood(self, server):
        # RFC 9110 lets a server ignore a range; what comes then must not be taken for the range.
        server.ranges = False
        z, x = zarrdask.open_array(server.url), zarrdask.from_zarr(server.url)
        part = np.s_[700:703, 200:300]
        np.testing.assert_array_equal(z[part], self.VALUES[part])
        np.testing.assert_array_equal(x[part].compute(scheduler="sync"), self.VALUES[part])


REGISTRY = import_module("fsspec.registry")._registry


class NoSuchBucketError(Exception):
    """As botocore tells that there is no such bucket."""

    response: ClassVar = {"Error": {"Code": "NoSuchBucket"}}


class Early(fsspec.AbstractFileSystem):
    """A file system of buckets, of which there are none."""

    protocol = "bucket"

    def __init__(self, anon=False):
        super().__init__()

    def cat_file(self, path, start=None, end=None):
        raise FileNotFoundError(path) from NoSuchBucketError()


class Late(Early):
    """One that finds out about its options when it sends the first request."""

    cachable = False

    def __init__(self, anon=False, **kwargs):
        super().__init__(anon)
        self.kwargs = kwargs

    def cat_file(self, path, start=None, end=None):
        dict_of_nothing(**self.kwargs)


def dict_of_nothing():
    """Take no options."""


class TestUnknown:
    @pytest.mark.parametrize(
        "verb", [zarrdask.open, zarrdask.from_zarr, zarrdask.create_group], ids=lambda v: v.__name__
    )
    def test_protocol(self, verb):
        with pytest.raises(zarrdask.errors.StoreError, match="nosuch://x") as caught:
            verb("nosuch://x")
        assert isinstance(caught.value, OSError)

    def test_options_for_a_local_path(self, tmp_path):
        with pytest.raises(zarrdask.errors.StoreError, match="storage_options"):
            zarrdask.open(tmp_path, storage_options={"key": "x"})

    @pytest.mark.parametrize("kind", [Early, Late])
    def test_option(self, kind, monkeypatch):
        monkeypatch.setitem(REGISTRY, "bucket", kind)
        with pytest.raises(zarrdask.errors.StoreError, match=r"storage_options.* 'anon'") as caught:
            zarrdask.open("bucket://b/x", storage_options={"anonn": True})
        assert caught.value.found == "anonn"

    def test_bucket(self, monkeypatch):
        monkeypatch.setitem(REGISTRY, "bucket", Early)
        place, options = "bucket://b/x", {"storage_options": {"anon": True}}
        for verb in (zarrdask.open, zarrdask.open_array, zarrdask.from_zarr):
            with pytest.raises(zarrdask.errors.StoreError, match="no bucket 'b'"):
                verb(place, **options)
        with pytest.raises(zarrdask.errors.StoreError, match="no bucket 'b'"):
            zarrdask.create_array(place, shape=2, dtype="u1", **options)

    @for_each("url", [None, 7, b"memory://x", ["memory://x"]])
    def test_place(self, url):
        with pytest.raises(zarrdask.errors.StoreError, match=type(url).__name__):
            zarrdask.open(url)


class TestChains:
    def test_a_cache_before_http(self, server, tmp_path):
        write(server.root, "x", chunks=(5, 8))
        url = f"simplecache::{server.url}"
        options = {"simplecache": {"cache_storage": str(tmp_path / "cache")}}
        for _ in range(2):
            z = zarrdask.open_array(url, "x", storage_options=options)
            np.testing.assert_array_equal(z[...], VALUES)
        chunks = [r.path for r in server.taken() if r.path.startswith("x/c/") and r.sent]
        assert len(chunks) == len(set(chunks))

    def test_a_zip_file_in_memory(self, memory, archive):
        fsspec.filesystem("memory").pipe_file(f"{memory}/x.zip", archive.read_bytes())
        check(f"zip://sub::{memory}/x.zip", "v3")
