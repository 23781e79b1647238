"""Answers 403: what is wrong with the credentials, or with the URL."""

import pytest

from tests.covering import for_each
from tests.storage.server_errors import ClientError
from zarrdask.errors import StoreError
from zarrdask.storage.memory import MemoryStore
from zarrdask.storage.refusals import forbidden_hint, not_listable, not_writable, s3_url
from zarrdask.storage.remote.forbidden import ForbiddenIsMissing
from zarrdask.storage.remote.obstore.obstore_errors import NoCounterpartError
from zarrdask.storage.remote.obstore.obstore_options import S3
from zarrdask.storage.wrapper import WrappedStore


class RefusingStore(WrappedStore):
    """A store that answers 403 to each request for a value."""

    def __init__(self, code):
        super().__init__(MemoryStore({}))
        self.code = code

    def get_range(self, key, start, length=None):
        raise StoreError("refused", key=key) from ClientError(403, self.code)


@for_each(
    ("code", "anonymous", "expected"),
    [
        ("SignatureDoesNotMatch", False, "the secret does not belong to the key"),
        ("InvalidAccessKeyId", False, "key does not exist"),
        ("ExpiredToken", True, "get a new one"),
        ("AccessDenied", False, 'if the server gives this .* zarrdask.forbidden = "missing"'),
        (None, True, "if the bucket is private, pass credentials .* zarrdask.forbidden"),
    ],
)
def test_the_hint_follows_the_reason_of_the_server(code, anonymous, expected):
    hint = forbidden_hint("s3://bucket", code, anonymous=anonymous)
    with pytest.raises(StoreError, match=expected):
        raise StoreError(hint)
    assert ("zarrdask.forbidden" in hint) == (code in ("AccessDenied", None))


def test_refused_credentials_do_not_make_values_missing():
    assert ForbiddenIsMissing(RefusingStore("AccessDenied")).get_range("a", 0) is None
    with pytest.raises(StoreError, match="refused"):
        ForbiddenIsMissing(RefusingStore("SignatureDoesNotMatch")).get_range("a", 0)


@for_each(
    ("url", "expected"),
    [
        ("https://b.s3.eu-west-1.amazonaws.com/x/a.zarr/", "s3://b/x/a.zarr"),
        ("https://my.data.s3.amazonaws.com/a", "s3://my.data/a"),
        ("https://s3.amazonaws.com/b/a", "s3://b/a"),
        ("https://s3-us-west-2.amazonaws.com/b", "s3://b"),
        ("https://example.org/s3.amazonaws.com/b", None),
        ("s3://b/a", None),
    ],
)
def test_a_url_of_the_server_names_that_of_the_bucket(url, expected):
    assert s3_url(url) == expected
    if expected is not None:
        for error in not_listable(url, "HTTP"), not_writable(url):
            assert f"this is a URL of S3: pass {expected}" in str(error)


@for_each(("name", "own"), [("aws_access_key_id", "key"), ("aws_secret_access_key", "secret")])
def test_options_with_the_names_of_other_software_are_recognised(name, own):
    with pytest.raises(NoCounterpartError, match=f"pass {own}=..."):
        S3.settings("s3://bucket/a", {name: "x"})
