"""Plans that are executed in part, as by a run that is killed."""

import pytest

from zarrdask.parallel.rewrite.passes import Pass


class CutShort(Exception):
    """What a run that is killed never sees."""


def cut_short(plan, monkeypatch, tasks=3, kind=Pass):
    """Execute a plan, but for what comes after some tasks of a kind of pass."""
    done, call = [], kind.__call__

    def some(self, number, *count):
        if len(done) == tasks:
            raise CutShort
        done.append(number)
        return call(self, number, *count)

    with monkeypatch.context() as patch:
        patch.setattr(kind, "__call__", some)
        with pytest.raises(CutShort):
            plan.execute("sync", progress=False)
