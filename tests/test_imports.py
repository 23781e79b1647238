"""What is imported, and when: a process imports zarrdask, and forks of it do more."""

import json
import subprocess
import sys

import pytest

import zarrdask

#: Reads lists of steps, and prints the modules that are loaded at first, and after each step.
SERVER = """
import json, os, sys
import zarrdask
found = [[[*sys.modules]]]
for steps in json.load(sys.stdin):
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        loaded = []
        for step in steps:
            exec(step, {})
            loaded.append([*sys.modules])
        with open(writer, "w") as answer:
            json.dump(loaded, answer)
        os._exit(0)
    os.close(writer)
    with open(reader) as answer:
        found.append(json.loads(answer.read() or "[]"))
    os.wait()
print(json.dumps(found))
"""

HEAVY = {"dask", "distributed", "fsspec", "obstore", "tensorstore", "xarray", "zarr"}

#: What reading with Dask does not need.
NOT_FOR_READING = {
    *("click", "distributed", "fsspec", "ml_dtypes", "obstore", "rich", "tqdm", "xarray", "zarr"),
    *(
        "zarrdask.tools.conventions",
        "zarrdask.parallel.graph.to_zarr",
        "zarrdask.parallel.rewrite",
        "zarrdask.tools.verification",
    ),
    *("zarrdask.xarray", "zfpy"),
}

#: What commands that look into a store do not need.
NOT_FOR_LOOKING = {"dask", "distributed", "fsspec", "importlib.metadata", "numcodecs"}


def modules_after(*checks):
    """Return the modules that zarrdask imports, and those loaded after each step of each check."""
    run = subprocess.run(
        [sys.executable, "-W", "error::ImportWarning", "-c", SERVER],
        input=json.dumps(checks),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stderr) == (0, "")
    [[imported], *others] = json.loads(run.stdout)
    for steps, loaded in zip(checks, others, strict=True):
        assert len(loaded) == len(steps)
    return set(imported), *([set(modules) for modules in loaded] for loaded in others)


@pytest.mark.slow
def test_imports_are_light(tmp_path):
    array, group, new = (str(tmp_path / name) for name in ("array", "group", "new"))
    zarrdask.create_array(array, shape=(4,), dtype="i4")
    root = zarrdask.create_group(group)
    root.create_array("a", shape=(10,), dtype="i4", chunks=2, compressors="gzip")[:6] = 1
    root.create_array("g/s", shape=(8, 8), dtype="f4", chunks=(2, 2), shards=(4, 4))
    commands = (["--help"], ["ls", "-l"], ["info"], ["info", "--stored"], ["tree"])
    commands += (["tree", "--json"],)
    looks = [
        "from zarrdask.tools.cli.app import run\n"
        f"assert run({command + [group] * (index > 0)}) == 0"
        for index, command in enumerate(commands)
    ]
    imported, opened, created, adapted, read, looked = modules_after(
        [f"import zarrdask\nassert zarrdask.open_array({array!r}).shape == (4,)"],
        [f"import zarrdask\nzarrdask.create_group({new!r})"],
        [
            "import xarray.backends, xarray.namedarray.daskmanager",
            "import zarrdask.xarray.manager",
            "import zarrdask.xarray.engine",
        ],
        ["import dask.array", f"import zarrdask\nzarrdask.from_zarr({array!r}).source[1:]"],
        looks,
    )
    assert not imported & (HEAVY | NOT_FOR_READING)
    assert not opened[0] & HEAVY
    assert "obstore" not in created[0]

    others, manager, engine = adapted
    assert manager - others == {"zarrdask.xarray", "zarrdask.xarray.manager"}
    added = engine - manager
    assert {name for name in added if name.startswith("zarrdask")} == {"zarrdask.xarray.engine"}
    assert not {name.split(".")[0] for name in engine} & (HEAVY - {"obstore", "xarray"})

    assert not (read[1] - read[0]) & NOT_FOR_READING
    for command, loaded in zip(commands, looked, strict=True):
        assert not loaded & NOT_FOR_LOOKING, command
