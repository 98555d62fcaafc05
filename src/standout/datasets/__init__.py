"""Data in which something stands out, with the answer known: what a method should find.

No generator needs a file or a download.
"""

from standout.datasets._generators import (
    Contrast,
    FactorModel,
    ImageContrast,
    make_circles_one_background,
    make_circles_two_backgrounds,
    make_digits_over_photographs,
    make_factor_model,
    make_gaussians_two_backgrounds,
)

__all__ = [
    "Contrast",
    "FactorModel",
    "ImageContrast",
    "make_circles_one_background",
    "make_circles_two_backgrounds",
    "make_digits_over_photographs",
    "make_factor_model",
    "make_gaussians_two_backgrounds",
]
