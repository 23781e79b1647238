"""``zarrdask completion``: completion of commands and options in a shell."""

import click
from click.shell_completion import get_completion_class

from zarrdask.cli import options


@click.command(
    epilog=options.examples(
        "zarrdask completion bash >> ~/.bashrc",
        "zarrdask completion zsh >> ~/.zshrc",
        "zarrdask completion fish > ~/.config/fish/completions/zarrdask.fish",
    )
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the script that completes the commands and options of zarrdask in a shell."""
    from zarrdask.cli.app import app

    completion = get_completion_class(shell)
    if completion is None:
        raise click.ClickException(f"click has no completion for {shell}")
    click.echo(completion(app, {}, "zarrdask", "_ZARRDASK_COMPLETE").source())
