"""The errors for operations that a store does not support or refuses."""

import re
from collections.abc import Container, Mapping
from http import HTTPStatus
from typing import Any

from zarrdask.errors import ReadOnlyError, StoreError, UnsupportedError, without_secrets

#: The end of the message if a server can't be connected to, the same for every package.
UNCONNECTED = ": no connection could be made; check the address"
#: Advice if a server refuses to send a value without a reason.
_FORBIDDEN = (
    "if the server gives this answer for keys that do not exist, open the store with the setting "
    'zarrdask.forbidden = "missing"'
)
#: Advice if a request without a signature is refused.
_ANONYMOUS = (
    "the request was anonymous: if the bucket is private, pass credentials in storage_options or "
    "in the environment, and not anon=True"
)
#: The error codes of S3 for credentials that it does not accept, and what to do about each.
CREDENTIALS = {
    "SignatureDoesNotMatch": "the secret does not belong to the key; correct it",
    "InvalidAccessKeyId": "the key does not exist; correct it, or the endpoint",
    **dict.fromkeys(
        ("ExpiredToken", "TokenRefreshRequired", "InvalidToken"),
        "the token has expired or is invalid; get a new one",
    ),
    "RequestTimeTooSkewed": "the clock of this machine is wrong; set it",
}
#: Names of options in other software, and in the file system of S3.
_SYNONYMS = {
    **dict.fromkeys(("aws_access_key_id", "access_key_id", "access_key"), "key"),
    **dict.fromkeys(("aws_secret_access_key", "secret_access_key", "secret_key"), "secret"),
    **dict.fromkeys(("aws_session_token", "session_token"), "token"),
    **dict.fromkeys(("aws_endpoint_url", "aws_endpoint", "endpoint", "host"), "endpoint_url"),
    **dict.fromkeys(("anonymous", "no_sign_request", "skip_signature", "unsigned"), "anon"),
    **dict.fromkeys(("aws_profile", "profile_name"), "profile"),
}
#: A host of S3, alone or behind the name of a bucket.
_S3_HOST = re.compile(
    r"https?://(?:(?P<bucket>[^/]+)\.)?s3[.-][^/]*amazonaws\.com(?:/(?P<path>.*))?"
)


def s3_url(url: str) -> str | None:
    """Return the URL of S3 for a URL of its server by HTTP; None for other URLs.

    >>> s3_url("https://bucket.s3.eu-west-1.amazonaws.com/a.zarr")
    's3://bucket/a.zarr'
    >>> s3_url("https://s3.amazonaws.com/bucket/a.zarr")
    's3://bucket/a.zarr'
    """
    match = _S3_HOST.fullmatch(url.rstrip("/"))
    if match is None:
        return None
    parts = (match["bucket"], match["path"])
    return f"s3://{'/'.join(part for part in parts if part)}"


def _s3_hint(url: str) -> str:
    bucket_url = s3_url(url)
    return "" if bucket_url is None else f"; this is a URL of S3: pass {bucket_url}"


def forbidden_hint(url: str, code: str | None, *, anonymous: bool) -> str:
    """Return the advice for the answer 403.

    Parameters
    ----------
    url : str
        The location of the store.
    code : str, optional
        The error code of S3.
    anonymous : bool
        Whether requests have no signature.
    """
    if code in CREDENTIALS:
        return CREDENTIALS[code]
    hint = f"{_ANONYMOUS}; {_FORBIDDEN}" if anonymous else _FORBIDDEN
    return f"{hint}{_s3_hint(url)}"


def not_supported(url: str, action: str) -> UnsupportedError:
    """Return the error for an operation that a store lacks, such as being "written" (B-86)."""
    return UnsupportedError(f"not supported: this store can't be {action}", key=url)


def no_objects(url: str) -> UnsupportedError:
    """Return the error for a store whose values can't be referenced."""
    return UnsupportedError(
        "the values of this store are not files or objects with URLs, so they can't be "
        "referenced; copy the values themselves",
        key=url,
    )


def no_references(url: str) -> UnsupportedError:
    """Return the error for a store that can't refer to values elsewhere."""
    return UnsupportedError(
        "this store can't hold references to chunks elsewhere; pass a writable session of icechunk "
        "as the target, or copy the values themselves",
        key=url,
    )


def no_moved_chunks(url: str) -> UnsupportedError:
    """Return the error for a store where a chunk can't get another index without being copied."""
    return UnsupportedError(
        "leading chunks can be dropped in a writable session of icechunk only: in other stores all "
        "chunks after them would have to be copied to new keys; erase the region instead, or copy "
        "the part to keep into a new array",
        key=url,
    )


def check_no_credentials(url: str) -> None:
    """Check that a URL of a bucket has no key and secret: packages take them for its name.

    Raises
    ------
    StoreError
        If it has.
    """
    if re.search(r"(^|:)(s3a?|gs|gcs)://[^/?#]*@", url):
        raise StoreError(
            "credentials can't be part of the URL of a bucket; pass them in storage_options, such "
            "as {'key': ..., 'secret': ...}",
            key=without_secrets(url),
        )


def option_hint(name: str, accepted: Container[str]) -> str:
    """Return the end of a message about an unknown option, if it has another name here.

    >>> option_hint("aws_access_key_id", {"key", "secret"})
    '; pass key=...'
    """
    synonym = _SYNONYMS.get(name.lower())
    return f"; pass {synonym}=..." if synonym and synonym in accepted else ""


def no_bucket(name: str | None, url: str) -> StoreError:
    """Return the error for a bucket that does not exist; its name is None if it is not known."""
    return StoreError(f"there is no bucket {name!r}; create it first, or correct the URL", key=url)


def check_anonymous(options: Mapping[str, Any], url: str) -> None:
    """Check that the option ``anon`` is a bool: packages read a text such as "false" differently.

    Raises
    ------
    StoreError
        If it is something else.
    """
    value = options.get("anon")
    if not isinstance(value, bool | None):
        raise StoreError(
            "the option 'anon', in storage_options or in the settings of fsspec, must be True or "
            "False",
            key=url,
            found=value,
            expected="True for requests without a signature, or False",
        )


def not_listable(url: str, reason: str) -> UnsupportedError:
    """Return the error for a store whose keys can't be listed."""
    return UnsupportedError(
        "this store can't be listed, so its nodes can't be discovered; open nodes by path"
        + _s3_hint(url),
        key=url,
        found=reason,
    )


def answered(status: int, detail: str = "") -> str:
    """Return the message for an answer that is an error, the same for every package.

    >>> answered(403, "Access Denied")
    'the server answered 403 Forbidden: Access Denied'
    """
    phrase = next((each.phrase for each in HTTPStatus if each == status), "")
    text = f"the server answered {status} {phrase}".rstrip()
    return f"{text}: {detail}" if detail else text


def refuses_conditions(url: str, key: str) -> StoreError:
    """Return the error for a server that refuses a conditional write whose condition holds."""
    return StoreError(
        "the server rejects conditional writes (If-Match) although the ETag matches, so writers "
        "on several machines can't exclude each other; nothing was stored. Write to another "
        "server",
        key=f"{url}/{key}",
    )


def not_writable(url: str) -> ReadOnlyError:
    """Return the error for a store that can't be written, such as on an HTTP server."""
    if url.startswith(("http://", "https://")):
        return ReadOnlyError(
            "a store that is reached by HTTP can't be written; write to the object store or the "
            f"directory behind it{_s3_hint(url)}",
            key=url,
        )
    return ReadOnlyError("this store was opened for reading only", key=url)
