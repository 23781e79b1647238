"""Errors carry key, found and expected, and are what a Python user would catch."""

import copy
import pickle
import traceback

import pytest

from tests.covering import for_each
from zarrdask import errors
from zarrdask.errors import StoreError, censored, forget_suppressed, no_attribute, without_secrets

BUILT_IN = {
    "ZarrdaskError": Exception,
    "NodeNotFoundError": FileNotFoundError,
    "ChunkNotFoundError": FileNotFoundError,
    "NodeExistsError": FileExistsError,
    "NodeTypeError": TypeError,
    "MetadataError": ValueError,
    "UnsupportedError": NotImplementedError,
    "SelectionError": IndexError,
    "CodecError": ValueError,
    "ChecksumError": ValueError,
    "TruncatedError": ValueError,
    "StoreError": OSError,
    "LinkError": OSError,
    "SnapshotError": OSError,
    "ReadOnlyError": PermissionError,
}
KINDS = [getattr(errors, name) for name in BUILT_IN]


def test_every_error_is_in_this_table():
    names = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, errors.ZarrdaskError)
    }
    assert names == set(BUILT_IN)


@for_each("kind", KINDS)
def test_an_error_is_a_zarrdask_error_and_the_built_in_one(kind):
    assert issubclass(kind, errors.ZarrdaskError)
    assert issubclass(kind, BUILT_IN[kind.__name__])


def test_errors_that_are_two_built_in_ones():
    assert issubclass(errors.NodeNotFoundError, KeyError)
    assert issubclass(errors.ReadOnlyError, errors.StoreError)
    assert issubclass(errors.ChecksumError, errors.CodecError)


@for_each("kind", KINDS)
def test_the_text_names_key_found_and_expected(kind):
    error = kind("is wrong", key="a/zarr.json", found="K", expected="'C' or 'F'")
    assert str(error) == "a/zarr.json: is wrong; found 'K'; expected 'C' or 'F'"
    assert (error.key, error.found, error.expected) == ("a/zarr.json", "K", "'C' or 'F'")


def test_the_text_cuts_what_it_quotes():
    long = "x" * 10**6
    error = errors.MetadataError(long, key=f"a/{long}/z", found=[long, "end"], expected=long)
    assert len(str(error)) < 5000
    assert str(error).startswith("a/xxx")
    assert "x...<" in str(error)
    assert "xx', 'end']" in str(error)
    assert error.found == [long, "end"]


def test_the_text_quotes_what_is_nested_without_end():
    deep = []
    for _ in range(200_000):
        deep = [deep]
    assert "found <a deeply nested list>" in str(errors.MetadataError("is wrong", found=deep))


@for_each("kind", KINDS)
def test_the_text_leaves_out_what_is_not_known(kind):
    assert str(kind("is wrong")) == "is wrong"
    assert str(kind("is wrong", found=0)) == "is wrong; found 0"


@for_each("kind", KINDS)
@for_each("again", [lambda e: pickle.loads(pickle.dumps(e)), copy.copy])
def test_an_error_pickles_with_its_fields(kind, again):
    error = kind("is wrong", key="c/0/1", found=(1, 2), expected="three")
    found = again(error)
    assert type(found) is kind
    assert str(found) == str(error)
    fields = ("message", "key", "found", "expected")
    assert [getattr(found, f) for f in fields] == [getattr(error, f) for f in fields]


@for_each("kind", KINDS)
def test_a_layer_that_knows_the_place_puts_it_before_the_key(kind):
    error = kind("is wrong", key="codec crc32c").within("c/0/1")
    assert error.key == "c/0/1: codec crc32c"
    assert str(error.within("a")).startswith("a: c/0/1: codec crc32c: is wrong")
    assert kind("is wrong").within("c/0/1").key == "c/0/1"


def test_errors_can_be_caught_as_python_users_do():
    with pytest.raises(PermissionError):
        raise errors.ReadOnlyError("no")
    with pytest.raises(KeyError):
        raise errors.NodeNotFoundError("no")


