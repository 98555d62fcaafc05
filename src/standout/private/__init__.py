"""Sums that may leave the site where the rows are: differentially private, with noise and accounting by OpenDP."""

from standout.private._release import from_ranges, release, required_rows, total_epsilon
from standout.private._release import warn_if_drowned as warn_if_drowned
from standout.private._sums import PrivateMoments, Spent

__all__ = ["PrivateMoments", "Spent", "from_ranges", "release", "required_rows", "total_epsilon"]
