"""The command `plan-read`."""

import json

import zarrdask
from tests.covering import for_each
from tests.tools.cli.commands import call


@for_each(
    "region, decoded",
    [(None, 160), ("0:3", 64), ("t=0:3,x=1", 64), ("..., 1", 160), ("-1", 32), ("9::-4, :", 96)],
)
def test_plan_read(capsys, tmp_path, region, decoded):
    path = tmp_path / "planned"
    names = ("t", "x")
    zarrdask.create_array(
        path, shape=(10, 4), dtype="i4", chunks=(2, 4), dimension_names=names, overwrite=True
    )[...] = 1
    options = [] if region is None else [f"--region={region}"]
    found = json.loads(call(capsys, "plan-read", path, "--json", *options).out)
    assert found["decoded"] == decoded
    assert call(capsys, "plan-read", path, *options).out.startswith(f"array    {path} (10, 4)")


@for_each("region", ["a", "1:2:3:4", "t=", "1:x"])
def test_a_region_that_is_none_is_wrong_usage(capsys, tmp_path, region):
    done = call(capsys, "plan-read", tmp_path, "--region", region)
    assert (done.code, done.out) == (2, "")
    assert "neither slices and positions" in done.err
