"""What stands out in one dataset against others: discriminative PCA."""

from standout.estimators import (
    BackgroundPipeline,
    ContrastivePCA,
    DiscriminativePCA,
    KernelContrastivePCA,
    KernelDiscriminativePCA,
    make_pipeline,
)
from standout.persistence import load, save

__version__ = "0.1.0.dev0"

__all__ = [
    "BackgroundPipeline",
    "ContrastivePCA",
    "DiscriminativePCA",
    "KernelContrastivePCA",
    "KernelDiscriminativePCA",
    "__version__",
    "load",
    "make_pipeline",
    "save",
]
