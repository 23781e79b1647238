"""The names of imagecodecs are registered, each with its kind."""

from zarrdask.formats.codecs.codec import Kind
from zarrdask.formats.codecs.imagecodecs.names import KINDS
from zarrdask.formats.codecs.registry import CODECS


def test_all_names_have_the_prefix_and_are_known():
    assert all(name.startswith("imagecodecs_") for name in KINDS)
    assert all(CODECS.get(name) is not None for name in [*KINDS][:3])
    assert {*KINDS.values()} == {*Kind}


def test_codecs_that_are_not_safe_are_left_out():
    unsafe = "cms zstd1 sperr zfp hcomp jpegls pcx qoi szip"
    assert KINDS.keys().isdisjoint(f"imagecodecs_{name}" for name in unsafe.split())
