"""What docs/command-line.md shows is what the commands print."""

import json
import re
import shlex

import zarrdask
from tests.covering import for_each
from tests.tools.cli.commands import ROOT, call
from zarrdask.tools.cli import app

PAGE = (ROOT / "docs" / "command-line.md").read_text()
_BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def commands(block):
    """Return the commands of a block, each with the lines that it prints."""
    found = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def test_what_is_shown_is_printed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names, shown = {}, 0
    for kind, block in _BLOCK.findall(PAGE):
        if kind == "python":
            exec(compile(block, "docs/command-line.md", "exec"), names)
            continue
        for command, lines in commands(block):
            program, *arguments = shlex.split(command)
            done = call(capsys, *arguments)
            assert (program, done.code, done.err) == ("zarrdask", 0, ""), command
            if lines != ["..."]:
                assert done.out.replace(str(tmp_path), "/tmp").splitlines() == lines, command
            shown += 1
    assert shown == len(re.findall(r"^\$ ", PAGE, re.MULTILINE))
    assert {c.split()[1] for c in re.findall(r"^\$ (.*)", PAGE, re.MULTILINE)} == {*app.COMMANDS}


def test_members_of_json_are_documented(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    root = zarrdask.create_group("a")
    root.create_array("t", shape=4, dtype="f4", chunks=2)[...] = 1
    image = zarrdask.create_array("i", shape=(4, 4), dtype="u1", dimension_names=("y", "x"))
    image[...] = 1
    zarrdask.manifest("a").save("m.json")
    called = {
        "`info` of an array": ["info", "a/t", "--stored"],
        "`info` of a group": ["info", "a"],
        "`ls`": ["ls", "a"],
        "`tree`": ["tree", "a"],
        "`rechunk` of an array": ["rechunk", "a/t", "b", "--dry-run"],
        "`rechunk` of a group": ["rechunk", "a", "c", "--dry-run"],
        "`pyramid`": ["pyramid", "i", "p", "--levels", "2"],
        "`info` of a group with pyramids": ["info", "p"],
        "`copy`": ["copy", "a", "d"],
        "`sync`": ["sync", "a", "s"],
        "`consolidate`": ["consolidate", "a", "--dry-run"],
        "`verify`": ["verify", "a"],
        "`inventory`": ["inventory", "a"],
        "`diff`": ["diff", "a", "d"],
        "`plan-read`": ["plan-read", "a/t"],
        "`stats` of an array": ["stats", "a/t"],
        "`stats` of a group": ["stats", "a"],
        "`plan-write`": ["plan-write", "a/t", "n"],
        "`manifest`": ["manifest", "a"],
        "`verify --manifest`, `--stored-manifest`": ["verify", "a", "--manifest", "m.json"],
    }
    rows = dict(
        re.findall(r"^\| (`.*?) \| (.*`.*) \|$", PAGE.partition("## JSON")[2], re.MULTILINE)
    )
    assert called.keys() <= rows.keys()
    for name, arguments in called.items():
        value = json.loads(call(capsys, *arguments, "--json").out)
        members = value[0] if isinstance(value, list) else value
        documented = re.findall(r"`(\w+)`", re.sub(r"\(.*?\)", "", rows[name]))
        assert members.keys() == {*documented}, name


@for_each("code", [app.SUCCESS, app.FAILED, app.ERROR, app.INTERRUPTED])
def test_each_exit_code_is_documented(code):
    assert f"\n| {code} | " in PAGE


def test_the_kinds_of_problems_are_documented():
    from zarrdask.tools.verification.verification_report import FAILING_KINDS, STRICT_FAILING_KINDS

    page = (ROOT / "docs" / "verifying.md").read_text()
    rows = dict(re.findall(r"^\| (`.*`) \| .* \| (.*) \|$", page, re.MULTILINE))
    assert {name.strip("`") for name, fails in rows.items() if fails == "yes"} == {*FAILING_KINDS}
    strict = {name.strip("`") for name, fails in rows.items() if "strict" in fails}
    assert strict == {*STRICT_FAILING_KINDS}
