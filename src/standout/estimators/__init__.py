"""Thin scikit-learn classes over the numerical core."""

from standout.estimators.discriminative import DiscriminativePCA
from standout.estimators.pipeline import BackgroundPipeline, make_pipeline

__all__ = ["BackgroundPipeline", "DiscriminativePCA", "make_pipeline"]
