"""Thin scikit-learn classes over the numerical core."""

from standout.estimators._contrastive import ContrastivePCA
from standout.estimators._discriminative import DiscriminativePCA
from standout.estimators._kernel_contrastive import KernelContrastivePCA
from standout.estimators._kernel_discriminative import KernelDiscriminativePCA
from standout.estimators._pipeline import BackgroundPipeline, make_pipeline

__all__ = [
    "BackgroundPipeline",
    "ContrastivePCA",
    "DiscriminativePCA",
    "KernelContrastivePCA",
    "KernelDiscriminativePCA",
    "make_pipeline",
]
