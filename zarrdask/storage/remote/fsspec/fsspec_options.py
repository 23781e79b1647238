"""Options of the file systems of fsspec: those that this package sets, and those that are wrong."""

import re
from collections.abc import Mapping
from contextlib import suppress
from functools import cache, partial
from importlib import import_module
from inspect import signature
from typing import Any

import fsspec
from fsspec.config import conf

from zarrdask import config
from zarrdask.display.words import did_you_mean
from zarrdask.errors import StoreError
from zarrdask.storage.refusals import check_anonymous, option_hint

#: Protocols of file systems that repeat requests, and have no option not to.
_HAVE_RETRIES = {"gs", "gcs", "abfs", "az"}
#: Protocols of stores with requests that need not be signed.
_HAVE_ANONYMOUS = {"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss"}
_AZURE = {"az", "abfs", "abfss"}
#: The parts of a connection string of Azure, by option.
_OF_CONNECTION = {
    "account_name": "AccountName",
    "account_key": "AccountKey",
    "sas_token": "SharedAccessSignature",
}
#: Options that belong to the client of S3, by the names by which users pass them.
_OF_CLIENT = {
    **dict.fromkeys(("region", "region_name", "aws_region", "default_region"), "region_name"),
    "verify": "verify",
}
#: The setting of botocore for requests that are not repeated. botocore would add the mode.
NO_RETRIES = {"total_max_attempts": 1, "mode": "legacy"}


def with_client(url: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return options in which the client of S3 has as many connections as there are requests.

    By default it has 10. It does not repeat requests, which `zarrdask.storage.remote.retry` does.
    """
    if not url.startswith(("s3://", "s3a://")):
        return options
    settings = {"max_pool_connections": config.get("requests"), "retries": {**NO_RETRIES}}
    return {**options, "config_kwargs": settings | options.get("config_kwargs", {})}


def with_anonymous(url: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return options in which a package finds whether requests are anonymous.

    Raises
    ------
    StoreError
        If the option ``anon`` is not a bool.
    """
    protocol = url.partition("://")[0]
    if protocol not in _HAVE_ANONYMOUS:
        return options
    configured = {**conf.get(protocol, {}), **options}
    check_anonymous(configured, url)
    if protocol not in ("gs", "gcs"):
        return options
    # gcsfs ignores this option, and has another one.
    others = {name: value for name, value in options.items() if name != "anon"}
    return {**others, "token": "anon"} if configured.get("anon") else others


def with_endpoint(url: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return options in which adlfs finds a server that is not named as the account is.

    It has no such option: it takes a connection string, or a host that has certificates.
    """
    endpoint = options.get("endpoint_url")
    if not endpoint or url.partition("://")[0] not in _AZURE:
        return options
    others = {name: value for name, value in options.items() if name != "endpoint_url"}
    keys = {name: options[option] for option, name in _OF_CONNECTION.items() if options.get(option)}
    if "AccountKey" not in keys and "SharedAccessSignature" not in keys:
        scheme, _, host = str(endpoint).partition("://")
        if scheme == "https":
            return {**others, "account_host": host}
    parts = {"BlobEndpoint": endpoint, **keys}
    text = ";".join(f"{name}={value}" for name, value in parts.items())
    return {**others, "connection_string": text}


def without_retries(fs: Any) -> Any:
    """Return a file system that repeats no requests, as `zarrdask.storage.remote.retry` does.

    For gcsfs and adlfs it is a new one, as fsspec caches file systems and the passed one may be in
    use elsewhere.
    """
    return fs if _HAVE_RETRIES.isdisjoint(protocols(fs)) else _other_without_retries(fs)


def prepared(fs: Any) -> Any:
    """Return a file system that sends each request once: `retry` repeats them.

    One for HTTP does not send the headers of the user to other hosts.
    """
    fs = without_retries(fs)
    if "http" in protocols(innermost(fs)) and hasattr(innermost(fs), "client_kwargs"):
        # Imported on demand, as it needs the packages of this file system.
        name = "zarrdask.storage.remote.fsspec.fsspec_redirects"
        import_module(name).keep_headers(innermost(fs))
    if is_sent_once(fs):
        fs.retries = 1  # s3fs's own loop around botocore's
    return fs


def is_sent_once(fs: Any) -> bool:
    """Whether the client of S3 of a file system sends each request once."""
    return bool(getattr(fs, "config_kwargs", {}).get("retries") == NO_RETRIES)


@cache
def _other_without_retries(fs: Any) -> Any:
    own = type(fs)(*fs.storage_args, **fs.storage_options, skip_instance_cache=True)
    own._fs_token_ = fs._fs_token  # they are equal, also as a part of the names of tasks
    try:
        if hasattr(own, "service_client"):  # adlfs, through Azure's package
            own.service_client._config.retry_policy.total_retries = 0
        else:  # gcsfs decorates the method
            own._request = partial(type(own)._request.__wrapped__, own)
    except AttributeError:
        return fs  # a version that is made in another way
    return own


def unknown_option(error: BaseException, options: Mapping[str, Any]) -> str | None:
    """Return the option that a file system does not have, from its error, else None.

    Some file systems pass options on, so that the error is raised by the first request.
    """
    unexpected = re.search(r"unexpected keyword argument '(\w+)'", str(error))
    if unexpected is None or not isinstance(error, TypeError) or unexpected[1] not in options:
        return None
    return unexpected[1]


def not_an_option(name: str, url: str, kind: type) -> StoreError:
    """Return the error for an option that a class of file systems does not have."""
    options = {
        option
        for each in kind.__mro__
        if each is not object and "__init__" in vars(each)
        for option in signature(vars(each)["__init__"]).parameters
    }
    nested = _OF_CLIENT.get(name) if "client_kwargs" in options else None
    hint = f"; pass client_kwargs={{{nested!r}: ...}}" if nested else ""
    hint = (
        option_hint(name, options)
        or hint
        or did_you_mean(name, options - {"self", "args", "kwargs"})
    )
    return StoreError(f"an unknown option in storage_options{hint}", key=url, found=name)


def protocols(fs: fsspec.AbstractFileSystem) -> tuple[str, ...]:
    """Return the names by which URLs refer to a file system."""
    return (fs.protocol,) if isinstance(fs.protocol, str) else tuple(fs.protocol)


def innermost(fs: Any) -> Any:
    """Return the file system that a cache, or a directory, of another file system is made of."""
    while (inner := getattr(fs, "fs", None)) is not None:
        fs = inner
    return fs


def endpoint_of(fs: Any) -> str:
    """Return the URL of the server, or of the account of Azure, that a file system uses.

    It is "" for servers that the URL names, and where it is not known.
    """
    client = innermost(fs)
    with suppress(Exception):  # such as settings that are wrong, which the request reports
        if "s3" in protocols(client):
            return str(client.s3.meta.endpoint_url)  # botocore finds it in many places
        if "gs" in protocols(client):
            return str(client._location)
        if "az" in protocols(client):
            return str(client.service_client.url)
    return ""


def is_reference(fs: Any) -> bool:
    """Whether a file system is one of references, or is a cache, a directory or an archive in one.

    File systems and open files name what they are made of by one of four attributes.
    """
    if "ReferenceFileSystem" in {kind.__name__ for kind in type(fs).__mro__}:
        return True
    try:
        # A cache returns the attributes of the file system below it as its own.
        attributes = object.__getattribute__(fs, "__dict__")
    except AttributeError:
        return False
    inner = (attributes.get(name) for name in ("fs", "sync_fs", "of", "fo"))
    return any(is_reference(each) for each in inner)
