"""Stores in obstore's objects: here its memory and its directories."""

import pickle
import subprocess
import sys
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import dask
import numpy as np
import obstore
import pytest
from obstore import store as objects
from obstore.exceptions import BaseError

import zarrdask
from tests.covering import for_each
from zarrdask.errors import MetadataError, ReadOnlyError, StoreError, UnsupportedError
from zarrdask.runtime.scratch import Scratch
from zarrdask.storage.local.local_store import LocalStore
from zarrdask.storage.remote.failures import is_forbidden, is_transient
from zarrdask.storage.remote.obstore import obstore_store as ours
from zarrdask.storage.remote.obstore.obstore_errors import NotConnectedError, cause, message
from zarrdask.storage.remote.obstore.obstore_store import ObstoreStore
from zarrdask.storage.remote.obstore.obstore_urls import open_url
from zarrdask.storage.remote.retry import retrying
from zarrdask.storage.resolve import resolve
from zarrdask.testing import VALUES, ReadOnlyStoreContract, StoreContract


@pytest.fixture
def store():
    return ObstoreStore(objects.MemoryStore(), "deep/er")


class TestObstoreStoreInMemory(StoreContract):
    @pytest.fixture
    def store(self):
        return ObstoreStore(objects.MemoryStore())


class TestObstoreStoreWithAPrefix(StoreContract):
    @pytest.fixture
    def store(self, store):
        return store


class TestObstoreStoreInADirectory(StoreContract):
    @pytest.fixture
    def store(self, tmp_path):
        return ObstoreStore(objects.LocalStore(tmp_path / "root", mkdir=True))


class Handler(BaseHTTPRequestHandler):
    """Serves values, whole or by range; `statuses` are answered before any value."""

    protocol_version = "HTTP/1.1"

    def do_HEAD(self):
        self.answer(body=False)

    def do_GET(self):
        self.answer(body=True)

    def do_PROPFIND(self):
        self.send(405, b"")

    def answer(self, *, body):
        self.server.asked.append((self.command, self.path, self.headers.get("Range")))
        if self.server.statuses:
            self.send(self.server.statuses.pop(), b"")
            return
        value = self.server.values.get(self.path)
        if value is None:
            self.send(404, b"")
            return
        wanted = self.headers.get("Range")
        if wanted is None:
            self.send(200, value, body=body)
            return
        first, last = wanted.removeprefix("bytes=").split("-")
        start = int(first) if first else max(len(value) - int(last), 0)
        end = min(int(last) + 1, len(value)) if first and last else len(value)
        if start >= len(value):
            self.send(416, b"")
            return
        self.send(206, value[start:end], {"Content-Range": f"bytes {start}-{end - 1}/{len(value)}"})

    def send(self, status, value, headers=None, *, body=True):
        self.send_response(status)
        for name, text in {"Content-Length": len(value), **(headers or {})}.items():
            self.send_header(name, str(text))
        self.send_header("Last-Modified", "Sun, 01 Nov 2026 00:00:00 GMT")
        if self.server.tag:
            self.send_header("ETag", self.server.tag)
        self.end_headers()
        if body:
            self.wfile.write(value)

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.values = {f"/data/{key}": value for key, value in VALUES.items()}
    server.asked, server.statuses, server.tag = [], [], None
    server.url = f"http://127.0.0.1:{server.server_port}/data"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


#: Settings of obstore's objects for a server without encryption.
PLAIN = {"client_options": {"allow_http": True}}


def at(server, **settings):
    with dask.config.set({"zarrdask.remote": "obstore"} | settings):
        return resolve(server.url)


class TestOverHTTP(ReadOnlyStoreContract):
    @pytest.fixture(params=["obstore", "auto"])
    def store(self, server, request):
        return at(server, **{"zarrdask.remote": request.param})

    # A server without WebDAV can't be listed, which the store learns when it asks.
    def test_it_lists_or_says_that_it_cannot(self, store):
        for action in (store.list_dir, store.list_prefix):
            with pytest.raises(UnsupportedError, match="open nodes by path"):
                list(action(""))


