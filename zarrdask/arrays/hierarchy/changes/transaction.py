"""`transaction`: changes of nodes that begin, are committed, or are aborted together.

The values are stored between `begin` and `commit`. There is one loop, `transaction`; what its steps
do depends on the class of the change:

- `NewArray` and `LateArray` create an array: the documents come before the chunks, or after them;
- `ReplacedNode` writes a new node beside an old one, which it replaces at the end;
- `AppendedArray` makes an array longer: the chunks come first, then the shape;
- `ExistingArray` (of `zarrdask.parallel.graph.writing.target`) stores chunks of an array one by
  one;
- `ResumableChanges` are changes that are resumed together, as the blocks that are stored are
  recorded; a `Rewrite` (of `zarrdask.parallel.rewrite.rewrite_changes`) records its tasks;
- `zarrdask.xarray.writing.dataset_changes` has the changes of datasets.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from zarrdask.errors import ZarrdaskError


class Change(ABC):
    """A change of a stored node. Most of them pickle, as `commit` may run in a task.

    Whatever can be checked is checked before a change is made: nothing is written before `begin`.
    """

    @property
    @abstractmethod
    def location(self) -> str:
        """The location of the node, for messages."""

    def exclude(self) -> None:  # noqa: B027 - some changes create no nodes
        """Claim the nodes that are created, unless that was done, so that no other writer does."""

    def release(self) -> None:  # noqa: B027 - so these have no claims
        """Release the claims; called also if they were not taken."""

    def begin(self) -> None:  # noqa: B027 - some changes need no preparation
        """Prepare the node. Called once, before the first value is stored."""

    def commit(self) -> None:  # noqa: B027 - nor do they need this
        """Finish the change after all values are stored. It may run again, and elsewhere."""

    @abstractmethod
    def abort(self) -> str:
        """Clean up after a failure, and describe what the node holds now."""

    @property
    def has_commit(self) -> bool:
        """Whether `commit` does anything."""
        return type(self).commit is not Change.commit


@contextmanager
def transaction(changes: Iterable[Change], *, commits: bool = True) -> Iterator[None]:
    """Begin changes, run the block that stores the values, then commit the changes, in order.

    If any of this fails, the changes that have begun and are not committed are aborted, and notes
    of the error describe what they left. Without `commits`, tasks that the block has created commit
    them later.
    """
    begun: list[Change] = []
    try:
        for change in changes:
            begun.append(change)
            change.begin()
        yield
        while begun and commits:
            begun[0].commit()
            begun.pop(0)
    except BaseException as error:
        for change in begun:
            error.add_note(f"{change.location}: {_aborted(change)}")
        raise


def _aborted(change: Change) -> str:
    """Abort a change, and describe what the node holds now; the first error is the one to raise."""
    try:
        return change.abort()
    except (ZarrdaskError, OSError) as error:
        return f"cleaning up failed, too: {error}"
