"""The requests and bytes of a plan, by class, and what they cost by the prices of the settings."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

import numpy as np

from zarrdask import config
from zarrdask.display.words import byte_size

#: The bytes for which the price "GiB" is paid.
_GIB = 2**30


def overlaps(blocks: Iterable[np.ndarray], others: Iterable[np.ndarray]) -> int:
    """Return how many pairs of blocks of two divisions overlap, by the boundaries along each axis.

    >>> overlaps([np.array([0, 4, 8])], [np.array([0, 3, 6, 8])])
    4
    """
    return prod(len(np.union1d(*edges)) - 1 for edges in zip(blocks, others, strict=True))


@dataclass(frozen=True)
class RequestCosts:
    """The requests that a plan sends, and the bytes that it moves.

    Attributes
    ----------
    requests : dict
        The number of requests by class: "GET" and "PUT".
    fetched, stored : int or None
        Encoded bytes; None if they are not known before the values are.
    """

    requests: dict[str, int]
    fetched: int | None = None
    stored: int | None = None

    @property
    def price(self) -> float | None:
        """The sum by the setting ``zarrdask.prices``; None if it names no prices.

        If the size of encoded bytes is not known, they are not part of it.
        """
        prices = config.get("prices")
        if not prices:
            return None
        sent = sum(prices.get(kind, 0) * number / 1000 for kind, number in self.requests.items())
        return float(sent + prices.get("GiB", 0) * (self.fetched or 0) / _GIB)

    def __str__(self) -> str:
        parts = [f"{number} {kind}" for kind, number in self.requests.items() if number]
        sizes = (("fetched", self.fetched), ("stored", self.stored))
        parts += [f"{byte_size(size)} {name}" for name, size in sizes if size is not None]
        if self.price is not None:
            parts.append(f"price {self.price:.4g}")
        return ", ".join(parts) or "none"
