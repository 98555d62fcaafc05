"""``standout report``: the report of an earlier fit, made again."""

from __future__ import annotations

from pathlib import Path

import click

from standout.cli._display import Display
from standout.cli._folder import files_as_a_whole, is_result
from standout.cli._options import SectionedCommand, quiet_option
from standout.cli._result import write_page
from standout.report import Findings, restore


@click.command("report", cls=SectionedCommand)
@click.argument("folder", metavar="OUT")
@quiet_option
def command(folder: str, quiet: bool) -> None:
    """Make report.html and figure.png in OUT again, from what fit has kept there; the data are not needed."""
    display = Display(quiet=quiet)
    place = Path(folder).expanduser()
    if not place.is_dir() or not is_result(place):
        raise click.UsageError(f"{folder!r} is no folder that standout fit wrote. Name one that is.")
    with display.working():
        display.stage("making the report")
        findings = restore(place)
        with files_as_a_whole(place) as draft:
            _write(findings, draft, folder)
    display.say(f"Report: {place / 'report.html'}")


def _write(findings: Findings, draft: Path, folder: str) -> None:
    try:
        write_page(findings, draft)
    except (OSError, ImportError):
        raise
    # We wrote what is kept: if it cannot be shown, someone or something has changed it since.
    except Exception as error:
        raise click.ClickException(
            f"what is kept in {folder!r} is damaged ({type(error).__name__}: {error}). Make it again with standout fit."
        ) from None
