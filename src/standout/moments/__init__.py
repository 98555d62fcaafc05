"""Mergeable sufficient statistics of a dataset: count, mean, scatter."""

from standout.moments._base import Moments, NormSums, WeightSums, ledoit_wolf
from standout.moments._base import joined as joined
from standout.moments._base import own_shrinkage as own_shrinkage
from standout.moments._gather import gather, gather_keyed, project
from standout.moments._kinds import RowMoments, ScatterMoments
from standout.moments._robust import RobustWeights, Weighed, learn_from, learn_weights, weighed
from standout.moments._span import Span, pivoted_cholesky, span_of
from standout.moments._sums import FoldPattern

__all__ = [
    "FoldPattern",
    "Moments",
    "NormSums",
    "RobustWeights",
    "RowMoments",
    "ScatterMoments",
    "Span",
    "Weighed",
    "WeightSums",
    "gather",
    "gather_keyed",
    "learn_from",
    "learn_weights",
    "ledoit_wolf",
    "pivoted_cholesky",
    "project",
    "span_of",
    "weighed",
]

# Saved models store the name of the package for these classes, and not the name of the module. So classes can be moved
# to another module of the package without breaking saved models.
for _class in [thing for thing in globals().values() if isinstance(thing, type)]:
    _class.__module__ = __name__
