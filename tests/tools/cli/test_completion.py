"""Completion in a shell."""

import pytest

from tests.tools.cli.commands import call
from zarrdask.tools.cli import main


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(capsys, shell):
    done = call(capsys, "completion", shell)
    assert done.code == 0
    assert "_ZARRDASK_COMPLETE" in done.out
    if shell == "zsh":  # compdef does not exist where the user's files do not call compinit
        first, second, *_ = done.out.splitlines()
        assert first == "#compdef zarrdask"
        assert "compinit" in second
    if shell == "fish":  # descriptions have commas
        assert 'string split ","' not in done.out


def test_what_the_script_of_completion_asks_for(stored, capsys, monkeypatch):
    monkeypatch.setenv("_ZARRDASK_COMPLETE", "bash_complete")
    for number, words in enumerate(["zarrdask cons", "zarrdask info da"], 1):
        monkeypatch.setenv("COMP_CWORD", str(number))
        monkeypatch.setenv("COMP_WORDS", words)
        with pytest.raises(SystemExit):
            main()
    assert capsys.readouterr().out == "plain,consolidate\nfile,da\n"
