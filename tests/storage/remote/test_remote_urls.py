"""Which package opens a URL, and what happens where obstore can't go on."""

import gzip
import logging
import multiprocessing
import pickle
import subprocess
import sys
import threading
import time
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import dask.array as da
import numpy as np
import pytest
from fsspec.config import conf

import zarrdask
from tests.covering import for_each
from zarrdask import config
from zarrdask.errors import MetadataError, ReadOnlyError, StoreError
from zarrdask.storage.listing import stores_above
from zarrdask.storage.remote import remote_urls as remote
from zarrdask.storage.remote.failures import (
    is_forbidden,
    is_refusal,
    is_transient,
    is_unconnected,
)
from zarrdask.storage.remote.fsspec.fsspec_store import FsspecStore
from zarrdask.storage.remote.obstore.obstore_store import ObstoreStore
from zarrdask.storage.remote.remote_store import RemoteStore
from zarrdask.storage.resolve import resolve

VALUE = bytes(range(100))


pytestmark = pytest.mark.usefixtures("without_cloud_settings")


def without_obstore(monkeypatch):
    monkeypatch.setitem(sys.modules, "obstore", None)
    for name in (
        "zarrdask.storage.remote.obstore.obstore_store",
        "zarrdask.storage.remote.obstore.obstore_urls",
    ):
        monkeypatch.delitem(sys.modules, name, raising=False)


def without_fsspec(monkeypatch):
    """Let fsspec lack the packages that it needs."""

    def refuse(url, _options):
        raise StoreError("pip install zarrdask[http]", key=url)

    monkeypatch.setattr(FsspecStore, "from_url", refuse)


class TestChoice:
    @for_each("url", ["s3://bucket/a", "az://c@name.blob.core.windows.net/a", "https://h.org/a"])
    def test_obstore_opens_urls_of_object_stores_and_servers(self, url):
        store = resolve(url)
        assert isinstance(store, RemoteStore)
        assert store.identity.opened_by == "obstore"
        assert repr(store) == f"<RemoteStore {store.url}, opened by obstore>"

    def test_fsspec_opens_others(self):
        store = resolve("memory://a")
        assert repr(store) == "<FsspecStore memory:///a, opened by fsspec>"

    @for_each(
        ("url", "options", "reason"),
        [
            ("https://h.org/a", {"client_kwargs": {"auth": 1}}, "'client_kwargs.auth'"),
            ("https://h.org/a?sig=b", {}, "a query"),
            ("https://h.org/a//b", {}, "empty or relative names"),
        ],
    )
    def test_fsspec_opens_what_obstore_has_no_counterpart_for(self, url, options, reason, caplog):
        with caplog.at_level(logging.INFO, remote.__name__):
            store = resolve(url, options)
        assert isinstance(store, FsspecStore)
        message = caplog.messages[-1]
        assert "opened by fsspec, as obstore lacks" in message
        assert reason in message
        assert "sig=b" not in message

    def test_an_error_of_both_names_both(self, monkeypatch):
        without_fsspec(monkeypatch)
        with pytest.raises(StoreError, match="pip install") as caught:
            resolve("s3://bucket", {"use_ssl": False})
        assert "obstore can't be used instead: it lacks the option 'use_ssl'" in str(
            caught.value.__notes__
        )

    def test_fsspec_opens_all_urls_without_obstore(self, monkeypatch, caplog):
        without_obstore(monkeypatch)
        with caplog.at_level(logging.INFO, remote.__name__):
            assert isinstance(resolve("https://h.org/a"), FsspecStore)
        assert "as obstore lacks the package obstore" in caplog.text

    def test_the_choice_of_the_user_counts(self, setting):
        setting({"zarrdask.remote": "fsspec"})
        assert isinstance(resolve("https://h.org/a"), FsspecStore)
        setting({"zarrdask.remote": "obstore"})
        assert isinstance(resolve("https://h.org/a"), ObstoreStore)
        setting({"zarrdask.remote": "boto"})
        with pytest.raises(MetadataError, match="'auto' or 'fsspec' or 'obstore'"):
            resolve("https://h.org/a")

    def test_the_directories_above_a_url_are_opened_in_the_same_way(self):
        assert [repr(each) for each in stores_above(resolve("https://h.org/a/b"), 9)] == [
            "<RemoteStore https://h.org/a, opened by obstore>",
            "<RemoteStore https://h.org, opened by obstore>",
        ]