class TestRequests:
    def test_neighbouring_ranges_are_one_request_and_others_go_by_themselves(self, server):
        store = at(server)
        with dask.config.set({"zarrdask.coalesce-gap": 10}):
            ranges = [(0, 4), (8, 4), (500, 4)]
            parts = [bytes(part) for part in store.get_ranges("e/f/g", ranges, Scratch())]
        value = VALUES["e/f/g"]
        assert parts == [value[start : start + size] for start, size in ranges]
        asked = sorted(wanted for _, _, wanted in server.asked)
        assert asked == ["bytes=0-11", "bytes=500-503"]

    def test_parts_of_several_values_are_in_flight_together(self, server):
        store = at(server)
        together = threading.Barrier(3)
        answer = Handler.answer

        def wait(handler, *, body):
            together.wait(30)
            answer(handler, body=body)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Handler, "answer", wait)
            parts = store.get_partial_values(
                [("a/b", (0, 2)), ("zarr.json", (0, 2)), ("a/b", (2, 2)), ("e/f/g", (0, 1))]
            )
        assert [bytes(part) for part in parts] == [b"01", b"{}", b"23", b"\0"]

    def test_a_range_behind_the_value_is_one_request(self, server):
        for store in (at(server), ObstoreStore(objects.HTTPStore(server.url, **PLAIN))):
            server.asked.clear()
            assert bytes(store.get_range("a/b", 50, 5)) == b""
            assert [method for method, _, _ in server.asked] == ["GET"]

    def test_a_value_is_one_request(self, server):
        store = at(server)
        assert store.get("a/b") == b"0123456789"
        assert bytes(store.get_range("a/b", -3)) == b"789"
        assert len(server.asked) == 2

    @pytest.mark.parametrize("retries", [0, 2])
    def test_requests_are_repeated_by_one_layer(self, server, retries):
        settings = {"zarrdask.retries": retries, "zarrdask.retry-delay": 0}
        store = retrying(at(server, **settings))
        server.statuses = [503] * 100
        with (
            dask.config.set(settings),
            pytest.raises(StoreError, match=r"/data/a/b") as caught,
        ):
            store.get("a/b")
        assert is_transient(caught.value)
        assert len(server.asked) == 1 + retries

    def test_a_transient_error_is_not_seen(self, server):
        server.statuses = [503, 500]
        with dask.config.set({"zarrdask.retry-delay": 0}):
            assert retrying(at(server)).get("a/b") == b"0123456789"

    def test_objects_of_users_repeat_requests_themselves(self, server):
        settings = {"max_retries": 1, "backoff": {"init_backoff": timedelta(milliseconds=1)}}
        settings["backoff"] |= {"max_backoff": timedelta(milliseconds=2), "base": 2}
        inner = objects.HTTPStore(
            at(server).inner.url,
            client_options={"allow_http": True},
            retry_config={**settings, "retry_timeout": timedelta(seconds=9)},
        )
        server.statuses = [503] * 100
        with pytest.raises(StoreError, match="503"):
            retrying(ObstoreStore(inner)).get("a/b")
        assert len(server.asked) == 2

    def test_a_body_that_is_cut_off_is_requested_again(self, server, monkeypatch):
        answer, store = Handler.answer, retrying(at(server))

        def cut(handler, *arguments, **options):
            monkeypatch.setattr(Handler, "answer", answer)
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n")
            handler.wfile.write(b"Last-Modified: Mon, 01 Jan 2024 00:00:00 GMT\r\n\r\n012")
            handler.close_connection = True

        for read in (
            lambda: store.get("a/b"),
            lambda: next(store.get_many(["a/b"], Scratch())),
            lambda: store.get_tagged("a/b")[0],
        ):
            monkeypatch.setattr(Handler, "answer", cut)
            assert bytes(read()) == b"0123456789"

    @pytest.mark.parametrize("host", ["127.0.0.1:1", "no-such-host.invalid"])
    def test_a_server_that_is_not_there(self, host):
        store = open_url(f"http://{host}/data")
        with pytest.raises(StoreError, match="no connection could be made") as caught:
            store.get("a")
        assert isinstance(caught.value.__cause__, NotConnectedError)


