"""Whether the tasks of a scheduler see a store."""

from zarrdask.graph.run import Workers, run
from zarrdask.storage.base import Store


def check_reached(store: Store, on: Workers) -> None:
    """Check that tasks see a store, before they take what they can't reach for damaged.

    Raises
    ------
    StoreError
        If it is in the memory of this process, and tasks run in others.
    """
    if not store.shared and on.executor is not None:
        run(find_store, [store], scheduler=on)


def find_store(store: Store) -> None:
    """Ask a store for something: the task."""
    store.get("zarr.json")