@pytest.mark.parametrize("package", ["auto", "obstore", "fsspec"])
@for_each(
    ("url", "missing"),
    [
        *((url, "bucket") for url in ("s3://", "s3:///a", "s3a://?a", "gs://", "gcs:///a/b")),
        *((url, "bucket") for url in ("az:///a", "abfs://@name.dfs.core.windows.net/a")),
        *((url, "host") for url in ("http://", "https:///a", "http://:80/a", "http://me:pw@/a")),
    ],
)
def test_a_url_names_a_bucket_or_a_host(url, missing, package, setting):
    setting({"zarrdask.remote": package})
    with pytest.raises(StoreError, match=f"names no {missing}; expected .*://{missing}/path"):
        resolve(url)


@pytest.mark.parametrize("package", ["auto", "obstore", "fsspec"])
@for_each("url", ["s3://bucket/a", "s3a://bucket", "gs://bucket", "az://c", "abfss://c/a"])
@for_each("value", ["false", "true", "", 0, 1])
def test_whether_requests_are_anonymous_is_a_bool(url, value, package, setting, monkeypatch):
    setting({"zarrdask.remote": package})
    with pytest.raises(StoreError, match=r"'anon'.* must be True or False") as caught:
        resolve(url, {"anon": value})
    assert (caught.value.key, caught.value.found) == (url, value)
    monkeypatch.setitem(conf, url.partition("://")[0], {"anon": value})
    with pytest.raises(StoreError, match=r"'anon'.* must be True or False"):
        resolve(url)


