"""Mergeable sufficient statistics of a dataset: count, mean, scatter."""

from standout.moments._base import Moments, NormSums
from standout.moments.gather import gather
from standout.moments.root import RootMoments
from standout.moments.rows import RowMoments
from standout.moments.scatter import ScatterMoments
from standout.moments.shrinkage import ledoit_wolf

__all__ = ["Moments", "NormSums", "RootMoments", "RowMoments", "ScatterMoments", "gather", "ledoit_wolf"]