def test_a_traceback_has_no_signed_url(store, monkeypatch):
    signature = "1f0c" * 4

    def refuse(*_, **__):
        raise BaseError(f"Error performing GET http://host/a?X-Amz-Signature={signature} in 1 s")

    monkeypatch.setattr(ours.obstore, "get", refuse)
    for failing in (store, retrying(store)):
        with pytest.raises(StoreError) as caught:
            failing.get("a")
        assert signature not in "".join(traceback.format_exception(caught.value))


def test_missing_credentials_are_named():
    text = "Error performing PUT http://169.254.169.254/latest/api/token in 1s - HTTP error"
    error = BaseError(f"{text}\n\nDebug source: HttpError {{ kind: Timeout }}")
    assert "no credentials were found" in message(error)
    assert "anon" in message(error)
    assert isinstance(cause(error, repeated=False), NotConnectedError)
    # That the machine has no role does not say that one may not read a value.
    assert not is_forbidden(cause(BaseError(f"{text}, status code: 403"), repeated=False))


def test_requests_do_not_make_the_url_of_the_store(store, monkeypatch):
    retried = retrying(store)
    retried.set("a", b"x")
    monkeypatch.setattr(ours, "root_url", None)
    assert retried.get("a") == retried.get_range("a", 0) == b"x"
    assert [*retried.get_many(["a", "b"], Scratch())] == [b"x", None]


def test_many_are_read_through_a_sliding_window(store, monkeypatch):
    for number in range(20):
        store.set(f"k{number}", b"%d" % number)
    asked = []
    get = obstore.get

    def counted(inner, path, **options):
        asked.append(path)
        return get(inner, path, **options)

    monkeypatch.setattr(ours.obstore, "get", counted)
    with dask.config.set({"zarrdask.requests": 4}):
        values = store.get_many([f"k{number}" for number in range(20)], Scratch())
        assert bytes(next(values)) == b"0"
        assert len(asked) <= 8  # 4 in flight, and 4 that are next
        assert [bytes(value) for value in values] == [b"%d" % n for n in range(1, 20)]


class TestErasing:
    class S3Store(objects.MemoryStore):
        """A store that is taken for one that erases many keys with one request."""

        __module__ = "obstore.store"

    @pytest.mark.parametrize(("kind", "calls"), [(objects.MemoryStore, 2500), (S3Store, 3)])
    def test_keys_are_erased_by_the_thousand_where_the_store_can(self, kind, calls, monkeypatch):
        store = ObstoreStore(kind())
        keys = [f"k{number}" for number in range(2500)]
        for key in keys:
            obstore.put(store.inner, key, b"1")
        asked = []
        delete = obstore.delete
        monkeypatch.setattr(
            ours.obstore, "delete", lambda inner, paths: asked.append(1) or delete(inner, paths)
        )
        store.erase_values(keys)
        assert (len(asked), list(store.list())) == (calls, [])

    def test_a_missing_key_does_not_keep_others(self, monkeypatch):
        store = ObstoreStore(self.S3Store())
        store.set("a", b"1")
        delete = obstore.delete

        def strict(inner, paths):
            if not isinstance(paths, str):
                raise FileNotFoundError("Azure says that of a missing key")
            delete(inner, paths)

        monkeypatch.setattr(ours.obstore, "delete", strict)
        store.erase_values(["gone", "a"])
        assert list(store.list()) == []


