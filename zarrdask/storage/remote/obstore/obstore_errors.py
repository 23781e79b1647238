"""The meaning of obstore's errors, which have details of a failed request only in their text."""

import re
from http import HTTPStatus
from typing import Any

from zarrdask.errors import StoreError, without_secrets
from zarrdask.storage.refusals import UNCONNECTED, answered

#: Where the dump of Rust's structures begins.
_DUMP = "\n\nDebug source:"
#: The explanation in an answer of S3, Google Cloud or Azure.
_DETAIL = re.compile(r"<Message>(.*?)</Message>", re.DOTALL)
_CODE = re.compile(r"<Code>(\w+)</Code>")
_STATUS = re.compile(r"status code: (\d{3})")
_REQUEST = re.compile(r"Error performing (\w+ \S+) in ")
#: How a request without an answer failed, in the dump.
_KIND = re.compile(r"HttpError \{\s*kind: (\w+)")
_LOST = {"Connect", "Request", "Timeout", "Interrupted"}
#: Answers without the headers that obstore needs, in the dump.
_NOT_UNDERSTOOD = re.compile(r"\b(MissingContentLength|NoContentRange|ParseContentRange)\b")
#: Statuses of answers that are the same to each attempt.
_FINAL = {
    HTTPStatus.UNAUTHORIZED,
    HTTPStatus.FORBIDDEN,
    HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE,
    HTTPStatus.NOT_IMPLEMENTED,
}
#: Errors that obstore itself raises about a range, from the dump, as the status of an answer: the
#: range is behind the end of a value in memory or in a directory, or the server sent the whole
#: value.
_OF_RANGES = {
    "StartTooLarge": HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE,
    "NotPartial": HTTPStatus.NOT_IMPLEMENTED,
}
#: The servers in clouds that give credentials to machines, which obstore tries last.
_METADATA_SERVERS = re.compile(r"//(169\.254\.\d+\.\d+|metadata\.google\.internal)\b")


class RequestError(Exception):
    """A request failed; `status` and `s3_code` come from the answer.

    It stands for an error of obstore as the cause of ours: the text of that one may have the whole
    signed URL of the request.
    """

    def __init__(self, text: str, status: int | None = None, s3_code: str | None = None) -> None:
        super().__init__(text)
        self.status, self.s3_code = status, s3_code


class AnswerError(RequestError):
    """The server answered in a way that obstore does not understand; other clients may."""


class EncodedError(ValueError):
    """The server compressed a value in transit, which obstore does not undo."""


class NoCounterpartError(StoreError):
    """Obstore has no counterpart for an option of the user; fsspec may have one."""


def no_counterpart(what: str, url: str, **parts: Any) -> NoCounterpartError:
    """Return the error for an option, or a setting of the environment, that obstore lacks."""
    return NoCounterpartError(
        'obstore does not support this; remove it, set zarrdask.remote to "auto", or pass an '
        "object of obstore instead of a URL",
        key=url,
        found=what,
        **parts,
    )


class LostAnswerError(ConnectionError):
    """The connection was lost before, or while, the server answered."""


class NotConnectedError(ConnectionError):
    """No connection to the server could be made."""


def message(error: Exception) -> str:
    """Return the text of an error, without the dump of Rust's structures."""
    text, _, dump = str(error).partition(_DUMP)
    text = text.strip() or type(error).__name__
    if _METADATA_SERVERS.search(text):
        return (
            "no credentials were found, neither in storage_options nor in the environment; if the "
            "bucket is public, pass storage_options={'anon': True}"
        )
    status = _STATUS.search(text)
    if status is not None:
        detail = _DETAIL.search(text)
        return answered(int(status[1]), detail[1].strip() if detail else "")
    kind, request = _KIND.search(dump), _REQUEST.search(text)
    if kind is None or kind[1] != "Connect":
        return text
    return f"{request[1] if request else text}{UNCONNECTED}"


def cause(error: Exception, *, repeated: bool) -> Exception:
    """Return the error that stands for one of obstore as a cause; its type says what happened.

    `repeated` says that obstore has repeated the request itself, as often as the user wants.
    Bodies that were cut off are not always among them.
    """
    text, _, dump = str(error).partition(_DUMP)
    shown = f"{type(error).__name__}: {without_secrets(text.strip())}"
    kind, status = _KIND.search(dump), _STATUS.search(text)
    is_of_store = not _METADATA_SERVERS.search(text)
    for sign, of_range in _OF_RANGES.items():
        if sign in dump:
            return RequestError(shown, of_range)
    is_final = status is not None and int(status[1]) in _FINAL
    if is_final and not is_of_store:
        return RequestError(shown)  # it says nothing of the value
    if repeated and "RetryError" in dump:
        return RequestError(shown, int(status[1]) if status and is_final else None)
    if _NOT_UNDERSTOOD.search(dump) or isinstance(error, EncodedError):
        return AnswerError(shown)
    if kind is None or kind[1] not in _LOST:
        code = _CODE.search(text)
        return RequestError(shown, int(status[1]) if status else None, code[1] if code else None)
    is_connected = kind[1] != "Connect" and is_of_store
    return (LostAnswerError if is_connected else NotConnectedError)(shown)
