"""Default credentials of Google Cloud and Azure, from obstore's providers of them.

A provider of obstore has the credentials of this machine, which tasks must not carry to others, and
which can't always be pickled. So stores have `DefaultCredentials` instead, which makes the provider
where it is used.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from zarrdask.errors import StoreError
from zarrdask.runtime.packages import load_module

_GOOGLE_SCOPE = "https://www.googleapis.com/auth/devstorage.read_write"


@dataclass(frozen=True)
class DefaultCredentials:
    """A credential provider for obstore: the default credentials of the machine that it is on.

    Attributes
    ----------
    cloud : {"google", "azure"}
        Whose credentials they are.
    """

    cloud: Literal["google", "azure"]

    def __call__(self) -> Any:
        """Return a token that has not expired, with the time when it does.

        Raises
        ------
        StoreError
            If there are no credentials on this machine.
        """
        provider = google_provider() if self.cloud == "google" else azure_provider()
        if provider is None:
            raise StoreError(
                "no credentials of Google Cloud were found on this machine; pass them in "
                "storage_options"
            )
        return provider()


@cache
def google_provider() -> Callable[[], Any] | None:
    """Return obstore's provider of the default credentials of google-auth; None if there are none.

    Raises
    ------
    ModuleNotFoundError
        If google-auth is not installed.
    """
    provider = load_module("obstore.auth.google").GoogleCredentialProvider
    try:
        # Obstore's own call names no scope, without which the account of a service gets no token.
        credentials, _ = load_module("google.auth").default(scopes=[_GOOGLE_SCOPE])
    except load_module("google.auth.exceptions").GoogleAuthError:
        return None
    return provider(credentials)  # type: ignore[no-any-return]


@cache
def azure_provider() -> Callable[[], Any]:
    """Return obstore's provider of the default credentials of azure-identity.

    Raises
    ------
    ModuleNotFoundError
        If azure-identity is not installed.
    """
    return load_module("obstore.auth.azure").AzureCredentialProvider()  # type: ignore[no-any-return]
