"""Choices by held-out folds, the held-out ratio, weights of backgrounds, and inference by resampling."""

from standout.selection._bootstrap import Bootstrap, bootstrap
from standout.selection._choose import Path, choose, choose_columns, rule
from standout.selection._held_out import HeldOut, judge
from standout.selection._inference import PermutationTest, permutation_test
from standout.selection._means import MeanDifferences, mean_differences
from standout.selection._weights import choose_weights

__all__ = ["Bootstrap", "HeldOut", "MeanDifferences", "Path", "PermutationTest"]
__all__ += ["bootstrap", "choose", "choose_columns", "choose_weights", "judge", "mean_differences", "permutation_test"]
__all__ += ["rule"]