def test_messages_hold_no_passwords():
    url = "https://user:secret@host/x.zarr"
    error = errors.StoreError(f"no answer from {url}", key=f"{url}/c/0", found=url)
    assert "secret" not in str(error)
    assert str(error).count("https://user:***@host/x.zarr") == 3
    signed = "https://host/x.zip?versionId=3&X-Amz-Signature=secret&sig=secret&se=2030"
    error = errors.StoreError(f"no answer from {signed}", key=f"{signed}/c/0", found=signed)
    assert "secret" not in f"{error} {error!r}"
    assert str(error).count("?versionId=3&X-Amz-Signature=***&sig=***&se=2030") == 3
    long = errors.StoreError("no answer", found=f"https://host/x?token={'secret' * 100}")
    assert "secret" not in str(long)  # neither is what remains of a shortened value
    plain = "s3://bucket/a:b@c: abfs://box@account.host/x: http://host:80/x?design=1&key=*"
    assert str(errors.StoreError(plain)) == plain


@for_each(
    ("url", "shown"),
    [
        ("https://TOKEN@host/x", "https://***@host/x"),
        ("s3://KEY:SECRET@bucket/x", "s3://KEY:***@bucket/x"),
        ("https://u:SECRET@SECRET@host/x", "https://u:***@host/x"),
        ("https://u:SECRET/SECRET@host/x", "https://u:***@host/x"),
        ("https://u:12SECRET@host:80/x", "https://u:***@host:80/x"),
        ("https://host:80/x@2", "https://host:80/x@2"),
        ("https://[::1]:80/x@2", "https://[::1]:80/x@2"),
        ("abfs://container@account.host/x", "abfs://container@account.host/x"),
        ("https://h/x#access_token=SECRET", "https://h/x#access_token=***"),
        ("{'Authorization': 'Bearer SECRETSECRET=='}", "{'Authorization': 'Bearer ***'}"),
        *(
            (f"https://h/x?a=1&{name}=SECRET;SECRET&b=2", f"https://h/x?a=1&{name}=***&b=2")
            for name in ("jwt", "auth", "pwd", "passwd", "pass", "sas", "session", "Session_ID")
        ),
    ],
)
def test_every_spelling_of_a_secret_is_left_out(url, shown):
    assert without_secrets(url) == shown
    assert without_secrets(shown) == shown
    error = StoreError(url, key=url, found=url)
    assert "SECRET" not in f"{error} {error.key} {error.found}"


def test_a_traceback_has_no_secrets():
    signed = f"https://h/x?{'sig'}={'1f0c' * 3}"
    try:
        try:
            raise FileNotFoundError(2, "missing", signed)
        except OSError as error:
            raise KeyError(signed) from error
    except KeyError as error:
        cause = censored(error)
    assert isinstance(cause, KeyError)
    assert cause.__cause__.errno == 2
    assert "1f0c" * 3 not in "".join(traceback.format_exception(cause))
    assert "1f0c" * 3 not in repr([cause, cause.__cause__, cause.args])


def _failure(cause):
    """Return an error that was raised while a secret one was handled."""
    try:
        try:
            raise KeyError("secret")
        except KeyError:
            raise StoreError("it failed") from cause
    except StoreError as error:
        return error


def test_what_a_traceback_does_not_show_is_forgotten():
    error = _failure(ValueError("censored"))
    shown = traceback.format_exception(error)
    forget_suppressed(error)
    assert error.__context__ is None
    assert traceback.format_exception(error) == shown
    error.__suppress_context__, error.__context__ = False, KeyError("shown")
    forget_suppressed(error)
    assert error.__context__ is not None


def test_names_of_protocols_have_no_hint():
    assert "use this" in str(no_attribute(object(), "name", "use this"))
    assert "use this" not in str(no_attribute(object(), "_name", "use this"))
    assert str(no_attribute(object(), "name", "")).endswith("'name'")
