"""A report of what a fit found: one page that explains itself, a picture, and a summary in numbers.

``page(examine(model, target, backgrounds))`` is the page, as one self-contained HTML text (needs ``standout[report]``).
"""

from standout.report._examine import examine
from standout.report._figure import draw
from standout.report._findings import Findings, Points, Stray, ViewPath
from standout.report._format import number as number
from standout.report._page import compare, page
from standout.report._store import restore, store
from standout.report._summary import summary

__all__ = [
    "Findings",
    "Points",
    "Stray",
    "ViewPath",
    "compare",
    "draw",
    "examine",
    "page",
    "restore",
    "store",
    "summary",
]

# Shared with other packages, but not part of the public interface.
from standout.report._charts import pixel_image as pixel_image
from standout.report._examine import check_image_shape as check_image_shape
from standout.report._format import brief as brief
from standout.report._format import correlation as correlation
from standout.report._format import p_value as p_value
from standout.report._format import phrased as phrased
from standout.report._format import shortened as shortened
from standout.report._page import stylesheet as stylesheet
from standout.report._scatter import scale_limits as scale_limits
from standout.report._sentences import assignments as assignments
from standout.report._sentences import headline as headline
from standout.report._sentences import question as question
from standout.report._sentences import ratio_meaning as ratio_meaning
from standout.report._sentences import title as title
