"""``zarrdask rechunk``: an array rewritten with other chunks, shards or codecs."""

from typing import Any

import click

from zarrdask.cli import options
from zarrdask.rewrite.rechunk import rechunk


@click.command(
    epilog=options.examples(
        "zarrdask rechunk in.zarr out.zarr --chunks 256,64,64 --max-mem 1GiB",
        "zarrdask rechunk in.zarr out.zarr --chunks 10,10 --shards 100,100 --dry-run",
        "zarrdask rechunk in.zarr out.zarr --chunks 256,64 --compressor zstd --compressor crc32c",
    )
)
@click.argument("source")
@click.argument("target")
@click.option("--chunks", type=options.Numbers(), help="Lengths, one an axis, or one for all.")
@click.option(
    "--shards", type=options.Numbers(), help="Lengths of shards, multiples of the chunks'."
)
@click.option("--max-mem", default="256MiB", show_default=True, help="What a process may take.")
@click.option("--temp", metavar="URL", help="Where passes leave what the next one reads.")
@options.changes
@click.option("--overwrite", is_flag=True, help="Replace what is at TARGET.")
@click.option("--restart", is_flag=True, help="Throw away what an earlier run has done.")
@click.option("--dry-run", is_flag=True, help="Print the plan, and do nothing.")
@options.progress
@options.scheduler
@options.options_of_each
def command(
    source: str,
    target: str,
    *,
    chunks: tuple[int, ...] | None,
    shards: tuple[int, ...] | None,
    max_mem: str,
    temp: str | None,
    overwrite: bool,
    restart: bool,
    dry_run: bool,
    progress: bool,
    scheduler: str | None,
    storage_options: dict[str, Any] | None,
    source_options: dict[str, Any] | None,
    target_options: dict[str, Any] | None,
    **changes: Any,
) -> None:
    """Rewrite the array at SOURCE to TARGET with other chunks, shards, codecs, type or format.

    The plan is printed, then executed. What isn't given stays as it is in SOURCE. A run that was
    interrupted goes on where it was when the same command is given again.
    """
    plan = rechunk(
        source,
        target,
        storage_options=storage_options,
        source_options=source_options,
        target_options=target_options,
        chunks=options.one_or_all(chunks),
        shards=options.one_or_all(shards),
        max_mem=max_mem,
        temp=temp,
        overwrite=overwrite,
        scheduler=scheduler,
        **options.given(changes),
    )
    click.echo(str(plan))
    if dry_run:
        return
    try:
        plan.execute(scheduler, progress=progress, restart=restart)
    except KeyboardInterrupt as error:
        raise options.Interrupted("interrupted; the same command goes on from here") from error
