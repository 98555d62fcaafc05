"""Thin scikit-learn classes over the numerical core."""

# First: scipy.stats, which scikit-learn loads, takes longer the more modules are loaded before it.
import sklearn.base  # noqa: F401

from standout.estimators._contrastive import ContrastivePCA
from standout.estimators._discriminative import DiscriminativePCA
from standout.estimators._kernel_contrastive import KernelContrastivePCA
from standout.estimators._kernel_discriminative import KernelDiscriminativePCA
from standout.estimators._pipeline import BackgroundPipeline, make_pipeline
from standout.estimators._search import BackgroundSearchCV
from standout.estimators._testing import fitted_test

__all__ = [
    "BackgroundPipeline",
    "BackgroundSearchCV",
    "ContrastivePCA",
    "DiscriminativePCA",
    "KernelContrastivePCA",
    "KernelDiscriminativePCA",
    "fitted_test",
    "make_pipeline",
]

# Shared with other packages, but not part of the public interface.
from standout.estimators._base import foreign_attributes as foreign_attributes
from standout.estimators._incremental import reject_without_sums as reject_without_sums
from standout.estimators._kernel_discriminative import EPSILONS as EPSILONS
from standout.estimators._kernel_discriminative import ridge_scale as ridge_scale

# Saved models name these classes by the public package. Its modules can then be reorganised.
for _class in (BackgroundPipeline, ContrastivePCA, DiscriminativePCA, KernelContrastivePCA, KernelDiscriminativePCA):
    _class.__module__ = __name__
