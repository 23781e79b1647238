"""Open repositories of icechunk by URL, for reading: ``icechunk://tag.v1::s3://bucket/repository``.

Only this module imports icechunk, when such a URL is opened.
"""

import os
import re
from typing import Any
from urllib.parse import urlsplit

from zarrdask.errors import StoreError, UnsupportedError, one_of
from zarrdask.runtime.packages import load_module
from zarrdask.storage.adapters.icechunk import IcechunkStore
from zarrdask.storage.file_calls import path_of_url
from zarrdask.storage.remote.obstore.obstore_errors import NoCounterpartError
from zarrdask.storage.remote.obstore.obstore_options import S3

#: The arguments of `icechunk.s3_storage`, by the settings of obstore that mean the same.
_S3_ARGUMENTS = {
    "skip_signature": "anonymous",
    "access_key_id": "access_key_id",
    "secret_access_key": "secret_access_key",
    "session_token": "session_token",
    "endpoint": "endpoint_url",
    "region": "region",
    "request_payer": "requester_pays",
}
_EXAMPLE = "icechunk::s3://bucket/repository, or icechunk://tag.v1::s3://bucket/repository"


def open_repository(url: str, storage_options: dict[str, Any] | None) -> IcechunkStore:
    """Return the store of a read-only session at the end of a branch, a tag or a snapshot.

    Raises
    ------
    StoreError
        If there is no repository at the URL, or it has no such version.
    UnsupportedError
        If icechunk is not installed, or can't open a URL of this scheme with these options.
    """
    version, chained, location = url.partition("::")
    if not chained or not location:
        raise StoreError(
            "this URL does not name a repository of icechunk", key=url, expected=_EXAMPLE
        )
    session_of = _version(version.partition("://")[2].strip("/"))
    try:
        icechunk = load_module("icechunk")
    except ModuleNotFoundError as error:
        raise UnsupportedError(
            "a URL of icechunk needs the package icechunk: pip install icechunk", key=url
        ) from error
    try:
        repository = icechunk.Repository.open(_storage(icechunk, location, storage_options or {}))
        session = repository.readonly_session(**session_of)
    except icechunk.IcechunkError as error:
        text = str(error).strip().partition("\n")[0]
        raise StoreError(f"icechunk can't open this repository: {text}", key=url) from error
    return IcechunkStore(session.store)


def _version(text: str) -> dict[str, str]:
    """Return the version of a repository as the arguments of a session.

    >>> _version(""), _version("tag.v1"), _version("1CECHNKREP0F1RSTCMT0")
    ({'branch': 'main'}, {'tag': 'v1'}, {'snapshot_id': '1CECHNKREP0F1RSTCMT0'})
    """
    kind, point, name = text.partition(".")
    if not text or not point:
        return {"snapshot_id": text} if text else {"branch": "main"}
    return {one_of(kind, "version", ("branch", "tag")): name}


def _storage(icechunk: Any, location: str, options: dict[str, Any]) -> Any:
    """Return the object of icechunk for the location of a repository."""
    scheme = location.partition("://")[0] if "://" in location else "file"
    parts = urlsplit(location)
    if scheme in ("file", "local"):
        _check_no_options(location, options)
        path = path_of_url(re.sub("^(file|local)://", "", location))
        return icechunk.local_filesystem_storage(os.path.abspath(os.path.expanduser(path)))
    bucket = {"bucket": parts.netloc, "prefix": parts.path.strip("/") or None}
    if scheme in ("s3", "s3a"):
        return icechunk.s3_storage(**bucket, **_s3_arguments(location, options))
    if scheme in ("gs", "gcs"):
        is_anonymous = "anon" in (options.get("token"), *(n for n, v in options.items() if v))
        _check_no_options(location, options, ("anon", "token"))
        return icechunk.gcs_storage(**bucket, anonymous=is_anonymous or None)
    if scheme in ("http", "https"):
        _check_no_options(location, options)
        return icechunk.http_storage(location)
    raise UnsupportedError(
        "repositories of icechunk are opened by local paths and URLs of s3, gs and http only; pass "
        "the store of a session instead",
        key=location,
    )


def _s3_arguments(location: str, options: dict[str, Any]) -> dict[str, Any]:
    try:
        config = S3.settings(location, options).config
    except NoCounterpartError as error:
        raise _no_counterpart(location, error.found) from error
    _check_no_options(location, config, _S3_ARGUMENTS)
    arguments = {_S3_ARGUMENTS[name]: value for name, value in config.items()}
    endpoint = str(arguments.get("endpoint_url", ""))
    if endpoint:
        arguments |= {"force_path_style": True, "allow_http": endpoint.startswith("http://")}
    return arguments


def _check_no_options(location: str, options: Any, accepted: Any = ()) -> None:
    others = sorted(set(options) - set(accepted))
    if others:
        raise _no_counterpart(location, f"the options {', '.join(others)} in storage_options")


def _no_counterpart(location: str, found: Any) -> UnsupportedError:
    return UnsupportedError(
        "icechunk has no counterpart for this; remove it, or pass the store of a session instead "
        "of a URL",
        key=location,
        found=found,
    )
