"""Choosing well: α, ω, shrinkage, and how many components are real. Works on moments and scores."""

from standout.selection._analytic import ComponentTest
from standout.selection._groups import GroupSearch
from standout.selection._held_out import HeldOut, HeldOutPath
from standout.selection._paths import ComponentPath, alpha_path, shrinkage_path
from standout.selection._representatives import Representatives, representatives
from standout.selection._significance import component_test
from standout.selection._stability import Stability, stability
from standout.selection._weights import BestCase, WeightCandidates, best_weights, spectral_weights
from standout.selection._worst_case import Pose, WorstCase, worst_case_weights

__all__ = [
    "BestCase",
    "ComponentPath",
    "ComponentTest",
    "GroupSearch",
    "HeldOut",
    "HeldOutPath",
    "Pose",
    "Representatives",
    "Stability",
    "WeightCandidates",
    "WorstCase",
    "alpha_path",
    "best_weights",
    "component_test",
    "representatives",
    "shrinkage_path",
    "spectral_weights",
    "stability",
    "worst_case_weights",
]

# Shared with other packages, but not part of the public interface.
from standout.selection._analytic import analytic_test as analytic_test
from standout.selection._columns import FewColumns as FewColumns
from standout.selection._columns import FoldColumns as FoldColumns
from standout.selection._columns import few_of as few_of
from standout.selection._columns import numbers_of_columns as numbers_of_columns
from standout.selection._columns import rank_columns as rank_columns
from standout.selection._dealing import subjects_of as subjects_of
from standout.selection._dependence import alike_message as alike_message
from standout.selection._dependence import block_length as block_length
from standout.selection._dependence import likeness as likeness
from standout.selection._dependence import likeness_of as likeness_of
from standout.selection._dependence import windows as windows
from standout.selection._groups import sampled_scores as sampled_scores
from standout.selection._groups import search_groups as search_groups
from standout.selection._held_out import PATH_FOLDS as PATH_FOLDS
from standout.selection._held_out import judge as judge
from standout.selection._held_out import judge_path as judge_path
from standout.selection._held_out import judge_views as judge_views
from standout.selection._held_out import n_folds_for as n_folds_for
from standout.selection._inputs import Opened as Opened
from standout.selection._inputs import facts_of as facts_of
from standout.selection._inputs import gather_all as gather_all
from standout.selection._inputs import open_datasets as open_datasets
from standout.selection._inputs import require_rows as require_rows
from standout.selection._inputs import rows_of as rows_of
from standout.selection._inputs import weights_of as weights_of
from standout.selection._kernel_weights import learn_kernel_weights as learn_kernel_weights
from standout.selection._paths import ALPHAS as ALPHAS
from standout.selection._paths import SHRINKAGES as SHRINKAGES
from standout.selection._permutation import permutation_test as permutation_test
from standout.selection._problem import Problem as Problem
from standout.selection._representatives import AlphaChoice as AlphaChoice
from standout.selection._representatives import choose_alpha as choose_alpha
from standout.selection._row_folds import LeftOut as LeftOut
from standout.selection._row_folds import RowFolds as RowFolds
from standout.selection._row_folds import SpanFolds as SpanFolds
from standout.selection._significance import HARDLY_SHRUNKEN as HARDLY_SHRUNKEN
from standout.selection._significance import test_components as test_components
from standout.selection._weights import choose_weights as choose_weights

# Saved models name these classes by the public package. Its modules can then be reorganised.
for _class in (ComponentTest, GroupSearch, HeldOut, HeldOutPath):
    _class.__module__ = __name__
