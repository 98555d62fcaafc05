"""The directive ``command-help``: the help of a command of ``standout``, as it is when the pages are built."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class CommandHelp(SphinxDirective):
    """Insert what ``standout COMMAND --help`` prints."""

    required_arguments = 0
    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Run the command, and return its help as a literal block."""
        words = [sys.executable, "-m", "standout", *self.arguments, "--help"]
        environment = {**os.environ, "COLUMNS": "80"}
        found = subprocess.run(
            words, env=environment, capture_output=True, text=True, check=True
        )
        text = found.stdout.replace("Usage: python -m standout", "Usage: standout").rstrip()
        return [nodes.literal_block(text, text, language="text")]


def setup(app: Sphinx) -> dict[str, Any]:
    """Offer the directive."""
    app.add_directive("command-help", CommandHelp)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
