"""Sums that may leave the place where the rows are: differentially private, with noise and accounting by OpenDP."""

from standout.private._moments import PrivateMoments, Spent
from standout.private._plan import from_ranges, required_rows, total_epsilon
from standout.private._release import release

__all__ = ["PrivateMoments", "Spent", "from_ranges", "release", "required_rows", "total_epsilon"]

# Shared with other packages, but not part of the public interface.
from standout.private._plan import warn_if_drowned as warn_if_drowned
