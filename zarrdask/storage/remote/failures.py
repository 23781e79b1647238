"""The meanings of the errors of requests, the same for every package that sends them.

The packages raise classes of their own, with the HTTP status, or the error code of S3, in different
places. All code that depends on the meaning of an error uses this module.
"""

import errno
import time
from collections.abc import Iterator
from contextlib import suppress
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from math import isfinite
from typing import Any

from zarrdask import config
from zarrdask.storage.request import Meaning

#: Transient errors, by HTTP status, by ``errno``, by class name and by error code of S3.
_STATUSES = {408, 425, 429, 500, 502, 503, 504}
_ERRNOS = {
    errno.EAGAIN,
    errno.ECONNABORTED,
    errno.ECONNREFUSED,
    errno.ECONNRESET,
    errno.EHOSTUNREACH,
    errno.ENETUNREACH,
    errno.EPIPE,
    errno.ESTALE,
    errno.ETIMEDOUT,
}
# By name, as the classes belong to packages that need not be installed.
_CLASS_NAMES = {
    "ClientConnectionError",
    "ClientPayloadError",
    "ConnectTimeoutError",
    "EndpointConnectionError",
    "HTTPClientError",
    "IncompleteRead",
    "IncompleteReadError",
    "ProxyError",
    "ReadTimeoutError",
    "ResponseParserError",
    "ServerDisconnectedError",
    "ServiceRequestError",
    "ServiceResponseError",
    "TransportError",
}
_CODES = {
    "ConditionalRequestConflict",
    "InternalError",
    "RequestLimitExceeded",
    "RequestTimeout",
    "ServiceUnavailable",
    "SlowDown",
    "Throttling",
    "ThrottlingException",
    "XAmzContentSHA256Mismatch",
}
#: Class names of errors of a connection that could not be made.
_NOT_CONNECTED = {
    "ClientConnectorError",
    "ConnectionRefusedError",
    "EndpointConnectionError",
    "NotConnectedError",
    "gaierror",
}
#: The errors of file systems and object stores for a missing value.
_ABSENT = (FileNotFoundError, IsADirectoryError, NotADirectoryError, KeyError)
#: How stores say that there are too many requests, by HTTP status and by error code of S3.
_REFUSALS = {429, 503}
_REFUSAL_CODES = {"RequestLimitExceeded", "SlowDown", "Throttling", "ThrottlingException"}


#: By HTTP status, by error code of S3 and by class name. The first one counts.
_MEANINGS: dict[Meaning, set[int | str | None]] = {
    Meaning.NO_BUCKET: {"NoSuchBucket"},
    Meaning.NOT_MET: {
        *(412, "AlreadyExistsError", "FileExistsError"),
        *("PreconditionError", "PreconditionFailed"),
    },
    Meaning.UNCHANGED: {304, "NotModifiedError"},
    Meaning.BEHIND: {416, "InvalidRange"},
    Meaning.UNSUPPORTED: {
        *(501, "NotImplemented"),
        *("NotImplementedError", "NotSupportedError", "ParamValidationError"),
    },
}


def meaning_of(error: BaseException) -> Meaning | None:
    """Return the meaning of an error, or of a cause of it; None for other errors."""
    signs: set[int | str | None] = set()
    for each in _causes(error):
        signs |= {http_status(each), _error_code(each), *_class_names(each)}
    meanings = (meaning for meaning, of_it in _MEANINGS.items() if not of_it.isdisjoint(signs))
    return next(meanings, Meaning.MISSING if isinstance(error, _ABSENT) else None)


def is_transient(error: BaseException | None) -> bool:
    """Whether the same request may succeed later: lost connections, timeouts, HTTP 429 and 5xx.

    The error of a store may be the cause of one that names the key.
    """
    return any(map(_is_transient, _causes(error)))


def is_forbidden(error: BaseException | None) -> bool:
    """Whether a server refused a request: HTTP 403, which some send for a missing key, too."""
    return any(http_status(each) == HTTPStatus.FORBIDDEN for each in _causes(error))


def is_unconnected(error: BaseException | None) -> bool:
    """Whether no connection to a server could be made."""
    return any(_NOT_CONNECTED & _class_names(each) for each in _causes(error))


def is_refusal(error: BaseException | None) -> bool:
    """Whether a store refused a request because there are too many: HTTP 429 or 503."""
    return any(
        http_status(each) in _REFUSALS or _error_code(each) in _REFUSAL_CODES
        for each in _causes(error)
    )


def error_code(error: BaseException) -> str | None:
    """Return the error code of S3 in an error, or in a cause of it."""
    return next(filter(None, map(_error_code, _causes(error))), None)


def _error_code(error: BaseException) -> Any:
    """Return the error code of S3 in an error of botocore, or in ours for obstore, else None."""
    response = getattr(error, "response", None)
    if isinstance(response, dict):
        return response.get("Error", {}).get("Code")
    return getattr(error, "s3_code", None)


def retry_after(error: BaseException | None) -> float:
    """Return the seconds of the header ``Retry-After`` of a refusal; 0 if there is none."""
    for each in _causes(error):
        response: Any = getattr(each, "response", None)
        metadata = response.get("ResponseMetadata", {}) if isinstance(response, dict) else {}
        holders = metadata.get("HTTPHeaders"), getattr(each, "headers", None)
        for headers in (*holders, getattr(response, "headers", None)):
            get = getattr(headers, "get", None)
            value = get("Retry-After", get("retry-after")) if callable(get) else None
            if value is not None:
                return min(_seconds_of(str(value)), float(config.get("retry-time")))
    return 0.0


def _seconds_of(value: str) -> float:
    """Return the seconds of a header: a number, or a date."""
    for read in (float, _seconds_until):
        # A date may be outside of what Python, or the clock of the system, can represent.
        with suppress(ValueError, TypeError, OverflowError, OSError):
            seconds = read(value)
            return max(seconds, 0.0) if isfinite(seconds) else 0.0
    return 0.0


def _seconds_until(date: str) -> float:
    return parsedate_to_datetime(date).timestamp() - time.time()


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and its causes."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__


def _class_names(error: BaseException) -> set[str]:
    return {kind.__name__ for kind in type(error).__mro__}


def _is_transient(error: BaseException) -> bool:
    if isinstance(error, ConnectionError | TimeoutError):
        return True
    if _class_names(error) & _CLASS_NAMES:
        return True
    if _error_code(error) in _CODES:
        return True
    return http_status(error) in _STATUSES or (
        isinstance(error, OSError) and error.errno in _ERRNOS
    )


def http_status(error: BaseException) -> int | None:
    """Return the HTTP status of an error of any of the packages that fsspec uses, else None."""
    response: Any = getattr(error, "response", None)
    if isinstance(response, dict):
        status: int | None = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        return status
    for holder in (error, response):
        for name in ("status", "status_code", "code"):
            status = getattr(holder, name, None)
            if isinstance(status, int):
                return status
    return None