@pytest.mark.parametrize("in_directory", [False, True])
def test_of_many_that_create_a_value_one_does(tmp_path, in_directory):
    inner = objects.LocalStore(tmp_path) if in_directory else objects.MemoryStore()
    stores = [ObstoreStore(inner, "a") for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        created = list(pool.map(lambda each: each.create("k", b"1"), stores))
    assert sorted(created) == [False] * 7 + [True]


def test_a_conditional_write_that_is_repeated_after_a_lost_answer_is_done(monkeypatch):
    store, put = retrying(ObstoreStore(objects.MemoryStore())), obstore.put

    def repeat(*arguments, **options):
        put(*arguments, **options)
        put(*arguments, **options)

    monkeypatch.setattr(ours.obstore, "put", repeat)
    assert store.create("k", b"1")
    assert not store.create("k", b"2")
    tag = store.get_tagged("k")[1]
    assert store.swap("k", b"3", tag)
    assert not store.swap("k", b"4", tag)
    assert store.swap("new", b"5", None)
    assert (store.get("k"), store.get("new")) == (b"3", b"5")


def test_a_server_that_refuses_conditional_writes_is_asked_once(monkeypatch):
    def refuse(*_, **options):
        asked.append(options["mode"])
        raise obstore.exceptions.GenericError("returned non-2xx status code: 501 Not Implemented")

    asked = []
    store = ObstoreStore(objects.S3Store("b", skip_signature=True))
    assert store.capabilities.compare_and_swap
    monkeypatch.setattr(ours.obstore, "put", refuse)
    with pytest.raises(UnsupportedError, match="changed by conditional writes"):
        store.swap("k", b"1", None)
    assert asked == ["create"]
    assert not store.capabilities.compare_and_swap
    assert not store.capabilities.create_exclusive


def test_a_store_without_conditional_requests_looks_first():
    store = ObstoreStore(objects.S3Store("b", conditional_put="disabled", skip_signature=True))
    assert not store.capabilities.create_exclusive
    assert ObstoreStore(objects.S3Store("b", skip_signature=True)).capabilities.create_exclusive


def test_a_weak_tag_does_not_tell_versions(server):
    server.values["/data/k"] = b"0123"
    for tag, expected in (('"a"', '"a"'), ('W/"a"', None), (None, None)):
        server.tag = tag
        part = at(server).get_part("k", 0, 2)
        assert (bytes(part.value), part.size, part.tag) == (b"01", 4, expected)
    # This server ignores the condition.
    assert at(server).get_part("k", 0, 2, '"a"') is None
    server.tag = '"a"'
    assert at(server).get_part("k", 0, 2, '"b"') is None
    assert at(server).get_part("k", 0, 2, '"a"') == part._replace(tag='"a"')


def test_the_end_of_a_value_in_azure_which_counts_no_ranges_from_the_end(server):
    server.values["/data/k"], server.tag = b"0123456", '"a"'
    options = {"account_name": "n", "endpoint": server.url.removesuffix("/data"), **PLAIN}
    store = ObstoreStore(objects.AzureStore("data", skip_signature=True, **options))
    for start, expected in ((-3, b"456"), (-9, b"0123456")):
        part = store.get_part("k", start, -start)
        assert (bytes(part.value), part.size, part.tag) == (expected, 7, '"a"')
    assert [wanted for *_, wanted in server.asked] == [None, "bytes=4-6", None, "bytes=0-8"]
    assert store.get_part("none", -3, 3) is None


def inverted(value):
    return None if value is None else bytes(255 - byte for byte in value)


class Inverted(ObstoreStore):
    """A store of a user, who overrides some methods."""

    def get(self, key):
        return inverted(super().get(key))

    def get_many(self, keys, scratch):
        return map(self.get, keys)

    def set(self, key, value):
        super().set(key, inverted(value))


def test_what_a_subclass_overrides_is_not_bypassed(setting):
    setting({"zarrdask.range-size": 100})
    store = Inverted(objects.MemoryStore())
    assert store.create("k", b"v")
    z = zarrdask.create_array(store, "z", shape=1000, dtype="u1", compressors=[])
    z[...] = 7
    assert (store.get("k"), ObstoreStore.get(store, "k")) == (b"v", inverted(b"v"))
    assert ObstoreStore.get(store, "z/c/0") == bytes([248]) * 1000
    assert (z[...] == 7).all()
    assert not store.capabilities.compare_and_swap


def test_a_large_value_is_uploaded_in_parts_and_is_whole(store, monkeypatch):
    monkeypatch.setattr(ours, "UPLOAD_PART_BYTES", 2**20)
    value = np.arange(3 * 2**20 + 5, dtype="u1")
    store.set("k", memoryview(value))
    assert store.get("k") == value.tobytes()


def test_nothing_is_written_by_http(server):
    store = at(server)
    with pytest.raises(ReadOnlyError, match="HTTP"):
        store.set("k", b"1")
    assert server.asked == []


class TestWhatItIs:
    @for_each(
        ("store", "url"),
        [
            (objects.S3Store("b", prefix="p", skip_signature=True), "s3://b/p/x"),
            (objects.GCSStore("b", skip_signature=True), "gs://b/x"),
            (objects.AzureStore("c", account_name="n", skip_signature=True), "abfs://c/x"),
            (objects.HTTPStore("https://host/a%20b"), "https://host/a%20b/x"),
            (objects.LocalStore("/"), "file:///x"),
        ],
    )
    def test_it_has_a_url_and_pickles(self, store, url):
        store = ObstoreStore(store, "/x/")
        again = pickle.loads(pickle.dumps(store))
        assert (store.url, again.url, again.identity.token) == (url, url, store.identity.token)
        assert (again == store, hash(again) == hash(store)) == (True, True)
        assert store.capabilities.shared

    def test_other_settings_are_another_store(self):
        one, two = (
            ObstoreStore(objects.S3Store("b", region=r)) for r in ("eu-west-1", "eu-west-2")
        )
        assert one.url == two.url
        assert (one == two, one.identity.token == two.identity.token) == (False, False)

    def test_memory_is_known_to_this_process_only(self, store):
        assert not store.capabilities.shared
        store.set("k", b"1")
        code = "import pickle, sys; pickle.loads(sys.stdin.buffer.read()).get('k')"
        done = subprocess.run(
            [sys.executable, "-c", code],
            input=pickle.dumps(store),
            capture_output=True,
            check=False,
        )
        assert b"worker processes can't see it" in done.stderr

    def test_a_forked_process_is_told_instead_of_waiting_forever(self, tmp_path):
        code = f"""
import os
from obstore.store import LocalStore
from zarrdask.storage.remote.obstore.obstore_store import ObstoreStore
from zarrdask.storage.remote.obstore.obstore_errors import NotConnectedError, cause, message
from zarrdask.storage.remote.obstore.obstore_urls import open_url

store = ObstoreStore(LocalStore({str(tmp_path)!r}))
store.set("k", b"1")
child = os.fork()
if child:
    os.waitpid(child, 0)
else:
    try:
        store.get("k")
    except Exception as error:
        print(type(error).__name__, error, flush=True)
    os._exit(0)
"""
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code],
            capture_output=True,
            check=True,
            timeout=60,
        )
        assert done.stdout.startswith(b"StoreError")
        assert b"spawn" in done.stdout

    def test_stores_of_one_object_are_equal(self, store):
        assert ObstoreStore(store.inner, "deep/er") == store
        assert ObstoreStore(store.inner, "other") != store
        assert ObstoreStore(objects.MemoryStore(), "deep/er") != store


