"""Mergeable sufficient statistics of a dataset: count, mean, scatter."""

from standout.moments._base import Moments, NormSums, WeightSums, ledoit_wolf
from standout.moments._folds import Folds
from standout.moments._gather import gather, gather_folds, project
from standout.moments._partition import PARTITION_SCHEMA, gather_partition, merge_partitions
from standout.moments._robust import RobustWeights, learn_weights
from standout.moments._root import RootMoments
from standout.moments._rows import CentredRows, RowMoments
from standout.moments._scatter import ScatterMoments

__all__ = [
    "PARTITION_SCHEMA",
    "CentredRows",
    "Folds",
    "Moments",
    "NormSums",
    "RobustWeights",
    "RootMoments",
    "RowMoments",
    "ScatterMoments",
    "WeightSums",
    "gather",
    "gather_folds",
    "gather_partition",
    "learn_weights",
    "ledoit_wolf",
    "merge_partitions",
    "project",
]

# Shared with other packages, but not part of the public interface.
from standout.moments._folds import FoldPart as FoldPart
from standout.moments._folds import dealt_folds as dealt_folds
from standout.moments._folds import fold_of_rows as fold_of_rows
from standout.moments._folds import folds_of_datasets as folds_of_datasets
from standout.moments._folds import folds_of_numbers as folds_of_numbers
from standout.moments._folds import most_folds as most_folds
from standout.moments._gather import Kind as Kind
from standout.moments._gather import Part as Part
from standout.moments._gather import in_span as in_span
from standout.moments._robust import Weighed as Weighed
from standout.moments._robust import Weighing as Weighing
from standout.moments._robust import joined_columns as joined_columns
from standout.moments._robust import learned_weights as learned_weights
from standout.moments._robust import weighed as weighed
from standout.moments._rows import KeptRows as KeptRows
from standout.moments._rows import joint_gram as joint_gram
from standout.moments._rows import keep_joint_gram as keep_joint_gram
from standout.moments._rows import squares_by_group as squares_by_group

# Saved models and checkpoints name these classes by the public package. Its modules can then be reorganised.
_CLASSES = (CentredRows, Folds, Moments, NormSums, RobustWeights, RootMoments, RowMoments, ScatterMoments, WeightSums)
for _class in _CLASSES:
    _class.__module__ = __name__
