"""Mergeable sufficient statistics of a dataset: count, mean, scatter."""

from standout.moments._base import Moments, NormSums
from standout.moments._centred import CentredRows
from standout.moments._gather import Kind, gather
from standout.moments._projection import project
from standout.moments._root import RootMoments
from standout.moments._rows import RowMoments, joint_gram
from standout.moments._scatter import ScatterMoments
from standout.moments._shrinkage import ledoit_wolf
from standout.moments._span import in_span

__all__ = [
    "CentredRows",
    "Kind",
    "Moments",
    "NormSums",
    "RootMoments",
    "RowMoments",
    "ScatterMoments",
    "gather",
    "in_span",
    "joint_gram",
    "ledoit_wolf",
    "project",
]
