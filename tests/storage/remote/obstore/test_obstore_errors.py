"""The meaning of obstore's errors, which follows from their texts."""

from tests.covering import for_each
from zarrdask.storage.remote.obstore.obstore_errors import message

REFUSED = (
    "Generic S3 error: Error performing GET https://example.com/b/k in 1ms - Server returned "
    "non-2xx status code: 403 Forbidden: <Error><Code>AccessDenied</Code>"
    "<Message> Access denied to alice </Message></Error>\n\nDebug source:\nHttpError { kind: Other"
)
UNCONNECTED = (
    "Generic S3 error: Error performing GET http://127.0.0.1:1/b/k in 1ms - error sending request"
    "\n\nDebug source:\nHttpError {\n kind: Connect"
)


@for_each(
    ("text", "parts"),
    [
        (REFUSED, ["403", "Access denied to alice"]),
        (UNCONNECTED, ["GET http://127.0.0.1:1/b/k"]),
        ("", ["ValueError"]),
    ],
)
def test_a_message_has_what_the_server_said_and_no_dump(text, parts):
    text = message(ValueError(text))
    assert all(part in text for part in parts)
    assert "Debug source" not in text
    assert "HttpError" not in text
