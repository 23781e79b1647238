"""What depends on the Dask client that is current."""

import sys
from typing import Any

from dask.base import get_scheduler

from zarrdask.errors import StoreError
from zarrdask.storage.base import Store


def current_client() -> Any:
    """Return the Dask client that computes what is computed now, or None if there is none."""
    if "distributed" not in sys.modules:
        return None
    from distributed import default_client

    try:
        client = default_client()
    except ValueError:
        return None
    # The user may have chosen another scheduler.
    return client if getattr(get_scheduler(), "__self__", None) == client else None


def check_visible(store: Store) -> None:
    """Check that the workers of the current client can see a store.

    Raises
    ------
    StoreError
        If it is in the memory of this process, and workers are elsewhere.
    """
    client = None if store.shared else current_client()
    if client is None:
        return
    workers: list[str] = client.scheduler_info(n_workers=-1)["workers"]
    remote = [address for address in workers if not address.startswith("inproc://")]
    if remote:
        raise StoreError(
            "this store is in the memory of one process; the workers of the Dask cluster can't "
            "see it. Use a local directory or a URL",
            key=store.url,
            found=f"workers at {remote[0]}{' and others' if len(remote) > 1 else ''}",
        )
