"""The requests and bytes of a plan, by class, and what they cost by the prices of the settings."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from zarrdask import config
from zarrdask.display.words import byte_size

#: The bytes for which the price "GiB" is paid.
_GIB = 2**30
#: How the bytes of chunks that will be encoded are estimated.
AS_SOURCE = "if they compress as the source does"
UNCOMPRESSED = "before compression"
#: How the bytes of parts of chunks are estimated.
SAMPLED = "from some of the chunks"


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
        Encoded bytes; None if nothing is known of them.
    estimates : dict
        How "fetched" or "stored" was estimated, for each that is not known exactly.
    """

    requests: dict[str, int]
    fetched: int | None = None
    stored: int | None = None
    estimates: Mapping[str, str] = field(default_factory=dict)

    @property
    def price(self) -> float | None:
        """The sum by the setting ``zarrdask.prices``; None if it names no prices.

        If nothing is known of the fetched bytes, they are not part of it.
        """
        prices = config.get("prices")
        if not prices:
            return None
        sent = sum(prices.get(kind, 0) * number / 1000 for kind, number in self.requests.items())
        return float(sent + prices.get("GiB", 0) * (self.fetched or 0) / _GIB)

    def __add__(self, other: "RequestCosts") -> "RequestCosts":
        """Return the sum; the sum of bytes is unknown if one of both is unknown."""
        kinds = {**self.requests, **other.requests}
        requests = {n: self.requests.get(n, 0) + other.requests.get(n, 0) for n in kinds}
        fetched, stored = _sum(self.fetched, other.fetched), _sum(self.stored, other.stored)
        return RequestCosts(requests, fetched, stored, {**self.estimates, **other.estimates})

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as values that JSON can represent."""
        return {
            "requests_by_class": self.requests,
            "bytes_fetched": self.fetched,
            "bytes_stored": self.stored,
            "estimates": dict(self.estimates),
            "price": self.price,
        }

    def __str__(self) -> str:
        parts = [f"{number} {kind}" for kind, number in self.requests.items() if number]
        for name, size in (("fetched", self.fetched), ("stored", self.stored)):
            basis = self.estimates.get(name)
            if size:
                text = f"{byte_size(size)} {name}"
                parts.append(text if basis is None else f"about {text} ({basis})")
        if self.price is not None:
            parts.append(f"price {self.price:.4g}")
        return ", ".join(parts) or "none"


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other
