"""Choices by held-out folds, the held-out ratio, weights of backgrounds, and inference by resampling."""

from standout.selection._bootstrap import Bootstrap, bootstrap
from standout.selection._choose import Path, choose, choose_columns, grid, ridge_unit, rule
from standout.selection._data import Data, Folds, Places, TallData, WideData, make_data, plan_folds
from standout.selection._held_out import HeldOut, judge
from standout.selection._inference import PermutationTest, count_components, permutation_test
from standout.selection._means import MeanDifferences, mean_differences
from standout.selection._weights import choose_weights, simplex_grid

__all__ = [
    "Bootstrap",
    "HeldOut",
    "MeanDifferences",
    "Path",
    "PermutationTest",
    "bootstrap",
    "choose",
    "choose_columns",
]
__all__ += ["choose_weights", "judge", "mean_differences", "permutation_test", "rule"]
# For other packages of the library only.
__all__ += ["Data", "Folds", "Places", "TallData", "WideData", "count_components", "grid", "make_data", "plan_folds"]
__all__ += ["ridge_unit", "simplex_grid"]
