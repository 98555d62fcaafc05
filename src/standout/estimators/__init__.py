"""The estimators: thin scikit-learn classes over ``solve(moments, problem)``."""

from standout.estimators._kernel import KernelContrastivePCA, KernelDiscriminativePCA
from standout.estimators._linear import ContrastivePCA, DiscriminativePCA

__all__ = ["ContrastivePCA", "DiscriminativePCA", "KernelContrastivePCA", "KernelDiscriminativePCA"]
