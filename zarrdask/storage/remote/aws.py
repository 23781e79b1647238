"""The settings of S3 in the environment and in ``~/.aws``, read as botocore reads them."""

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from zarrdask.errors import StoreError, censored
from zarrdask.runtime.packages import load_module
from zarrdask.storage.remote.obstore.obstore_errors import no_counterpart

_LOG = logging.getLogger(__name__)

#: The files in which profiles are, and the variables by which they are elsewhere.
_FILES = {
    "AWS_CONFIG_FILE": "~/.aws/config",
    "AWS_SHARED_CREDENTIALS_FILE": "~/.aws/credentials",
}
_PROFILE_VARIABLES = ("AWS_PROFILE", "AWS_DEFAULT_PROFILE")
_REGION_VARIABLES = ("AWS_REGION", "AWS_DEFAULT_REGION")
_ENDPOINT_VARIABLES = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
#: Settings that only botocore interprets: variables and settings of profiles that choose a server,
#: and those that name certificates.
_SERVER_VARIABLES = (
    "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
    "AWS_USE_DUALSTACK_ENDPOINT",
    "AWS_USE_FIPS_ENDPOINT",
)
_SERVER_SETTINGS = (
    "ignore_configured_endpoint_urls",
    "s3",
    "use_dualstack_endpoint",
    "use_fips_endpoint",
)
_CERTIFICATES = ("AWS_CA_BUNDLE", "ca_bundle")
#: The time for which the answer of botocore is cached: it renews credentials earlier before they
#: expire.
ASK_AGAIN = timedelta(minutes=10)
_LOOK_UP_SECONDS = 5.0


@dataclass(frozen=True)
class ProfileCredentials:
    """A credential provider for obstore: credentials of a profile, which botocore renews.

    It reads the files of the machine that it is on, also after it was pickled.

    Parameters
    ----------
    profile : str, optional
        The name of the profile. By default, the one that botocore uses.
    """

    profile: str | None = None

    def __call__(self) -> dict[str, Any]:
        """Return credentials, as obstore wants them.

        Raises
        ------
        StoreError
            If there are none, or they can't be renewed.
        """
        try:
            credentials = credentials_of(self.profile)
            frozen = None if credentials is None else credentials.get_frozen_credentials()
        except _botocore_errors() as error:
            # Such as a session of the single sign-on that has expired.
            raise StoreError(str(error), key=self.profile) from censored(error)
        if frozen is None:
            raise StoreError(
                "no credentials were found, neither in storage_options nor in the environment or "
                "the profile; if the bucket is public, pass storage_options={'anon': True}",
                key=self.profile,
            )
        return {
            "access_key_id": frozen.access_key,
            "secret_access_key": frozen.secret_key,
            "token": frozen.token,
            "expires_at": datetime.now(UTC) + ASK_AGAIN,
        }


def complete(bucket: str, config: Mapping[str, Any], profile: str | None) -> dict[str, Any]:
    """Return the settings of a bucket, completed by the environment and a profile of the user.

    Parameters
    ----------
    bucket : str
    config : dict
        The settings of the user, by obstore's names.
    profile : str, optional
        The profile that the user chose.

    Raises
    ------
    NoCounterpartError
        If there is a setting that only botocore interprets.
    StoreError
        If the profile can't be used.
    """
    session = _session_or_none(profile)
    settings = {} if session is None else _profile_settings(session)
    completed = dict(config)
    endpoint = config.get("endpoint")
    if not endpoint:
        _check_counterparts(bucket, _SERVER_VARIABLES, _SERVER_SETTINGS, settings)
        endpoint = _environment(_ENDPOINT_VARIABLES) or _endpoint(settings)
    if not str(endpoint).startswith("http://"):
        _check_counterparts(bucket, _CERTIFICATES, _CERTIFICATES, settings)
    if endpoint:
        completed["endpoint"] = endpoint
    if "region" not in config:
        region = _environment(_REGION_VARIABLES) or settings.get("region")
        if not endpoint:
            region = bucket_region(bucket, region or "us-east-1") or region
        if region:
            completed["region"] = region
    if str(completed.get("region")).startswith("cn-") and not endpoint:
        raise no_counterpart("regions in China", f"s3://{bucket}")
    has_keys = "access_key_id" in config or (not profile and "AWS_ACCESS_KEY_ID" in os.environ)
    if session is not None and not has_keys and "skip_signature" not in config:
        provider = ProfileCredentials(profile)
        provider()  # so that it fails here, if at all
        completed["credential_provider"] = provider
    return completed


