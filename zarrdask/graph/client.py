"""What depends on the Dask client that is current."""

import sys

from dask.base import get_scheduler

from zarrdask.errors import StoreError
from zarrdask.storage.base import Store


def check_visible(store: Store) -> None:
    """Check that the workers of the current client can see a store.

    Raises
    ------
    StoreError
        If it is in the memory of this process, and workers are elsewhere.
    """
    if store.shared or "distributed" not in sys.modules:
        return
    from distributed import default_client

    try:
        client = default_client()
    except ValueError:
        return
    if getattr(get_scheduler(), "__self__", None) != client:
        return  # the user chose another scheduler
    workers: list[str] = client.scheduler_info(n_workers=-1)["workers"]
    remote = [address for address in workers if not address.startswith("inproc://")]
    if remote:
        raise StoreError(
            "this store is in the memory of one process; the workers of the Dask cluster can't "
            "see it. Use a local directory or a URL",
            key=store.url,
            found=f"workers at {remote[0]}{' and others' if len(remote) > 1 else ''}",
        )
