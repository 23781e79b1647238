"""The command `rechunk`."""

import json
import signal

import numpy as np
import pytest

import zarrdask
from tests.tools.cli.commands import call
from zarrdask.parallel.rewrite.passes import Pass

VALUES = np.arange(64, dtype="i4").reshape(8, 8)


def test_rechunk_prints_the_plan_and_does_it(capsys, source, tmp_path):
    target = tmp_path / "out"
    done = call(capsys, "rechunk", source / "x", target, "--chunks", "8,1")
    assert (done.code, done.err) == (0, "")
    assert done.out == f"{zarrdask.rechunk(source / 'x', tmp_path / 'c', chunks=(8, 1))}\n"
    z = zarrdask.open_array(target)
    assert (z.chunks, z.zarr_format) == ((8, 1), 2)
    np.testing.assert_array_equal(z[...], VALUES)


def test_lengths_by_dimension(capsys, tmp_path):
    root = zarrdask.create_group(tmp_path / "in")
    names = {"dtype": "i4", "dimension_names": ("y", "x")}
    root.create_array("x", shape=(8, 8), chunks=(1, 8), **names)[...] = VALUES
    lengths = ["--chunks", "y=-1,x=2", "--shards", "1=4"]
    assert call(capsys, "rechunk", tmp_path / "in", tmp_path / "out", *lengths).code == 0
    z = zarrdask.open_array(tmp_path / "out", "x")
    assert (z.chunks, z.shards) == ((8, 2), (8, 4))
    assert call(capsys, "copy", tmp_path / "in" / "x", tmp_path / "c", *lengths).code == 0
    assert zarrdask.open_array(tmp_path / "c").chunks == (8, 2)


def test_a_dry_run_does_nothing(capsys, source, tmp_path):
    done = call(capsys, "rechunk", source / "x", tmp_path / "out", "--chunks", "8", "--dry-run")
    assert done.code == 0
    assert "memory" in done.out
    assert not (tmp_path / "out").exists()


def test_rechunk_with_everything_else(capsys, source, tmp_path):
    target = tmp_path / "out"
    options = "--chunks 2 --shards 4,8 --zarr-format 3 --compressor gzip --compressor crc32c"
    more = "--dtype i8 --fill-value 7 --max-mem 64MiB --scheduler sync --progress"
    done = call(capsys, "rechunk", source / "x", target, *options.split(), *more.split())
    assert done.code == 0, done.err
    z = zarrdask.open_array(target)
    assert (z.chunks, z.shards, z.zarr_format) == ((2, 2), (4, 8), 3)
    assert (z.dtype, z.fill_value) == ("i8", 7)
    np.testing.assert_array_equal(z[...], VALUES)
    assert "gzip" in call(capsys, "info", target).out
    assert (
        "rechunk" in call(capsys, "rechunk", source / "x", target, "--overwrite", "--progress").err
    )


@pytest.mark.parametrize(
    ("options", "code", "text"),
    [
        ("--max-mem 1", 2, "max_mem"),
        ("--max-mem what", 2, "max_mem"),
        ("--chunks what", 2, "neither lengths"),
        ("--chunks time", 2, "neither lengths"),
        ("--chunks =3", 2, "not a dimension and its length"),
        ("--chunks y=3,y=4", 2, "not a dimension and its length"),
        ("--chunks y=all", 2, "has no length"),
        ("--chunks z=3", 2, "no such axis"),
        ("--chunks 1,2,3", 2, ""),
        ("--scheduler nonsense", 2, "unknown scheduler"),
    ],
)
def test_errors_of_rechunk(capsys, source, tmp_path, options, code, text):
    done = call(capsys, "rechunk", source / "x", tmp_path / "out", *options.split())
    assert done.code == code
    assert text in done.err
    assert not done.out


def test_a_plan_as_json(capsys, source, tmp_path):
    arguments = "rechunk", source / "x", tmp_path / "out", "--chunks", "8,1", "--json"
    plan = json.loads(call(capsys, *arguments, "--dry-run").out)
    assert (plan["shape"], plan["objects"], plan["strategy"]) == ([8, 8], 8, "one pass")
    assert plan["peak_memory"] > 0
    assert not (tmp_path / "out").exists()
    assert json.loads(call(capsys, *arguments).out) == plan
    np.testing.assert_array_equal(zarrdask.open_array(tmp_path / "out")[...], VALUES)


def test_an_interrupted_rechunk_is_resumed(capsys, monkeypatch, source, tmp_path):
    """Ctrl-C in the middle, then the same command: tasks that are done are not done again."""
    root = zarrdask.open_group(source, mode="r+")
    values = np.arange(200 * 200, dtype="f8").reshape(200, 200)
    root.create_array("big", shape=values.shape, dtype="f8", chunks=(1, 200))[...] = values
    run, ran = Pass.__call__, []

    def interrupted(self, number, *rest):
        if len(ran) == 3:
            signal.raise_signal(signal.SIGINT)
        ran.append(number)
        return run(self, number, *rest)

    options = ["--chunks", "200,1", "--max-mem", "100kB", "--scheduler", "sync", "--no-progress"]
    arguments = "rechunk", source / "big", tmp_path / "out", *options
    monkeypatch.setattr(Pass, "__call__", interrupted)
    stopped = call(capsys, *arguments)
    assert stopped.code == 130
    assert stopped.err == "zarrdask: interrupted; run the same command again to resume\n"
    assert "no array or group" in call(capsys, "info", tmp_path / "out").err
    ran.append("again")
    assert call(capsys, *arguments).code == 0
    # What was done since the record was stored last is done again, and no more.
    plan = zarrdask.rechunk(
        source / "big", tmp_path / "x", chunks=(200, 1), max_mem="100kB", scheduler="sync"
    )
    assert len(ran) == 3 + 1 + plan.tasks - 3
    np.testing.assert_array_equal(zarrdask.open_array(tmp_path / "out")[...], values)
