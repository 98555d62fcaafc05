"""Differentially private sums, which may leave the site of the rows. OpenDP provides noise and accounting."""

from standout.private._release import from_ranges, release, required_rows, total_epsilon
from standout.private._release import warn_if_drowned as warn_if_drowned
from standout.private._sums import PrivateMoments, Spent

__all__ = ["PrivateMoments", "Spent", "from_ranges", "release", "required_rows", "total_epsilon"]
