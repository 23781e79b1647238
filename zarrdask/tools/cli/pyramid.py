"""``zarrdask pyramid``: an array at several resolutions."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import click

from zarrdask.errors import ZarrdaskError
from zarrdask.tools.cli import options
from zarrdask.tools.cli.nodes import both_locations, suggestions
from zarrdask.tools.pyramids.conventions import CONVENTIONS
from zarrdask.tools.pyramids.kernels import Reduction
from zarrdask.tools.pyramids.pyramid import pyramid


def _by_name(kind: Callable[[str], Any]) -> Callable[[str], dict[str, Any]]:
    """Return a function that parses values by dimension, such as ``y=0.5,x=0.5``."""

    def parse(text: str) -> dict[str, Any]:
        pairs = dict(options.key_value(item.strip()) for item in text.split(","))
        try:
            return {name: kind(value) for name, value in pairs.items()}
        except (TypeError, ValueError):
            raise click.BadParameter(f"{text!r} has a value that is no {kind.__name__}") from None

    return parse


def _factors(text: str) -> Any:
    with suppress(click.BadParameter):
        factors = options.lengths(text)
        if not isinstance(factors, str):
            return factors
    raise click.BadParameter(f"{text!r} is not a number of cells, like 2 or 1,2,2 or y=2,x=2")


def _numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(map(float, text.strip("()[] ").split(",")))
    except ValueError:
        raise click.BadParameter(f"{text!r} is not six numbers, like 10,0,500,0,-10,4000") from None


@click.command(
    epilog=options.examples(
        "zarrdask pyramid image.zarr/raw image-ome.zarr --levels 5 --scale y=0.65,x=0.65",
        "zarrdask pyramid labels.zarr/0 out.zarr --method mode --factors y=2,x=2 --dry-run",
        "zarrdask pyramid dem.zarr/z out.zarr --convention geozarr --crs EPSG:32633",
    )
)
@options.location("source")
@options.location("target")
@click.option("--levels", type=int, help="The number of levels, including level 0.")
@click.option(
    "--factors",
    type=_factors,
    metavar="N,N,...",
    help="Cells that become one cell of the next level: one number for the last two axes, one for "
    "each axis, or by dimension: y=2,x=2.  [default: 2]",
)
@click.option(
    "--method",
    type=click.Choice(tuple(Reduction.METHODS)),
    help="How the cells of a window become one.  [default: mode for labels and bool, else mean]",
)
@click.option(
    "--borders",
    type=click.Choice(("trim", "pad", "partial")),
    help="How cells at the end of an axis that fill no window are treated.",
)
@click.option(
    "--convention",
    type=click.Choice([name or "none" for name in CONVENTIONS]),
    default="ome",
    show_default=True,
    help="How the attributes of the group describe the levels.",
)
@click.option("--name", help="The name of the image (ome).")
@click.option(
    "--scale",
    type=_by_name(float),
    metavar="NAME=X,...",
    help="The distance between the elements of the source, by dimension (ome).",
)
@click.option(
    "--units",
    type=_by_name(str),
    metavar="NAME=UNIT,...",
    help="The units of the scale, such as y=micrometer,x=micrometer (ome).",
)
@click.option("--crs", help="The coordinate reference system: a code or WKT (geozarr).")
@click.option(
    "--transform",
    type=_numbers,
    metavar="A,B,C,D,E,F",
    help="The affine transformation of the source (geozarr).",
)
@options.new_array
@options.planned
def command(source: str, target: str, *, convention: str, **arguments: Any) -> Any:
    """Write the array at SOURCE to the group TARGET at several resolutions, in one pass.

    The plan is printed and executed. Properties that are not given stay as in SOURCE. The same
    command resumes a run that was interrupted.
    """
    arguments = options.passed(arguments)
    arguments["convention"] = None if convention == "none" else convention
    with suggestions(both_locations(source, target, arguments)[0]):
        return _planned(source, target, arguments)


def _planned(source: str, target: str, arguments: dict[str, Any]) -> Any:
    try:
        return pyramid(source, target, **arguments)
    except ZarrdaskError:
        raise
    except TypeError as error:  # an option that is another convention's
        raise click.UsageError(str(error)) from error
