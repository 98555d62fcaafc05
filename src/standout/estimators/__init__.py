"""Thin scikit-learn classes over the numerical core."""

from standout.estimators._discriminative import DiscriminativePCA
from standout.estimators._kernel import KernelDiscriminativePCA
from standout.estimators._pipeline import BackgroundPipeline, make_pipeline

__all__ = ["BackgroundPipeline", "DiscriminativePCA", "KernelDiscriminativePCA", "make_pipeline"]
