"""All commands under one name, each loaded only when it is asked for: some need packages that take long to load."""

from __future__ import annotations

from importlib import import_module

import click

from standout import __version__

# Where each command is, and what it is for in a line.
COMMANDS = {
    "fit": ("_fit", "Find what stands out in TARGET, and write a folder with the answer."),
    "transform": ("_transform", "Write the scores of new rows."),
    "report": ("_report", "Make the report of an earlier fit again."),
    "info": ("_info", "Say what a model is."),
    "compare": ("_compare", "Show PCA, cPCA, dPCA and their kernel forms side by side."),
    "demo": ("_demo", "The main job on data that need no file."),
}


class Commands(click.Group):
    """The commands, in the order in which one would meet them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load a command."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"standout.cli.{COMMANDS[cmd_name][0]}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without loading them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, words) for name, (_, words) in COMMANDS.items()])


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="standout", message="%(prog)s %(version)s")
def app() -> None:
    """What stands out in one dataset against others?

    Given a target and one or more backgrounds, finds the low-dimensional view in which the target varies and the
    backgrounds do not. Try: standout demo
    """
