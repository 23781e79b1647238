"""``zarrdask copy``: an array or a hierarchy, to another place or into another format."""

from typing import Any

import click

from zarrdask.cli import options
from zarrdask.cli.nodes import suggestions
from zarrdask.cli.output import print_report
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
@options.chunks_and_shards
@options.changes
@click.option(
    "--include",
    multiple=True,
    metavar="PATTERN",
    help="Paths of arrays to copy, such as '*/temperature'; may be repeated.",
)
@click.option(
    "--exclude", multiple=True, metavar="PATTERN", help="Paths of nodes to leave out; likewise."
)
@options.copying
@options.dry_run
@options.as_json
@options.progress
@options.scheduler
@options.options_of_each
def command(
    source: str,
    target: str | None,
    *,
    zarr_format: int | str | None,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    skip_unsupported: bool,
    overwrite: bool,
    in_place: bool,
    dry_run: bool,
    as_json: bool,
    progress: bool,
    scheduler: str | None,
    storage_options: dict[str, Any] | None,
    source_options: dict[str, Any] | None,
    target_options: dict[str, Any] | None,
    **changes: Any,
) -> None:
    """Copy the array or hierarchy at SOURCE to TARGET, optionally into another format.

    Encoded chunks are copied without decoding where they are the same in both. Attributes,
    dimension names, fill values and consolidated metadata are copied as well.
    """
    if (target is None) != in_place:
        raise click.UsageError("pass either TARGET or --in-place")
    resume = (
        "run the same command again to finish"
        if in_place
        else "arrays that were not complete can't be seen at TARGET; run the same command with "
        "--overwrite to begin again"
    )
    origin = source, None, source_options or storage_options
    with suggestions(origin), options.interruptible(resume):
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
            dry_run=dry_run,
            scheduler=scheduler,
            progress=progress,
            **options.parse_changes(changes),
        )
    print_report(report, as_json=as_json)
