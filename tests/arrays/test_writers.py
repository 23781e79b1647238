"""The names of writers say whether they still run."""

import os
import sys

import pytest

from zarrdask.arrays import writers

#: The number of no process: more than any system gives to one.
NO_PROCESS = 2**31 - 1


def renamed(name, **parts):
    """Return a name of a writer with other parts."""
    unique, machine, process, since = name.decode().split(" ")
    known = {"unique": unique, "machine": machine, "process": process, "since": since} | parts
    return " ".join(map(str, known.values())).encode()


def test_a_writer_runs_from_its_beginning_to_its_end():
    name = writers.new_writer()
    assert writers.is_running(name) is False
    writers.begin(name)
    assert writers.is_running(name) is True
    writers.end(name)
    assert writers.is_running(name) is False


def test_a_name_is_recognized_before_a_number_and_before_other_lines():
    name = writers.new_writer("write")
    assert name.startswith(b"write ")
    assert writers.name_in(name + b" 7\nmore") == name
    writers.begin(name)
    assert writers.is_running(memoryview(name + b" 7")) is True
    writers.end(name)


def test_a_process_that_does_not_exist_does_not_run():
    assert writers.is_running(renamed(writers.new_writer(), process=NO_PROCESS)) is False


@pytest.mark.skipif(sys.platform == "win32", reason="the parent process may have ended")
def test_another_process_runs_unless_it_began_after_the_writer():
    name = renamed(writers.new_writer(), process=os.getppid())
    assert writers.is_running(name) is True
    assert writers.is_running(renamed(name, since=0)) is False


@pytest.mark.parametrize("value", [b"", b"of another release", b"a b c d"])
def test_nothing_is_known_of_other_values(value):
    assert writers.is_running(value) is None


def test_nothing_is_known_of_writers_of_other_machines():
    assert writers.is_running(renamed(writers.new_writer(), machine="elsewhere")) is None
