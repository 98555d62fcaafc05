"""The estimators: thin scikit-learn classes over ``solve(moments, problem)``."""

from standout.estimators._kernel import KernelContrastivePCA, KernelDiscriminativePCA
from standout.estimators._linear import ContrastivePCA, DiscriminativePCA
from standout.estimators._pipeline import BackgroundPipeline, make_pipeline
from standout.estimators._search import BackgroundSearchCV

__all__ = [
    "BackgroundPipeline",
    "BackgroundSearchCV",
    "ContrastivePCA",
    "DiscriminativePCA",
    "KernelContrastivePCA",
    "KernelDiscriminativePCA",
    "make_pipeline",
]
