"""Request rates that adapt to a store that refuses requests: as many are sent as it accepts.

A store that accepts all requests is never slowed down. After the first refusal (HTTP 429 or 503)
all processes of a machine take turns to send requests, at a rate that `rate_limit`
adapts.
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
from zarrdask.runtime.in_flight import pause
from zarrdask.runtime.system import after_fork
from zarrdask.storage.remote.rate_limit import Limit
from zarrdask.storage.remote.shared_limit import SharedLimit

_LOG = logging.getLogger(__name__)

#: Seconds: the time over which the rate of accepted requests is measured, and the least time.
_PERIOD, _LEAST_PERIOD = 1.0, 0.25
#: Seconds: a store that has accepted nothing for so long is not busy, but out of order.
_OUTAGE = 10.0
#: Seconds after which it is looked again whether another process was refused.
_LOOK_INTERVAL = 0.01

#: The protocol and the bucket or host of a URL, or of each in a chain.
_PLACE = re.compile(r"(?:^|::)([A-Za-z][\w+.-]*://[^/?#]*?)(?=[/?#]|::[A-Za-z][\w+.-]*://|$)")

#: How the URLs of the servers end on which the name of a bucket is unique.
_OWN_SERVERS = {"s3": (".amazonaws.com", ".amazonaws.com.cn"), "gs": (".googleapis.com",)}

Kind = Literal["read", "write"]


class RequestRate:
    """The rate of the requests of one kind that this process sends to a bucket or host.

    Parameters
    ----------
    place : str
        The bucket or host, for messages.
    kind : {"read", "write"}
        What the requests do.
    shared : SharedLimit, optional
        The limit after refusals, by default one of this object alone.

    Attributes
    ----------
    refused : int
        The number of requests that were refused.
    is_limited : bool
        Whether a request was refused recently, at the last check of this process.
    """

    def __init__(self, place: str, kind: Kind, shared: SharedLimit | None = None) -> None:
        self.place, self.kind = place, kind
        self.refused = 0
        self._shared = shared or SharedLimit(place)
        #: Held by the thread whose request is the next one of this process.
        self._turn = threading.Lock()
        self.is_limited = False
        #: When to look for refusals of other processes.
        self._look_at = 0.0
        #: When the next request may be sent, by the setting.
        self._next = 0.0
        #: When requests were accepted, the latest last.
        self._recent: deque[float] = deque(maxlen=2**14)

    @property
    def limit(self) -> float | None:
        """The adapted limit in requests per second; None if there was no recent refusal."""
        now = time.monotonic()
        limit = self._shared.read(now)
        return None if limit is None else limit.rate_at(now)

    def wait(self) -> float:
        """Wait until a request may be sent, and return the time.

        Raises
        ------
        CancelledError
            If the result is no longer needed.
        """
        most, now = config.get("requests-per-second"), time.monotonic()
        if not self.is_limited and now >= self._look_at:
            self._look_at = now + _LOOK_INTERVAL
            self.is_limited = self._shared.read(now) is not None
        if not self.is_limited and not most:
            return now
        with self._turn:
            slot = self.take_slot(most)
            while (now := time.monotonic()) < slot:
                if not pause(slot - now):
                    raise CancelledError
        return now

    def take_slot(self, most: float) -> float:
        """Return when the next request of this process may be sent."""
        slot = now = time.monotonic()
        if self.is_limited:
            with self._shared.held(now) as held:
                if held.limit is not None:
                    slot, held.limit = held.limit.take(now, self._last_accepted())
                self.is_limited = held.limit is not None
        if most:
            slot = max(slot, self._next)
            self._next = slot + random.uniform(0.8, 1.2) / most
        return slot

    def accept(self) -> None:
        """Take note that a request was accepted."""
        self._recent.append(time.monotonic())

    def refuse(self, sent: float, pause_seconds: float = 0.0) -> bool:
        """Take note that a request was refused, and return whether the rate is limited now.

        Parameters
        ----------
        sent : float
            When the request was sent. Within a round trip after the limit was lowered, refusals
            concern earlier requests.
        pause_seconds : float
            The delay that the store requests (``Retry-After``).
        """
        now = time.monotonic()
        with self._shared.held(now) as held:
            self.refused += 1
            held.refusals += 1
            limit, accepted = held.limit, self._last_accepted()
            if now - max(accepted, limit.accepted if limit else accepted) > _OUTAGE:
                limit = None
            elif limit is None:
                limit = Limit.first(self._measured(now), now, accepted)
            else:
                limit = limit.refuse(now, sent)
            held.limit = limit and limit.pause(now + pause_seconds)
            was_limited, self.is_limited = self.is_limited, limit is not None
        if limit is not None and not was_limited:
            _LOG.warning(
                "%s: the store refuses requests; %ss are limited to the rate that it accepts, "
                "%.3g per second at first",
                self.place,
                self.kind,
                limit.rate,
            )
        return limit is not None

    def _last_accepted(self) -> float:
        return self._recent[-1] if self._recent else -math.inf

    def _measured(self, now: float) -> float:
        """Return the number of recently accepted requests per second."""
        # Other threads append to the original.
        recent = [accepted for accepted in self._recent.copy() if accepted >= now - _PERIOD]
        return len(recent) / max(now - recent[0], _LEAST_PERIOD) if recent else 0.0


def place_of(url: str, endpoint: str = "") -> str:
    """Return the bucket or host of a URL, without a password; any other text is returned unchanged.

    In a chain of protocols (``simplecache::s3://bucket/key``), the last one counts. The
    endpoint is the URL of the server that has the bucket; it is left out if the cloud has one
    bucket of that name.
    """
    url = without_secrets(url)
    places: list[str] = _PLACE.findall(url)
    place = places[-1] if places else url
    server = without_secrets(endpoint).partition("?")[0].rstrip("/")
    is_own = server.endswith(_OWN_SERVERS.get(place.partition("://")[0], ()))
    return place if is_own or not server else f"{place} at {server}"


@cache
def request_rate(place: str, kind: Kind) -> RequestRate:
    """Return the rate that all stores of this process share for a bucket or host."""
    return RequestRate(place, kind, SharedLimit(f"{kind} {place}", among_processes=True))


# The locks of a forked process may be held by threads that it does not have.
after_fork(request_rate.cache_clear)
