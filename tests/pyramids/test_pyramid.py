"""``pyramid``: levels of arrays, as brute force computes them."""

import numpy as np
import pytest

import zarrdask
from tests.pyramids.reference import reference
from zarrdask.errors import MetadataError, NodeExistsError, UnsupportedError


def stored(values, **options):
    array = zarrdask.create_array({}, shape=values.shape, dtype=values.dtype, **options)
    array[...] = values
    return array


def numbers(shape, dtype="u1", seed=0):
    return np.random.default_rng(seed).integers(0, 100, shape).astype(dtype)


def check(group, values, steps, method="mean", borders="trim"):
    for number, level in enumerate(reference(values, steps, method, borders)):
        np.testing.assert_array_equal(group[str(number)][...], level, str(number))


def test_levels_are_means_of_the_level_before():
    values = numbers((3, 37, 50))
    plan = zarrdask.pyramid(stored(values, chunks=(1, 8, 8)), {})
    group = plan.execute("threads", progress=False)
    assert [level.shape[1:] for level in plan.levels] == [(37, 50), (18, 25), (9, 12), (4, 6)]
    check(group, values, [(1, 2, 2)] * 3)
    assert group["2"].chunks == (1, 8, 8)


def test_coarse_levels_are_passed_on_in_small_memory():
    values = numbers((256, 256), "f8")
    array = stored(values, chunks=(32, 32))
    plan = zarrdask.pyramid(array, {}, max_mem="2.2 MiB", scheduler="threads")
    assert plan.tasks > 1
    check(plan.execute(progress=False), values, [(2, 2)] * 3)


def test_a_plan_prints_and_draws():
    plan = zarrdask.pyramid(stored(numbers((16, 16)), chunks=(4, 4)), {}, levels=3)
    assert "level 2  2: (4, 4), 16 B in 1 chunk or shard" in str(plan)
    assert plan.to_dict()["levels"][2]["shape"] == [4, 4]
    assert "<svg" in plan._repr_html_()


@pytest.mark.parametrize(
    ("options", "error", "name"),
    [
        ({"levels": 0}, MetadataError, "levels"),
        ({"levels": 9}, MetadataError, "levels"),
        ({"factors": (2, 2, 2)}, MetadataError, "factors"),
        ({"factors": {"y": 2}}, Exception, "factors"),
        ({"factors": 0}, MetadataError, "factors"),
        ({"method": "best"}, MetadataError, "method"),
        ({"borders": "wrap"}, MetadataError, "borders"),
        ({"convention": "mine"}, MetadataError, "convention"),
        ({"max_mem": "1 kB"}, MetadataError, "max_mem"),
    ],
)
def test_bad_options_are_errors_before_anything_is_written(options, error, name):
    store = {}
    with pytest.raises(error, match=name):
        zarrdask.pyramid(stored(numbers((16, 16)), chunks=(4, 4)), store, **options)
    assert not store


def test_methods_do_not_combine_values_of_all_types():
    with pytest.raises(UnsupportedError, match="bool"):
        zarrdask.pyramid(stored(np.ones((4, 4), bool), chunks=2), {}, method="mean")


def test_an_existing_group_is_replaced_with_overwrite_only():
    array, store = stored(numbers((8, 8)), chunks=4), {}
    zarrdask.pyramid(array, store).execute(progress=False)
    with pytest.raises(NodeExistsError):
        zarrdask.pyramid(array, store)
    group = zarrdask.pyramid(array, store, factors=4, overwrite=True).execute(progress=False)
    check(group, array[...], [(4, 4)])
