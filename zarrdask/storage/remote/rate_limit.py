"""The limit of a rate: how it is lowered by refusals, and how it grows between them.

The limit follows CUBIC, the congestion control of TCP (RFC 9438): a refusal lowers it by a factor;
then it returns quickly to what was refused, stays near it, and probes beyond. As those who send
more are refused more, several machines come to equal shares without knowing of each other.
"""

import math
import random
from typing import NamedTuple

#: The factor by which a refusal lowers the limit; the second refusal, after the limit has grown,
#: lowers it less.
_DECREASE, _DECREASE_AFTER_START = 0.8, 0.5
#: How fast the limit grows: in requests per second, by the cube of seconds, where the peak is 1.
#: With its root, a low limit does not exceed the peak by much more, relatively, than a high one.
_GROWTH = 0.42
#: By which factor the limit grows each second before the second refusal, and how far.
_START, _MOST_START = 8.0, 1e6
#: The lowest limit in requests per second, and the lowest one after the first refusal.
_LEAST, _LEAST_FIRST = 0.5, 10.0
#: Seconds: after so long without a refusal there is no limit.
_MEMORY = 60.0
#: Seconds by which a request that is late does not delay the next ones.
_SLACK = 0.01


class Limit(NamedTuple):
    """A limit of a rate, as it is after the last request.

    Attributes
    ----------
    rate : float
        The limit in requests per second after it was lowered.
    peak : float
        The limit that was refused, to which it returns; 0 before the second refusal.
    since : float
        The time from which it grows. Time in which no request waits for its turn does not count:
        the limit of the server was not probed.
    lowered : float
        When it was lowered.
    next : float
        When the next request may be sent.
    accepted : float
        When a request was accepted lately.
    """

    rate: float
    peak: float
    since: float
    lowered: float
    next: float
    accepted: float

    @classmethod
    def first(cls, rate: float, now: float, accepted: float) -> "Limit":
        """Return the limit after the first refusal: the rate that was accepted before."""
        return cls(max(_LEAST_FIRST, rate), 0.0, now, now, now, accepted)

    def is_valid(self, now: float) -> bool:
        """Whether there was a recent refusal."""
        return 0 <= now - self.lowered <= _MEMORY

    def rate_at(self, now: float) -> float:
        """Return the limit, which grows with time."""
        seconds = max(now - self.since, 0.0)
        if not self.peak:
            return self.rate * min(math.pow(_START, seconds), _MOST_START)
        growth = _GROWTH * math.sqrt(self.peak)
        plateau = math.pow((self.peak - self.rate) / growth, 1 / 3)
        return self.peak + growth * math.pow(seconds - plateau, 3)

    def take(self, now: float, accepted: float) -> "tuple[float, Limit]":
        """Return the time at which the next request may be sent, and the limit after it."""
        slot, unused = max(self.next, now - _SLACK), max(now - _SLACK - self.next, 0.0)
        # Not at equal distances, as several machines would then stay in step.
        following = slot + random.uniform(0.8, 1.2) / self.rate_at(slot)
        after = self._replace(
            since=min(self.since + unused, now),
            next=following,
            accepted=max(self.accepted, accepted),
        )
        return slot, after

    def refuse(self, now: float, sent: float) -> "Limit":
        """Return the limit after a refusal, which is the same for requests sent before the last."""
        if sent - self.lowered < now - sent:  # less than a round trip after the limit was lowered
            return self
        rate = self.rate_at(now)
        lowered = max(_LEAST, rate * (_DECREASE if self.peak else _DECREASE_AFTER_START))
        # A lower peak than before makes room for machines that began later.
        peak = (rate + lowered) / 2 if rate < self.peak or not self.peak else rate
        return self._replace(rate=lowered, peak=max(peak, lowered), since=now, lowered=now)

    def pause(self, until: float) -> "Limit":
        """Return the limit with no further request before a time."""
        return self._replace(next=max(self.next, until))
