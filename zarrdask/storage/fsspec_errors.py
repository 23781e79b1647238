"""Errors of file systems of fsspec: their codes, and what the codes mean."""

from typing import Any

from zarrdask.errors import StoreError
from zarrdask.storage.fsspec_options import not_an_option, unknown_option
from zarrdask.storage.refusals import UNCONNECTED, answered
from zarrdask.storage.transient_errors import http_status, is_unconnected

#: What file systems raise: errors of any class; and what they raise for a missing value.
ERRORS = (Exception,)
ABSENT = (FileNotFoundError, IsADirectoryError, NotADirectoryError, KeyError)
#: Codes for a conditional request: the condition does not hold, or it is not supported by the
#: server or by an old botocore.
NOT_MET = {"412", "PreconditionFailed"}
NOT_SUPPORTED = {"NotImplemented", "ParamValidationError"}
#: Codes for a value that has not changed.
UNCHANGED = {"304"}
#: Codes of servers for a range that begins behind the end of a value, which may be empty.
BEHIND = {"416", "InvalidRange"}
NO_BUCKET = "NoSuchBucket"


def codes_of(error: BaseException | None) -> set[str]:
    """Return the codes, HTTP statuses and class names of an error and of its causes."""
    codes = set[str]()
    while error is not None:
        response = getattr(error, "response", None)
        if isinstance(response, dict):
            codes.add(str(response.get("Error", {}).get("Code")))
        codes |= {str(http_status(error)), type(error).__name__}
        error = error.__cause__
    return codes


def store_error(error: BaseException, fs: Any, url: str, key: str) -> StoreError:
    """Return the error of a store for an error of a file system."""
    unknown = unknown_option(error, fs.storage_options)
    if unknown is not None:
        return not_an_option(unknown, url, type(fs))
    place, answer = f"{url}/{key}", _answer(error)
    if answer is not None:
        return StoreError(answer, key=place)
    text = str(error) or type(error).__name__
    if type(error).__name__ == "NoCredentialsError":
        text += "; if the bucket is public, pass storage_options={'anon': True}"
    elif is_unconnected(error):
        text += UNCONNECTED
    return StoreError(text, key=place, found=type(error).__name__)


def _answer(error: BaseException | None) -> str | None:
    """Return the message for the answer of a server that an error is about, if it is."""
    while error is not None:
        status = http_status(error)
        if status is not None:
            response = getattr(error, "response", None)
            details = response.get("Error", {}) if isinstance(response, dict) else {}
            return answered(status, str(details.get("Message", "")))
        error = error.__cause__
    return None
