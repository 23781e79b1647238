"""Default credentials of Google Cloud and Azure are sent, and renewed when they expire."""

import pickle
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import ModuleType, SimpleNamespace

import pytest

from zarrdask.errors import StoreError
from zarrdask.storage.remote import default_credentials
from zarrdask.storage.resolve import resolve

OPTIONS = {"gs": {}, "az": {"account_name": "name"}}


class Handler(BaseHTTPRequestHandler):
    """Has one value, and remembers who asked for it."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.server.asked.append(self.headers.get("Authorization"))
        self.send_response(200)
        headers = {"Content-Length": 5, "ETag": '"1"', "x-ms-blob-type": "BlockBlob"}
        headers["Last-Modified"] = "Sun, 01 Nov 2026 00:00:00 GMT"
        for name, text in headers.items():
            self.send_header(name, str(text))
        self.end_headers()
        self.wfile.write(b"value")

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch):
    for name in ("GOOGLE_APPLICATION_CREDENTIALS", "STORAGE_EMULATOR_HOST"):
        monkeypatch.delenv(name, raising=False)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.asked = []
        server.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


class PackageError(Exception):
    """What the packages of both clouds raise."""


class Credentials:
    """Tokens with numbers, as both packages have them; each is valid for some seconds."""

    seconds = 3600

    def __init__(self):
        self.number = 0

    def refresh(self, _request):
        self.number += 1
        self.token = f"token{self.number}"
        self.expiry = (datetime.now(UTC) + timedelta(seconds=self.seconds)).replace(tzinfo=None)

    def get_token(self, _scope, tenant_id=None):
        if self.seconds is None:
            raise PackageError("please log in")
        self.refresh(None)
        expires = self.expiry.replace(tzinfo=UTC).timestamp()
        return SimpleNamespace(token=self.token, expires_on=expires)


@pytest.fixture
def credentials(monkeypatch):
    """Install packages of both clouds whose default credentials are these; None is none."""
    found = [Credentials()]

    def default(scopes):
        if found[0] is None:
            raise PackageError("no credentials")
        return found[0], "project"

    modules = {
        "google": {},
        "google.auth": {"default": default},
        "google.auth._default_async": {"default_async": None},
        "google.auth.exceptions": {"GoogleAuthError": PackageError},
        "google.auth.transport": {},
        "google.auth.transport.requests": {"Request": lambda: None},
        "azure": {},
        "azure.core": {},
        "azure.core.exceptions": {"AzureError": PackageError},
        "azure.identity": {"DefaultAzureCredential": lambda: found[0]},
        "azure.identity.aio": {},
    }
    for name in ("obstore.auth.google", "obstore.auth.azure"):
        monkeypatch.setitem(sys.modules, name, None)  # so that it is removed at the end
        del sys.modules[name]
    for name, members in modules.items():
        module = ModuleType(name)
        vars(module).update(members)
        monkeypatch.setitem(sys.modules, name, module)
        above, _, own = name.rpartition(".")
        if above:
            monkeypatch.setattr(sys.modules[above], own, module, raising=False)
    default_credentials.google_provider.cache_clear()
    default_credentials.azure_provider.cache_clear()
    yield found
    default_credentials.google_provider.cache_clear()
    default_credentials.azure_provider.cache_clear()


def opened(scheme, server):
    return resolve(f"{scheme}://bucket", OPTIONS[scheme] | {"endpoint_url": server.url})


@pytest.mark.parametrize("scheme", OPTIONS)
class TestTokens:
    def test_they_are_sent_also_by_a_pickled_store(self, scheme, server, credentials):
        store = opened(scheme, server)
        assert store.identity.opened_by == "obstore"
        assert pickle.loads(pickle.dumps(store)).get("k") == store.get("k") == b"value"
        assert [text.partition("token")[0] for text in server.asked] == ["Bearer "] * 2

    def test_they_are_renewed_when_they_expire(self, scheme, server, credentials):
        store = opened(scheme, server)
        for _ in range(2):
            store.get("k")
        assert server.asked == ["Bearer token1"] * 2
        credentials[0].seconds = 1
        store = opened(scheme, server)
        store.get("k")
        time.sleep(0.2)  # obstore does not renew them more often than every 0.1 s
        store.get("k")
        assert server.asked[2:] == ["Bearer token2", "Bearer token3"]


def test_public_buckets_of_google_need_no_credentials(server, credentials):
    credentials[0] = None
    assert opened("gs", server).get("k") == b"value"
    assert server.asked == [None]


def test_azure_says_what_its_package_says(server, credentials):
    credentials[0].seconds = None
    with pytest.raises(StoreError, match="please log in"):
        opened("az", server).get("k")
