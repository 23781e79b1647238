"""``zarrdask completion``: completion of commands and options in a shell."""

import click
from click.shell_completion import get_completion_class

from zarrdask.tools.cli import options

#: Changes of click's scripts: zsh loads its completion if the user's files have not done so, and
#: fish shows descriptions beyond their first comma.
_CHANGES = {
    "bash": ("", ""),
    "zsh": ("\n", "\n(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }\n"),
    "fish": ('string split ","', 'string split -m1 ","'),
}


@click.command(
    epilog=options.examples(
        "zarrdask completion bash >> ~/.bashrc",
        "zarrdask completion zsh >> ~/.zshrc",
        "zarrdask completion fish > ~/.config/fish/completions/zarrdask.fish",
    )
)
@click.argument("shell", type=click.Choice(list(_CHANGES)))
def command(shell: str) -> None:
    """Print the script that completes the commands and options of zarrdask in a shell."""
    from zarrdask.tools.cli.app import app

    completion = get_completion_class(shell)
    if completion is None:
        raise click.ClickException(f"click has no completion for {shell}")
    script = completion(app, {}, "zarrdask", "_ZARRDASK_COMPLETE").source()
    click.echo(script.replace(*_CHANGES[shell], 1))
