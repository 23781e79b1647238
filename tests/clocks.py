"""A clock that does not wait."""


class Clock:
    """A clock that moves only when it is slept by."""

    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds

    def pause(self, seconds):
        """Sleep as `pause` does, whose result is still asked for."""
        self.sleep(seconds)
        return True