class TestAsAURL:
    def test_an_object_of_obstore_is_a_place(self):
        inner = objects.MemoryStore()
        z = zarrdask.create_array(
            inner, "a", shape=(4, 6), dtype="i4", chunks=(2, 2), shards=(4, 4)
        )
        z[...] = np.arange(24).reshape(4, 6)
        x = zarrdask.from_zarr(inner, "a", chunks="stored")
        assert int(x.sum().compute(scheduler="threads")) == 276
        assert [path for path, _ in zarrdask.open_group(inner).walk()] == ["a"]
        del zarrdask.open_group(inner, mode="r+")["a"]
        assert ObstoreStore(inner).list_dir("") == (["zarr.json"], [])

    def test_a_directory_is_read_without_obstore(self, tmp_path):
        assert resolve(objects.LocalStore(tmp_path)) == LocalStore(str(tmp_path))

    def test_a_class_derived_from_one_of_obstores_is_one(self):
        class Named(objects.S3Store):
            pass

        store = resolve(Named("b", skip_signature=True))
        assert isinstance(store, ObstoreStore)
        assert store.url == "s3://b"


def test_the_setting_takes_two_names():
    with (
        dask.config.set({"zarrdask.remote": "boto"}),
        pytest.raises(MetadataError, match=r"zarrdask\.remote.*'boto'.*'fsspec' or 'obstore'"),
    ):
        resolve("s3://b/x")
