"""Choosing well: α, ω, shrinkage, and how many components are real. Works on moments and scores."""

from standout.selection._groups import GroupSearch
from standout.selection._paths import ComponentPath, alpha_path, shrinkage_path
from standout.selection._pose import Pose
from standout.selection._representatives import Representatives, representatives
from standout.selection._significance import ComponentTest, component_test
from standout.selection._stability import Stability, stability
from standout.selection._weights import BestCase, WeightCandidates, best_weights, spectral_weights
from standout.selection._worst_case import WorstCase, worst_case_weights

__all__ = [
    "BestCase",
    "ComponentPath",
    "ComponentTest",
    "GroupSearch",
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
