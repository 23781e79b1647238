"""An option that a verb does not know is an error of the call, which tells what was meant."""

import dask.array as da
import pytest

import zarrdask


def verbs():
    z = zarrdask.create_array({}, shape=4, dtype="i4")
    group = zarrdask.create_group({})
    x = da.ones(4)
    return {
        "rechunk": [
            lambda **options: zarrdask.rechunk(z, {}, **options),
            lambda **options: zarrdask.rechunk(x, {}, **options),
            lambda **options: zarrdask.rechunk(group, {}, **options),
        ],
        "copy": [
            lambda **options: zarrdask.copy(z, {}, **options),
            lambda **options: zarrdask.copy(group, {}, **options),
            lambda **options: zarrdask.copy(group, in_place=True, **options),
        ],
        "to_zarr": [lambda **options: zarrdask.to_zarr(x, {}, **options)],
        "store": [lambda **options: zarrdask.store({"x": x}, group, **options)],
    }


@pytest.mark.parametrize(
    ("verb", "number"), [(name, at) for name, calls in verbs().items() for at in range(len(calls))]
)
def test_an_unknown_option_is_told_at_the_call(verb, number):
    call = verbs()[verb][number]
    with pytest.raises(TypeError, match=rf"^{verb}\(\) .* 'codec'; did you mean 'codecs'\?$"):
        call(codec="gzip")
    with pytest.raises(TypeError, match=rf"^{verb}\(\) .* 'zzz'; it has .*, compressors, "):
        call(zzz=1)


def test_options_of_the_verb_itself_are_meant_perhaps():
    z = zarrdask.create_array({}, shape=4, dtype="i4")
    with pytest.raises(TypeError, match="did you mean 'max_mem'"):
        zarrdask.rechunk(z, {}, max_memory="1 GiB")