class Handler(BaseHTTPRequestHandler):
    """Answers in the unusual way that the path says."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        directory, _, name = self.path.strip("/").rpartition("/")
        if name.isdigit():
            self.send(int(name), b"")
        elif name == "late":
            time.sleep(2)
        elif directory == "closed" and "Authorization" not in self.headers:
            self.send(401, b"")
        elif name != "value":
            self.send(404, b"")
        elif directory == "chunked":
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(VALUE), VALUE))
        elif directory == "compressed":
            self.send(200, gzip.compress(VALUE), {"Content-Encoding": "gzip"})
        elif "Range" in self.headers and directory == "unlabelled":
            first, last = self.headers["Range"].removeprefix("bytes=").split("-")
            self.send(206, VALUE[int(first) : int(last) + 1])
        else:
            self.send(200, VALUE)

    def send(self, status, value, headers=None):
        self.send_response(status)
        for name, text in {"Content-Length": len(value), **(headers or {})}.items():
            self.send_header(name, str(text))
        self.end_headers()
        self.wfile.write(value)

    def log_message(self, *_):
        pass


@pytest.fixture
def url():
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads, server.block_on_close = True, False
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


class TestTakeover:
    @pytest.mark.parametrize(
        ("name", "is_taken_over"),
        [("chunked", True), ("compressed", True), ("unlabelled", True), ("whole", False)],
    )
    def test_unusual_answers_are_read(self, url, name, is_taken_over):
        store = resolve(f"{url}/{name}")
        if name == "unlabelled":
            assert bytes(store.get_range("value", 10, 5)) == VALUE[10:15]
        assert store.get("value") == VALUE
        assert store.get("missing") is None
        assert store.identity.opened_by == ("fsspec" if is_taken_over else "obstore")
        assert pickle.loads(pickle.dumps(store)).identity.opened_by == store.identity.opened_by

    def test_it_stays_the_same_store(self, url):
        store, other = (resolve(f"{url}/chunked") for _ in range(2))
        assert store.get("value") == VALUE
        assert [store.identity.opened_by, other.identity.opened_by] == ["fsspec", "obstore"]
        assert store == other
        assert hash(store) == hash(other)
        for each in ("token", "uri"):
            assert getattr(store.identity, each) == getattr(other.identity, each)

    def test_without_fsspecs_package_the_error_says_so(self, url, monkeypatch):
        store = resolve(f"{url}/chunked")
        without_fsspec(monkeypatch)
        with pytest.raises(StoreError, match="Content-Length") as caught:
            store.get("value")
        assert "zarrdask[http]" in str(caught.value.__notes__)


@pytest.mark.parametrize("package", ["auto", "fsspec"])
class TestErrors:
    """They are the same, whichever package opened the URL."""

    @pytest.fixture(autouse=True)
    def chosen(self, package, setting):
        setting({"zarrdask.remote": package, "zarrdask.retries": 0})

    @for_each(
        ("status", "phrase", "test"),
        [
            (401, "Unauthorized", None),
            (403, "Forbidden", is_forbidden),
            (500, "Internal Server Error", is_transient),
            (503, "Service Unavailable", is_refusal),
        ],
    )
    def test_of_an_answer(self, url, status, phrase, test):
        with pytest.raises(StoreError) as caught:
            resolve(f"{url}/a").get(str(status))
        assert str(caught.value) == f"{url}/a/{status}: the server answered {status} {phrase}"
        for each in (is_forbidden, is_transient, is_refusal):
            is_expected = each is test or (each is is_transient and test is is_refusal)
            assert each(caught.value) == is_expected

    def test_of_writing(self, url):
        store = resolve(f"{url}/a")
        for write in (
            lambda: store.set("b", b"1"),
            lambda: store.create("b", b"1"),
            lambda: store.erase("b"),
            lambda: zarrdask.create_group(store, "b"),
            lambda: zarrdask.to_zarr(da.ones(3), f"{url}/a", "b"),
        ):
            with pytest.raises(ReadOnlyError, match=f"{url}/a: a store that is reached by HTTP"):
                write()

    @for_each("host", ["127.0.0.1:1", "no-such-host.invalid"])
    def test_of_a_server_that_is_not_there(self, host):
        with pytest.raises(StoreError, match="no connection could be made; check the") as caught:
            resolve(f"http://{host}/a").get("b")
        assert is_unconnected(caught.value)
        assert is_transient(caught.value)

    def test_of_a_server_that_is_late(self, url, monkeypatch):
        limit = timedelta(seconds=0.2)
        monkeypatch.setattr("zarrdask.storage.remote.obstore.obstore_options.REQUEST_LIMIT", limit)
        options = {"timeout": limit.total_seconds()} if config.get("remote") == "fsspec" else None
        with pytest.raises(StoreError, match=url) as caught:
            resolve(url, options).get("late")
        assert is_transient(caught.value)
        assert not is_unconnected(caught.value)

    def test_a_password_in_a_url_is_sent(self, url):
        store = resolve(f"{url.replace('://', '://user:pass%40word@')}/closed")
        assert store.get("value") == VALUE
        assert "pass" not in repr(store)


def read_in_fork(store, answers):
    opened = resolve(store.url)
    answers.put(
        (
            store.get("value"),
            store.identity.opened_by,
            opened.identity.opened_by,
            opened.get("value"),
        )
    )


def test_forked_processes_use_fsspec(url):
    store = resolve(f"{url}/whole")
    assert store.get("value") == VALUE
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    process = context.Process(target=read_in_fork, args=[store, answers])
    process.start()
    assert answers.get(timeout=60) == (VALUE, "fsspec", "fsspec", VALUE)
    process.join()
    assert store.identity.opened_by == "obstore"


def fail_in_fork(store, answers):
    try:
        store.get("value")
    except StoreError as error:
        answers.put((str(error), *error.__notes__))


def test_a_forked_process_without_fsspecs_package_says_so(url, monkeypatch):
    store = resolve(f"{url}/whole")
    store.get("value")
    without_fsspec(monkeypatch)
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    process = context.Process(target=fail_in_fork, args=[store, answers])
    process.start()
    error, note = answers.get(timeout=60)
    process.join()
    assert "pip install" in error
    assert "forked after it was used" in note


class TestWorkers:
    def test_a_pickled_store_keeps_its_choice(self, setting):
        store = resolve("https://h.org/a")
        setting({"zarrdask.remote": "fsspec"})
        again = pickle.loads(pickle.dumps(store))
        assert again == store
        assert again.identity.opened_by == "obstore"

    def test_a_worker_without_obstore_says_what_to_install(self):
        code = "import sys, pickle; sys.modules['obstore'] = None; pickle.load(sys.stdin.buffer)"
        run = subprocess.run(
            [sys.executable, "-c", code],
            input=pickle.dumps(resolve("https://h.org/a")),
            capture_output=True,
            check=False,
        )
        assert b"StoreError: this store was opened by obstore, which is not" in run.stderr
        assert b"zarrdask[obstore]" in run.stderr


def test_the_choice_is_among_the_properties_of_arrays_and_groups(tmp_path):
    place = "memory://opened"
    group = zarrdask.create_group(place, overwrite=True)
    z = group.create_array("a", shape=3, dtype="i4")
    for node in (z, group):
        assert ("opened by", "fsspec") in node.info.rows
    assert np.all(zarrdask.open_array(place, "a")[...] == 0)
    local = zarrdask.create_array(tmp_path, shape=3, dtype="i4")
    assert "opened by" not in dict(local.info.rows)
