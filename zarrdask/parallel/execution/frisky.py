"""Frisky, a scheduler that can replace Dask's: its client, and its address."""

import sys
from collections.abc import Callable
from typing import Any

from dask.base import get_scheduler


def frisky_client(get: Callable[..., Any] | None = None) -> Any:
    """Return the client of Frisky whose function computes graphs, the current one by default."""
    if "frisky" not in sys.modules:
        return None
    from frisky import Client

    get = get or get_scheduler()
    client = getattr(get, "__self__", None)
    if client is None and getattr(get, "__module__", None) == "frisky._dask_config":
        # Its function that chooses the client of the calling thread; it has no public name.
        from frisky._dask_config import current_client

        client = current_client()
    return client if isinstance(client, Client) else None


def frisky_address() -> str | None:
    """Return the address of the scheduler of the current client of Frisky, if there is one."""
    client = frisky_client()
    return None if client is None else str(client.scheduler_address)
