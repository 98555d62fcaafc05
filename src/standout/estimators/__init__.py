"""The estimators: scikit-learn classes that compute sums of the data and call ``solve(sums, problem)``."""

from typing import Any

from standout.estimators._kernel import KernelContrastivePCA, KernelDiscriminativePCA
from standout.estimators._linear import ContrastivePCA, DiscriminativePCA
from standout.estimators._pipeline import BackgroundPipeline, make_pipeline
from standout.estimators._search import BackgroundSearchCV

# Each estimator by the name of its method on the command line, such as "dpca".
ESTIMATORS: dict[str, Any] = {
    one.method: one for one in (DiscriminativePCA, ContrastivePCA, KernelDiscriminativePCA, KernelContrastivePCA)
}
__all__ = [
    "BackgroundPipeline",
    "BackgroundSearchCV",
    "ContrastivePCA",
    "DiscriminativePCA",
    "KernelContrastivePCA",
    "KernelDiscriminativePCA",
    "make_pipeline",
]
