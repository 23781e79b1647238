"""Members of concatenations that are values in memory: pickled and saved with it."""

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from zarrdask.storage.capabilities import LOCAL_COSTS, Capabilities
from zarrdask.storage.identity import Identity
from zarrdask.storage.memory import MappingStore


class HeldValues(MappingStore):
    """A few values in memory, such as joined coordinates; they do not change.

    Parameters
    ----------
    values : mapping of str to bytes
        The chunks of an array by their keys.
    """

    capabilities = Capabilities(costs=LOCAL_COSTS, writable=False)

    def __init__(self, values: Mapping[str, bytes]) -> None:
        super().__init__(dict(values))

    @property
    def url(self) -> str:
        return "values of the concatenation"

    @property
    def identity(self) -> Identity:
        digest = blake2b(repr(sorted(self.values.items())).encode(), digest_size=16).hexdigest()
        return Identity.at(self.url, f"values:{digest}")

    def __reduce__(self) -> tuple[Any, ...]:
        return HeldValues, (self.values,)
