"""Mergeable sufficient statistics of a dataset: count, mean, scatter."""

from standout.moments._base import Moments, NormSums, WeightSums, ledoit_wolf
from standout.moments._gather import gather, gather_keyed, project
from standout.moments._robust import RobustWeights, Weighed, learn_from, learn_weights, weighed
from standout.moments._root import RootMoments
from standout.moments._rows import RowMoments
from standout.moments._scatter import ScatterMoments
from standout.moments._span import Span, span_of
from standout.moments._sums import FoldPattern, fold_of_rows

__all__ = [
    "FoldPattern",
    "Moments",
    "NormSums",
    "RobustWeights",
    "RootMoments",
    "RowMoments",
    "ScatterMoments",
    "Span",
    "Weighed",
    "WeightSums",
    "fold_of_rows",
    "gather",
    "gather_keyed",
    "learn_from",
    "learn_weights",
    "ledoit_wolf",
    "project",
    "span_of",
    "weighed",
]

# Saved models name these classes by the public package. Its modules can then be reorganised.
for _class in (
    FoldPattern,
    Moments,
    NormSums,
    RobustWeights,
    RootMoments,
    RowMoments,
    ScatterMoments,
    Span,
    WeightSums,
):
    _class.__module__ = __name__
