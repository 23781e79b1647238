"""Programs that tests run in processes of their own."""

import os
import signal

import pytest

from tests.processes import Done, Program, running

pytestmark = pytest.mark.slow

LEADER = """
import os, sys
print(sys.argv[1:], os.getcwd(), os.environ["NAME"], os.getsid(0) == os.getpid(), flush=True)
print(sys.stdin.readline(), file=sys.stderr)
raise SystemExit(3)
"""


def test_a_program_has_its_own_arguments_variables_streams_and_session(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NAME", "parent")
    programs = [Program(LEADER, 1, "two"), Program(LEADER, environment={"NAME": "own"})]
    assert programs[0].stdout.readline() == f"['1', 'two'] {tmp_path} parent True\n"
    programs[0].tell("go")
    assert programs[0].finish() == Done(3, "", "go\n\n")
    # The input ends, so that nothing is read.
    assert programs[1].finish() == Done(3, f"[] {tmp_path} own True\n", "\n")


def test_an_error_is_printed():
    code, out, err = Program("print(1)\nraise ValueError('no such value')").finish()
    assert (code, out) == (1, "1\n")
    assert err.endswith("ValueError: no such value\n")


def test_a_program_that_runs_is_killed_at_the_end_of_its_context():
    with running("import time; print('begun', flush=True); time.sleep(100)") as program:
        assert program.stdout.readline() == "begun\n"
        os.kill(program.pid, 0)
    assert program.exitcode == -signal.SIGKILL


def test_it_is_forked_from_a_process_that_has_imported_the_package():
    code = "import sys; print({'zarrdask', 'distributed'} <= sys.modules.keys())"
    assert Program(code).finish() == Done(0, "True\n", "")
