"""Default credentials of Google Cloud and Azure, as the packages of these clouds find them."""

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any

from zarrdask.errors import StoreError, censored
from zarrdask.runtime.packages import load_module

_GOOGLE_SCOPE = "https://www.googleapis.com/auth/devstorage.read_write"
_AZURE_SCOPE = "https://storage.azure.com/.default"


@dataclass(frozen=True)
class GoogleCredentials:
    """A credential provider for obstore: the application default credentials of google-auth.

    It looks for them on the machine that it is on, also after it was pickled.
    """

    def __call__(self) -> dict[str, Any]:
        """Return a token that has not expired.

        Raises
        ------
        StoreError
            If google-auth gets none.
        """
        credentials = google_credentials()
        if credentials is None:
            raise StoreError("no credentials of Google Cloud were found on this machine")
        transport = load_module("google.auth.transport.requests")
        try:
            credentials.refresh(transport.Request())
        except load_module("google.auth.exceptions").GoogleAuthError as error:
            raise StoreError(str(error)) from censored(error)
        expires = credentials.expiry  # in UTC, without saying so
        return {
            "token": credentials.token,
            "expires_at": None if expires is None else expires.replace(tzinfo=UTC),
        }


@cache
def google_credentials() -> Any:
    """Return the default credentials of google-auth; None if there are none.

    Raises
    ------
    ModuleNotFoundError
        If google-auth is not installed.
    """
    auth = load_module("google.auth")
    load_module("google.auth.transport.requests")
    try:
        credentials, _ = auth.default(scopes=[_GOOGLE_SCOPE])
    except load_module("google.auth.exceptions").GoogleAuthError:
        return None
    return credentials


@dataclass(frozen=True)
class AzureCredentials:
    """A credential provider for obstore: the default credentials of azure-identity.

    It looks for them on the machine that it is on, also after it was pickled.
    """

    def __call__(self) -> dict[str, Any]:
        """Return a token that has not expired.

        Raises
        ------
        StoreError
            If azure-identity gets none.
        """
        try:
            token = azure_credentials().get_token(_AZURE_SCOPE)
        except load_module("azure.core.exceptions").AzureError as error:
            raise StoreError(str(error)) from censored(error)
        return {
            "token": token.token,
            "expires_at": datetime.fromtimestamp(token.expires_on, UTC),
        }


@cache
def azure_credentials() -> Any:
    """Return the default credentials of azure-identity.

    Raises
    ------
    ModuleNotFoundError
        If azure-identity is not installed.
    """
    return load_module("azure.identity").DefaultAzureCredential()
