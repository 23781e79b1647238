"""``zarrdask manifest``: the stored objects of a node, with their digests."""

import click

from zarrdask.tools.cli import options
from zarrdask.tools.cli.nodes import Location, suggestions
from zarrdask.tools.cli.output import print_report
from zarrdask.tools.verification.node_manifest import manifest


@click.command(
    epilog=options.examples(
        "zarrdask manifest data.zarr --save data.json",
        "zarrdask manifest s3://bucket/data --digest none --versions --save data.parquet",
    )
)
@options.one_node
@click.option(
    "--save",
    type=click.Path(dir_okay=False, writable=True),
    metavar="FILE",
    help="Write the manifest to a file: Parquet if its name ends with .parquet, or JSON.",
)
@click.option(
    "--digest",
    type=click.Choice(["sha256", "crc32c", "none"]),
    default="sha256",
    show_default=True,
    help="The algorithm of digests that the store does not have.",
)
@click.option("--versions", is_flag=True, help="Request the IDs of versions, one by one.")
@click.option("--keep", is_flag=True, help="Store the manifest in the node, too.")
def command(
    location: Location, *, save: str | None, digest: str, versions: bool, keep: bool, as_json: bool
) -> None:
    """List the keys, sizes, versions and digests of all objects of the node at URL.

    A saved manifest shows what has changed since (diff), and whether a copy is complete and
    undamaged (verify --manifest). One that is kept in the node shows it, too (verify
    --stored-manifest), and sync need not read objects that have not changed since.
    """
    url, component, storage_options = location
    with suggestions(location):
        entries = manifest(
            url,
            component=component,
            storage_options=storage_options,
            digest=None if digest == "none" else digest,  # type: ignore[arg-type]
            versions=versions,
            keep=keep,
        )
    if save is not None:
        entries.save(save)
    print_report(entries, as_json=as_json)
