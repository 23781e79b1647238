"""``zarrdask concat``: many arrays or groups as one, saved as a list of members."""

import click

from zarrdask.arrays.nodes.concatenations.concat import concat
from zarrdask.tools.cli import options
from zarrdask.tools.cli.info import as_data
from zarrdask.tools.cli.output import print_json, print_table


@click.command(
    epilog=options.examples(
        "zarrdask concat 'days/*.zarr' --axis time --save archive.json",
        "zarrdask concat 's3://bucket/era5-*.zarr' --component t2m --save t2m.parquet",
    )
)
@click.argument("pattern", nargs=-1, required=True)
@click.option(
    "--axis", default="0", show_default=True, help="The axis, or the name of the dimension."
)
@click.option("--component", help="The path of the array or group in each source.")
@click.option("--save", help="Where to save the list of members: *.json, *.parquet or a group.")
@click.option(
    "--missing",
    type=click.Choice(["error", "fill"]),
    default="error",
    show_default=True,
    help="Whether a source without an array raises an error, or reads as the fill value.",
)
@options.storage
@options.as_json
def command(
    pattern: tuple[str, ...],
    *,
    axis: str,
    save: str | None,
    as_json: bool,
    **arguments: object,
) -> None:
    """Show many arrays or groups as one, and save the list of them.

    PATTERN is a quoted pattern of paths or URLs, or the sources themselves. Other commands take the
    saved list as a URL. Only metadata is read; for groups, also the coordinates, which must agree.
    """
    sources = pattern[0] if len(pattern) == 1 else list(pattern)
    number = int(axis) if axis.lstrip("-").isdigit() else axis
    joined = concat(sources, number, **options.passed(arguments))
    if save is not None:
        joined.save(save, options.passed(arguments).get("storage_options"))
    if as_json:
        print_json(as_data(joined))
    else:
        print_table(list(joined.info.rows))
