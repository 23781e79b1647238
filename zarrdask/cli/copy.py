"""``zarrdask copy``: an array or a hierarchy, to another place or into another format."""

from typing import Any

import click

from zarrdask.cli import options
from zarrdask.rewrite.copy import copy


@click.command(
    epilog=options.examples(
        "zarrdask copy data.zarr s3://bucket/data",
        "zarrdask copy old.zarr new.zarr --zarr-format 3",
        "zarrdask copy old.zarr --zarr-format 3 --in-place",
    )
)
@click.argument("source")
@click.argument("target", required=False)
@click.option("--chunks", type=options.Numbers(), help="Lengths, one an axis, or one for all.")
@click.option(
    "--shards", type=options.Numbers(), help="Lengths of shards, multiples of the chunks'."
)
@options.changes
@click.option("--include", multiple=True, metavar="PATTERN", help="Arrays that are copied.")
@click.option("--exclude", multiple=True, metavar="PATTERN", help="Nodes that are not copied.")
@click.option(
    "--skip-unsupported", is_flag=True, help="Leave out what the format can't hold, and go on."
)
@click.option("--overwrite", is_flag=True, help="Replace what is at TARGET.")
@click.option(
    "--in-place", is_flag=True, help="Write v3 metadata beside those of v2; touch no chunk."
)
@options.progress
@options.scheduler
@options.options_of_each
def command(
    source: str,
    target: str | None,
    *,
    chunks: tuple[int, ...] | None,
    shards: tuple[int, ...] | None,
    zarr_format: int | str | None,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    skip_unsupported: bool,
    overwrite: bool,
    in_place: bool,
    progress: bool,
    scheduler: str | None,
    storage_options: dict[str, Any] | None,
    source_options: dict[str, Any] | None,
    target_options: dict[str, Any] | None,
    **changes: Any,
) -> None:
    """Copy the array or hierarchy at SOURCE to TARGET, into another format if that is wanted.

    Encoded bytes are moved without decoding them where they are the same in both. Attributes,
    names of dimensions, fill values and consolidated metadata go with the arrays.
    """
    if (target is None) != in_place:
        raise click.UsageError("give TARGET, or --in-place")
    changes |= {"chunks": options.one_or_all(chunks), "shards": options.one_or_all(shards)}
    report = copy(
        source,
        target,
        storage_options=storage_options,
        source_options=source_options,
        target_options=target_options,
        zarr_format=zarr_format,
        overwrite=overwrite,
        in_place=in_place,
        include=include or None,
        exclude=exclude or None,
        on_unsupported="skip" if skip_unsupported else "raise",
        scheduler=scheduler,
        progress=progress,
        **options.given(changes),
    )
    click.echo(str(report))
