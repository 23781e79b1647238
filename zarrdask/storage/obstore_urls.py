"""URLs and options of fsspec -> objects of obstore, so that either can read what a URL names."""

import json
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import obstore
import obstore.store
from obstore.exceptions import BaseError

from zarrdask.errors import StoreError
from zarrdask.storage.base import Store
from zarrdask.storage.local import LocalStore
from zarrdask.storage.obstore import ObstoreStore
from zarrdask.storage.obstore_objects import kind_of

#: How long one request may take, with its body: long enough for a part of a large value.
_REQUEST_LIMIT = timedelta(minutes=5)


def open_url(url: str, storage_options: Mapping[str, Any] | None = None) -> ObstoreStore:
    """Return the store at a URL ``s3://``, ``gs://``, ``az://`` or ``http(s)://``.

    Parameters
    ----------
    url : str
        As for fsspec.
    storage_options : dict, optional
        Those options of fsspec that obstore has a counterpart for; None and False are as absent.

    Raises
    ------
    StoreError
        If there is another option, or obstore refuses one.
    """
    scheme = url.partition("://")[0]
    build = _BUILDERS[scheme]
    settings = _Settings({}, {"timeout": _REQUEST_LIMIT})
    for name, value in _flat(storage_options or {}).items():
        translate = build.options.get(name)
        if translate is None:
            raise StoreError(
                "obstore has no counterpart for this option in storage_options; remove it, set "
                'zarrdask.remote to "fsspec", or pass an object of obstore instead of a URL',
                key=url,
                found=name,
                expected=", ".join(sorted(build.options)),
            )
        if value is not None and value is not False:
            translate(settings, value)
    try:
        return build.open(url, settings)
    except (BaseError, ValueError, TypeError) as error:
        text = str(error).partition("\n\n")[0]
        raise StoreError(f"obstore can't open this URL: {text}", key=url) from error


def _flat(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with those of the client on one level, by names with a period."""
    flat: dict[str, Any] = {}
    for name, value in options.items():
        if name == "client_kwargs" and isinstance(value, Mapping):
            flat |= {f"client_kwargs.{inner}": each for inner, each in value.items()}
        else:
            flat[name] = value
    return flat


class _Settings(NamedTuple):
    """What an object of obstore is made with.

    Attributes
    ----------
    config : dict
        Settings of the object store.
    client : dict
        Settings of the HTTP client.
    """

    config: dict[str, Any]
    client: dict[str, Any]

    def arguments(self) -> dict[str, Any]:
        """Return keyword arguments. Requests are repeated by `zarrdask.storage.retry` alone."""
        once = {"max_retries": 0, "retry_timeout": _REQUEST_LIMIT}
        return {**self.config, "client_options": self.client, "retry_config": once}


_Translate = Callable[[_Settings, Any], None]


def _as(name: str) -> _Translate:
    """Return a translation to a setting of another name."""

    def translate(settings: _Settings, value: Any) -> None:
        settings.config[name] = value

    return translate


def _endpoint(name: str) -> _Translate:
    def translate(settings: _Settings, value: Any) -> None:
        settings.config[name] = value
        if str(value).startswith("http://"):
            settings.client["allow_http"] = True

    return translate


def _headers(settings: _Settings, value: Any) -> None:
    settings.client["default_headers"] = dict(value)


def _google_token(settings: _Settings, value: Any) -> None:
    if value == "anon":
        settings.config["skip_signature"] = True
    elif isinstance(value, Mapping):
        settings.config["service_account_key"] = json.dumps(value)
    elif value != "google_default":  # what obstore looks for of itself
        settings.config["application_credentials"] = value


class _Builder(NamedTuple):
    """How the URLs of one object store are opened, and which options they take."""

    open: Callable[[str, _Settings], ObstoreStore]
    options: Mapping[str, _Translate]


def _open_s3(url: str, settings: _Settings) -> ObstoreStore:
    bucket, _, prefix = url.partition("://")[2].partition("/")
    return ObstoreStore(obstore.store.S3Store(bucket, **settings.arguments()), prefix)


def _open_google(url: str, settings: _Settings) -> ObstoreStore:
    bucket, _, prefix = url.partition("://")[2].partition("/")
    return ObstoreStore(obstore.store.GCSStore(bucket, **settings.arguments()), prefix)


def _open_azure(url: str, settings: _Settings) -> ObstoreStore:
    container, _, prefix = url.partition("://")[2].partition("/")
    container, at, host = container.partition("@")
    if at:
        settings.config.setdefault("account_name", host.partition(".")[0])
    return ObstoreStore(obstore.store.AzureStore(container, **settings.arguments()), prefix)


def _open_http(url: str, settings: _Settings) -> ObstoreStore:
    parts = urlsplit(url)
    if parts.query or parts.fragment:
        raise ValueError('a URL with a query is opened with zarrdask.remote = "fsspec" only')
    settings.client["allow_http"] = parts.scheme == "http"
    return ObstoreStore(obstore.store.HTTPStore(url.rstrip("/"), **settings.arguments()))


_S3 = _Builder(
    _open_s3,
    {
        "anon": _as("skip_signature"),
        "key": _as("access_key_id"),
        "secret": _as("secret_access_key"),
        "token": _as("session_token"),
        "endpoint_url": _endpoint("endpoint"),
        "requester_pays": _as("request_payer"),
        "client_kwargs.endpoint_url": _endpoint("endpoint"),
        "client_kwargs.region_name": _as("region"),
    },
)
_GOOGLE = _Builder(
    _open_google,
    {
        "anon": _as("skip_signature"),
        "token": _google_token,
        "endpoint_url": _endpoint("base_url"),
    },
)
_AZURE = _Builder(
    _open_azure,
    {
        "anon": _as("skip_signature"),
        "account_name": _as("account_name"),
        "account_key": _as("account_key"),
        "sas_token": _as("sas_key"),
        "tenant_id": _as("tenant_id"),
        "client_id": _as("client_id"),
        "client_secret": _as("client_secret"),
        "endpoint_url": _endpoint("endpoint"),
    },
)
_HTTP = _Builder(_open_http, {"headers": _headers, "client_kwargs.headers": _headers})
_BUILDERS = {
    **dict.fromkeys(("s3", "s3a"), _S3),
    **dict.fromkeys(("gs", "gcs"), _GOOGLE),
    **dict.fromkeys(("az", "abfs", "abfss"), _AZURE),
    **dict.fromkeys(("http", "https"), _HTTP),
}


def adapt_object(store: Any) -> Store | None:
    """Return the store for an object of obstore; a local directory is read without obstore."""
    if not any(kind.__module__ == "obstore.store" for kind in type(store).__mro__):
        return None
    if kind_of(store) == "LocalStore":
        return LocalStore(str(store.prefix or "/"))
    return ObstoreStore(store)
