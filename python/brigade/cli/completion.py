"""`brigade completion SHELL`: print the script that completes brigade's command line."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from brigade.errors import UsageError

# where each shell looks for a user's completions
_HOW = {
    "bash": 'eval "$(brigade completion bash)"             # in ~/.bashrc',
    "zsh": 'eval "$(brigade completion zsh)"              # in ~/.zshrc, after compinit',
    "fish": "brigade completion fish | source              # in ~/.config/fish/config.fish",
}
# where nothing is offered, bash does what it does without the script
_BASH = "-o nosort -o bashdefault -o default"


@click.command(
    "completion",
    help="Print the script that completes brigade's command line in SHELL.\n\n"
    "Load it when the shell starts.",
    epilog="\b\nExamples:\n" + "\n".join(f"  {line}" for line in _HOW.values()),
    short_help="Print shell completion for bash, zsh or fish.",
)
@click.argument("shell", type=click.Choice(list(_HOW)))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    completion = get_completion_class(shell)
    if completion is None:
        raise UsageError(f"click has no completion for {shell}", hint="upgrade click")
    root = ctx.find_root()
    script = completion(root.command, {}, "brigade", "_BRIGADE_COMPLETE").source()
    # where there is nothing to offer, bash does what it does without this script
    click.echo(
        script.replace("complete -o nosort ", "complete -o nosort -o bashdefault -o default ")
    )
