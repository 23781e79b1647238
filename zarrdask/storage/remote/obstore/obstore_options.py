"""Options of fsspec -> settings of obstore."""

import json
import os
import sys
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, NamedTuple

from zarrdask.runtime.packages import load_module
from zarrdask.storage.refusals import check_anonymous, option_hint
from zarrdask.storage.remote.obstore.obstore_errors import no_counterpart

#: How long one request may take, with its body: long enough for a part of a large value.
REQUEST_LIMIT = timedelta(minutes=5)


class Settings(NamedTuple):
    """The arguments of an object of obstore.

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
        """Return keyword arguments. Requests are repeated by `retry` alone."""
        once = {"max_retries": 0, "retry_timeout": REQUEST_LIMIT}
        return {**self.config, "client_options": self.client, "retry_config": once}


#: Headers without secrets, and those that obstore does not send to another host after a redirect.
_KEPT_HEADERS = frozenset(
    {
        *("accept", "accept-language", "referer", "user-agent"),
        *("authorization", "cookie", "proxy-authorization"),
    }
)
#: Adds an option to the settings, and returns whether obstore has a counterpart for its value.
_Translate = Callable[[Settings, Any], bool]


class Options(NamedTuple):
    """The options of a kind of object stores, and the names by which fsspec's settings have it."""

    protocols: tuple[str, ...]
    translations: Mapping[str, _Translate]

    def settings(self, url: str, storage_options: Mapping[str, Any]) -> Settings:
        """Return the settings for options of the user; None is as absent.

        Raises
        ------
        NoCounterpartError
            If obstore has no counterpart for one of them.
        StoreError
            If the value of one is wrong.
        """
        settings = Settings({}, {"timeout": REQUEST_LIMIT})
        options = {**self._configured(), **storage_options}
        if "anon" in self.translations:
            check_anonymous(options, url)
        for name, value in _flat(options).items():
            translate = self.translations.get(name, _unknown)
            if value is not None and not translate(settings, value):
                hint = option_hint(name, self.translations)
                raise no_counterpart(f"the option {name!r} in storage_options{hint}", url)
        return settings

    def _configured(self) -> dict[str, Any]:
        """Return the options in fsspec's own files, and in the environment."""
        folder = os.path.expanduser("~/.config/fsspec")
        is_used = "fsspec.config" in sys.modules or os.path.isdir(folder)
        if not is_used and not any(name.startswith("FSSPEC_") for name in os.environ):
            return {}  # it takes long to import
        configured = load_module("fsspec.config").conf
        options: dict[str, Any] = {}
        for protocol in self.protocols:
            options |= configured.get(protocol, {})
        return options


def _flat(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with the client's options on the same level, under names with a period."""
    flat: dict[str, Any] = {}
    for name, value in options.items():
        if name in ("client_kwargs", "config_kwargs") and isinstance(value, Mapping):
            flat |= {f"{name}.{inner}": each for inner, each in value.items()}
        else:
            flat[name] = value
    return flat


def _as(name: str) -> _Translate:
    """Return a translation to a setting of another name; False is as absent."""

    def translate(settings: Settings, value: Any) -> bool:
        if value is not False:
            settings.config[name] = value
        return True

    return translate


def _off(_settings: Settings, value: Any) -> bool:
    """Translate an option that has no counterpart, unless it is switched off."""
    return not value


def _unknown(_settings: Settings, _value: Any) -> bool:
    """Translate no option: it may be mistyped, or one that only fsspec has."""
    return False


def _on(_settings: Settings, value: Any) -> bool:
    """Translate an option whose absence has no counterpart."""
    return bool(value)


def _signature(_settings: Settings, value: Any) -> bool:
    return isinstance(value, str) and value == "s3v4"


def _ignored(_settings: Settings, _value: Any) -> bool:
    """Translate an option that is not needed here."""
    return True


def _headers(settings: Settings, value: Any) -> bool:
    """Translate headers, except those that obstore would send to any host that it is sent to."""
    settings.client["default_headers"] = dict(value)
    return all(str(name).lower() in _KEPT_HEADERS for name in value)


def _verify(settings: Settings, value: Any) -> bool:
    """Translate whether certificates are checked; a file of certificates has no counterpart."""
    if value is False:
        settings.client["allow_invalid_certificates"] = True
    return isinstance(value, bool)


def _google_token(settings: Settings, value: Any) -> bool:
    if value == "anon":
        settings.config["skip_signature"] = True
    elif isinstance(value, Mapping):
        settings.config["service_account_key"] = json.dumps(value)
    elif isinstance(value, str) and os.path.isfile(value):
        settings.config["application_credentials"] = value
    else:
        return isinstance(value, str) and value == "google_default"  # as without a token
    return True


#: Options of fsspec's files and listings, neither of which is used.
_UNUSED = dict.fromkeys(
    (
        *("asynchronous", "block_size", "blocksize", "cache_options", "cache_regions"),
        *("cache_type", "default_block_size", "default_cache_type", "default_fill_cache"),
        *("listings_expiry_time", "loop", "max_concurrency", "max_paths", "same_scheme"),
        *("simple_links", "skip_instance_cache", "use_listings_cache"),
    ),
    _ignored,
)
S3 = Options(
    ("s3", "s3a"),
    {
        **_UNUSED,
        "anon": _as("skip_signature"),
        **dict.fromkeys(("key", "username"), _as("access_key_id")),
        **dict.fromkeys(("secret", "password"), _as("secret_access_key")),
        "token": _as("session_token"),
        "profile": _as("profile"),
        "endpoint_url": _as("endpoint"),
        "requester_pays": _as("request_payer"),
        **dict.fromkeys(("fixed_upload_size", "s3_additional_kwargs"), _off),
        "use_ssl": _on,
        "version_aware": _off,
        "client_kwargs.endpoint_url": _as("endpoint"),
        "client_kwargs.region_name": _as("region"),
        "client_kwargs.verify": _verify,
        "config_kwargs.max_pool_connections": _ignored,
        "config_kwargs.signature_version": _signature,
    },
)
GOOGLE = Options(
    ("gcs", "gs"),
    {
        **_UNUSED,
        "access": _ignored,
        "anon": _as("skip_signature"),
        "consistency": _ignored,
        "endpoint_url": _as("base_url"),
        "project": _ignored,
        **dict.fromkeys(("check_connection", "requester_pays", "session_kwargs"), _off),
        "token": _google_token,
        "version_aware": _off,
    },
)
AZURE = Options(
    ("abfs", "az", "abfss"),
    {
        **_UNUSED,
        "anon": _as("skip_signature"),
        "account_name": _as("account_name"),
        "account_key": _as("account_key"),
        "sas_token": _as("sas_key"),
        "tenant_id": _as("tenant_id"),
        "client_id": _as("client_id"),
        "client_secret": _as("client_secret"),
        "endpoint_url": _as("endpoint"),
        "version_aware": _off,
    },
)
HTTP = Options(
    ("http", "https"),
    {
        **_UNUSED,
        "client_kwargs.headers": _headers,
        "client_kwargs.trust_env": _on,
        "encoded": _off,
        "headers": _headers,
        "ssl": _verify,
    },
)