def _check_counterparts(
    bucket: str, variables: Sequence[str], names: Sequence[str], settings: Mapping[str, Any]
) -> None:
    """Check that none of these variables, or settings of the profile, is used."""
    used = [f"the variable {name}" for name in variables if _is_on(os.environ.get(name))]
    used += [f"{name!r} in ~/.aws/config" for name in names if _is_on(settings.get(name))]
    if used:
        raise no_counterpart(used[0], f"s3://{bucket}")


def _is_on(value: Any) -> bool:
    return str(value or "").lower() not in ("", "false")


def _environment(names: tuple[str, ...]) -> str | None:
    """Return the first of several environment variables that is set."""
    return next(filter(None, map(os.environ.get, names)), None)


def _session_or_none(profile: str | None) -> Any:
    """Return the session of botocore for a profile; None if there is nothing that it would read."""
    names = _environment(_PROFILE_VARIABLES) if profile is None else profile
    paths = (os.environ.get(variable, path) for variable, path in _FILES.items())
    if not names and not any(os.path.exists(os.path.expanduser(path)) for path in paths):
        return None
    try:
        return session_of(profile)
    except ModuleNotFoundError as error:
        if names:
            raise StoreError(
                "profiles of AWS are read by botocore, which is not installed; install "
                "zarrdask[s3], or pass the credentials in storage_options",
                key=names,
            ) from error
        _LOG.info("~/.aws is not read, as botocore is not installed; install zarrdask[s3]")
        return None


@cache
def session_of(profile: str | None) -> Any:
    """Return botocore's session of a profile, by default the one in use."""
    return load_module("botocore.session").Session(profile=profile)


@cache
def credentials_of(profile: str | None) -> Any:
    """Return botocore's credentials of a profile; None if there are none."""
    return session_of(profile).get_credentials()


def _botocore_errors() -> tuple[type[Exception], ...]:
    module = load_module("botocore.exceptions")
    return module.BotoCoreError, module.ClientError


def _profile_settings(session: Any) -> dict[str, Any]:
    """Return the settings of a profile; its section of services is ``services``."""
    try:
        settings = dict(session.get_scoped_config())
    except _botocore_errors() as error:
        # Such as one that does not exist.
        raise StoreError(str(error), key=session.profile) from censored(error)
    services = session.full_config.get("services", {}).get(settings.get("services"), {})
    return settings | {"services": services}


def _endpoint(settings: Mapping[str, Any]) -> str | None:
    """Return the URL of the server that a profile names, first that for S3 only."""
    of_s3 = settings.get("services", {}).get("s3", {})
    endpoint: str | None = of_s3.get("endpoint_url") or settings.get("endpoint_url")
    return endpoint


def bucket_region(bucket: str, region: str) -> str | None:
    """Return the region of a bucket as `region_of`; None if its server can't be reached."""
    try:
        return region_of(bucket, region)
    except (OSError, HTTPException) as error:
        _LOG.info("the region of the bucket %r could not be looked up: %s", bucket, error)
        return None


class _NotFollowed(HTTPRedirectHandler):
    """Redirects are answers: they name the region, too."""

    def redirect_request(self, *_: Any) -> None:
        """Follow none."""


@cache
def region_of(bucket: str, region: str) -> str | None:
    """Return the region of a bucket, by a request to any region, which is sent once."""
    request = Request(f"https://s3.{region}.amazonaws.com/{bucket}", method="HEAD")
    try:
        with build_opener(_NotFollowed).open(request, timeout=_LOOK_UP_SECONDS) as answer:
            headers = answer.headers
    except HTTPError as error:
        headers = error.headers  # each answer names it, also one that refuses access
        error.close()
    found: str | None = headers.get("x-amz-bucket-region")
    return found
