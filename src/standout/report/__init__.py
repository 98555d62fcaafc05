"""A report of what a fit found: one dict of findings, and a page, sentences and a picture over it."""

from standout.report._findings import findings
from standout.report._page import figure, page, sentences
from standout.report._report import Report, report

__all__ = ["Report", "figure", "findings", "page", "report", "sentences"]
