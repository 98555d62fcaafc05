"""Choices by held-out folds, the held-out ratio, weights of backgrounds, and inference by resampling."""

from standout.selection._bootstrap import Bootstrap, bootstrap
from standout.selection._choose import Path, choose, choose_columns, rule
from standout.selection._choose import grid as grid
from standout.selection._choose import ridge_unit as ridge_unit
from standout.selection._data import Data as Data
from standout.selection._data import Folds as Folds
from standout.selection._data import Places as Places
from standout.selection._data import TallData as TallData
from standout.selection._data import make_data as make_data
from standout.selection._data import plan_folds as plan_folds
from standout.selection._held_out import HeldOut, judge
from standout.selection._inference import PermutationTest, permutation_test
from standout.selection._inference import count_components as count_components
from standout.selection._means import MeanDifferences, mean_differences
from standout.selection._weights import choose_weights
from standout.selection._weights import simplex_grid as simplex_grid

# Other names are for packages of the library only.
__all__ = ["Bootstrap", "HeldOut", "MeanDifferences", "Path", "PermutationTest"]
__all__ += ["bootstrap", "choose", "choose_columns", "choose_weights", "judge", "mean_differences", "permutation_test"]
__all__ += ["rule"]
