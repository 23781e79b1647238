"""What a process asks the system for, where a platform lacks the call."""

import os

from zarrdask.runtime import system


def test_the_number_of_cpus_is_known_without_an_affinity(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity")
    assert system.cpu_count() == (os.cpu_count() or 1)
