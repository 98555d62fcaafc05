"""Formulas as MathML, which browsers draw without scripts, pictures or the network.

The conversion from TeX is that of docutils.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

logger = logging.getLogger(__name__)


def _converted(tex: str, node: nodes.Node, *, as_block: bool) -> str:
    try:
        return tex2mathml(tex, as_block=as_block)
    except MathError as error:
        logger.warning("formula %r: %s", tex, error, location=node)
        return f"<code>{tex}</code>"


def _inline(writer: Any, node: nodes.math) -> None:
    writer.body.append(_converted(node.astext(), node, as_block=False))
    raise nodes.SkipNode


def _block(writer: Any, node: nodes.math_block) -> None:
    writer.body.append('<div class="formula">')
    if node["number"]:
        writer.body.append(
            f'<span class="eqno">({get_node_equation_number(writer, node)})</span>'
        )
    writer.body.append(_converted(node.astext(), node, as_block=True))
    writer.body.append("</div>")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Offer "mathml" as a renderer of formulas."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
