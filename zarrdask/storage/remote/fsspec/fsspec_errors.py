"""Errors of file systems of fsspec, as errors of stores."""

from typing import Any

from zarrdask.errors import StoreError
from zarrdask.storage.refusals import UNCONNECTED, answered
from zarrdask.storage.remote.failures import http_status, is_unconnected
from zarrdask.storage.remote.fsspec.fsspec_options import not_an_option, unknown_option

#: The errors of file systems may have any class.
ERRORS = (Exception,)


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
