"""Request rates that adapt to a store: one that refuses requests gets as many as it accepts.

A store that accepts all requests is never slowed down. After the first refusal (HTTP 429 or 503) a
process sends requests at a limited rate. The limit follows CUBIC, the congestion control of TCP
(RFC 9438): a refusal lowers it by a factor; then it returns quickly to what was refused, stays
near it, and probes beyond. As processes that send more are refused more, several processes come to
equal shares without knowing of each other.
"""

import logging
import math
import random
import re
import threading
import time
from collections import deque
from concurrent.futures import CancelledError
from functools import cache
from typing import Literal

from zarrdask import config
from zarrdask.errors import without_secrets
from zarrdask.storage.in_flight import pause
from zarrdask.storage.system import after_fork

_LOG = logging.getLogger(__name__)

#: What a refusal multiplies the limit by.
_DECREASE = 0.8
#: How fast the limit grows: in requests per second, by the cube of seconds.
_GROWTH = 6.0
#: The lowest limit, in requests per second.
_LEAST = 0.5
#: Seconds: after so long without a refusal there is no limit.
_MEMORY = 60.0
#: Seconds: the time over which the rate of accepted requests is measured.
_PERIOD = 1.0
#: Seconds: a store that has accepted nothing for so long is not busy, but out of order.
_OUTAGE = 10.0

#: The protocol and the bucket or host of a URL, or of each in a chain.
_PLACE = re.compile(r"(?:^|::)([A-Za-z][\w+.-]*://[^/?#]*?)(?=[/?#]|::[A-Za-z][\w+.-]*://|$)")

Kind = Literal["read", "write"]


class RequestRate:
    """The rate of the requests of one kind that this process sends to a bucket or host.

    Parameters
    ----------
    place : str
        The bucket or host, for messages.
    kind : {"read", "write"}
        What the requests do.

    Attributes
    ----------
    limit : float or None
        The adapted limit in requests per second; None if nothing has been refused.
    accepted, refused : int
        The numbers of requests that were accepted and refused.
    """

    def __init__(self, place: str, kind: Kind) -> None:
        self.place, self.kind = place, kind
        self.limit: float | None = None
        self.accepted = self.refused = 0
        self._lock = threading.Lock()
        #: Held by the thread whose request is the next one.
        self._turn = threading.Lock()
        #: When the next request may be sent.
        self._next = 0.0
        #: When requests were accepted, the latest last.
        self._recent: deque[float] = deque(maxlen=2**14)
        #: When the limit was lowered, and to which limit it returns; before the second refusal,
        #: None: then it doubles twice each second.
        self._lowered = 0.0
        self._lowered_to = 0.0
        self._peak: float | None = None

    def wait(self) -> float:
        """Wait until a request may be sent, and return the time.

        Raises
        ------
        CancelledError
            If nobody asks for the result any more.
        """
        most = config.get("requests-per-second")
        if self.limit is None and not most:
            return time.monotonic()
        with self._turn:
            while (now := time.monotonic()) < self._next:
                if not pause(self._next - now):
                    raise CancelledError
            with self._lock:
                # Another thread may have removed the limit meanwhile.
                rate = min(self.limit or math.inf, most or math.inf)
                # Not at equal distances, as several processes would then stay in step.
                self._next = max(self._next, now) + random.uniform(0.8, 1.2) / rate
        return now

    def accept(self) -> None:
        """Take note that a request was accepted; the limit grows."""
        with self._lock:
            now = time.monotonic()
            self.accepted += 1
            self._recent.append(now)
            if self.limit is None:
                return
            seconds = now - self._lowered
            if seconds > _MEMORY:
                self.limit = None
                return
            if self._peak is None:
                grown = self._lowered_to * 4**seconds
            else:
                plateau = (self._peak * (1 - _DECREASE) / _GROWTH) ** (1 / 3)
                grown = self._peak + _GROWTH * (seconds - plateau) ** 3
            # It does not grow far above what is sent: nothing is known of such rates.
            self.limit = max(self.limit, min(grown, 2 * self._measured(now)))

    def refuse(self, sent: float, pause_seconds: float = 0.0) -> bool:
        """Take note that a request was refused, and return whether the rate is limited now.

        Parameters
        ----------
        sent : float
            When the request was sent. Until a round trip after the limit was lowered, refusals
            are those of requests before.
        pause_seconds : float
            For how long the store asks to be left alone (``Retry-After``).
        """
        with self._lock:
            now = time.monotonic()
            self.refused += 1
            self._next = max(self._next, now + pause_seconds)
            if not self._recent or now - self._recent[-1] > _OUTAGE:
                self.limit = None
            elif self.limit is None:
                self._peak = None
                self._lower(now, self._measured(now))
                _LOG.warning(
                    "%s: the store refuses requests; %ss are limited to the rate that it accepts, "
                    "%.3g per second at first",
                    self.place,
                    self.kind,
                    self.limit,
                )
            elif sent - self._lowered >= now - sent:  # a round trip after the limit was lowered
                # A lower peak than before makes room for processes that began later.
                fell = self._peak is not None and self.limit < self._peak
                self._peak = self.limit * (1 + _DECREASE) / 2 if fell else self.limit
                self._lower(now, self.limit * _DECREASE)
                _LOG.info("%s: %ss: %.3g per second", self.place, self.kind, self.limit)
            return self.limit is not None

    def _lower(self, now: float, limit: float) -> None:
        self.limit = self._lowered_to = max(_LEAST, limit)
        self._lowered = now

    def _measured(self, now: float) -> float:
        """Return how many requests per second were accepted lately."""
        recent = self._recent
        while len(recent) > 1 and recent[0] < now - _PERIOD:
            recent.popleft()
        return len(recent) / max(now - recent[0], 0.1) if recent else 0.0


def place_of(url: str) -> str:
    """Return the bucket or host of a URL, without a password; of another text, the text.

    In a chain of protocols (``simplecache::s3://bucket/key``), that of the last one counts.
    """
    url = without_secrets(url)
    places: list[str] = _PLACE.findall(url)
    return places[-1] if places else url


@cache
def request_rate(place: str, kind: Kind) -> RequestRate:
    """Return the rate that all stores of this process share for a bucket or host."""
    return RequestRate(place, kind)


# The locks of a forked process may be held by threads that it does not have.
after_fork(request_rate.cache_clear)
