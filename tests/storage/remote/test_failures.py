"""What the errors of requests mean."""

import errno

from obstore import exceptions

from tests.covering import for_each
from tests.storage.server_errors import (
    ClientError,
    HttpError,
    OtherHttpError,
    RequestError,
    ServiceResponseError,
    behind,
    with_headers,
)
from zarrdask.storage.remote.failures import is_refusal, is_transient, meaning_of, retry_after
from zarrdask.storage.remote.obstore.obstore_errors import RequestError as OfObstore
from zarrdask.storage.request import Meaning


def caused(error, cause):
    error.__cause__ = cause
    return error


TRANSIENT = [
    ConnectionResetError(),
    TimeoutError(),
    OSError(errno.EHOSTUNREACH, "no route"),
    HttpError(429),
    HttpError(503),
    ClientError(500),
    ClientError(400, "RequestTimeout"),
    ClientError(400, "ThrottlingException"),
    OtherHttpError(429),
    RequestError(503),
    ServiceResponseError(),
    behind(ConnectionResetError()),
    behind(behind(HttpError(502))),
]
LASTING = [
    PermissionError(),
    FileNotFoundError(),
    OSError(errno.ENOSPC, "full"),
    HttpError(404),
    HttpError(403),
    ClientError(403, "AccessDenied"),
    OtherHttpError([503]),
    RequestError(404),
    behind(OSError(errno.EROFS, "read-only")),
    ValueError(),
]


@for_each(
    ("error", "meaning"),
    [
        (FileNotFoundError(), Meaning.MISSING),
        (KeyError("a"), Meaning.MISSING),
        (caused(FileNotFoundError(), ClientError(404, "NoSuchBucket")), Meaning.NO_BUCKET),
        (OfObstore("not found", 404, "NoSuchBucket"), Meaning.NO_BUCKET),
        (ClientError(412, "PreconditionFailed"), Meaning.NOT_MET),
        (exceptions.PreconditionError(), Meaning.NOT_MET),
        (exceptions.AlreadyExistsError(), Meaning.NOT_MET),
        (HttpError(304), Meaning.UNCHANGED),
        (exceptions.NotModifiedError(), Meaning.UNCHANGED),
        (OtherHttpError(416), Meaning.BEHIND),
        (caused(OSError(), ClientError(400, "InvalidRange")), Meaning.BEHIND),
        (OfObstore("refused", 501), Meaning.UNSUPPORTED),
        (exceptions.NotSupportedError(), Meaning.UNSUPPORTED),
        (NotImplementedError(), Meaning.UNSUPPORTED),  # of obstore, too
        (HttpError(403), None),
        (HttpError(503), None),
        (ValueError(), None),
    ],
)
def test_an_error_of_each_package_has_the_same_meaning(error, meaning):
    assert meaning_of(error) is meaning


@for_each("error", TRANSIENT)
def test_what_may_pass(error):
    assert is_transient(error)


@for_each("error", LASTING)
def test_what_lasts(error):
    assert not is_transient(error)


@for_each(
    ("error", "seconds"),
    [
        (with_headers(HttpError(429), {"Retry-After": "7"}), 7.0),
        (behind(with_headers(HttpError(503), {"retry-after": "0.5"})), 0.5),
        (with_headers(HttpError(503), {"Retry-After": "soon"}), 0.0),
        (with_headers(HttpError(503), {"Retry-After": "-3"}), 0.0),
        (with_headers(HttpError(503), {"Retry-After": "86400"}), 60.0),  # zarrdask.retry-time
        (with_headers(HttpError(503), {"Retry-After": "Fri, 31 Dec 1999 23:59:59 GMT"}), 0.0),
        (with_headers(HttpError(503), {"Retry-After": "Fri, 31 Dec 2999 23:59:59 GMT"}), 60.0),
        (with_headers(HttpError(503), {"Retry-After": f"Fri, 31 Dec {9**20} 23:59:59 GMT"}), 0.0),
        (with_headers(HttpError(503), {"Retry-After": f"Fri, {9**20} Dec 2027 23:59:59 GMT"}), 0.0),
        (with_headers(HttpError(503), {"Retry-After": "Fri, 31 Dec 0000 23:59:59 GMT"}), 0.0),
        (with_headers(HttpError(503), {"Retry-After": f"Fri, 31 Dec 2027 23:59:59 +{9**9}"}), 0.0),
        (with_headers(HttpError(503), {"Retry-After": "nan"}), 0.0),
        (with_headers(HttpError(503), {"Retry-After": "1e999"}), 0.0),
        (ClientError(503, "SlowDown", {"retry-after": "3"}), 3.0),
        (ClientError(503, "SlowDown"), 0.0),
        (HttpError(503), 0.0),
    ],
)
def test_a_store_says_when_to_come_back(error, seconds):
    assert is_refusal(error)
    assert retry_after(error) == seconds


@for_each("error", [HttpError(500), ConnectionResetError(), ClientError(400, "RequestTimeout")])
def test_other_transient_errors_are_no_refusals(error):
    assert is_transient(error)
    assert not is_refusal(error)
