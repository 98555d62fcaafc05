"""Data in which something stands out, with the answer known: what a method should find.

Generators (``make_...``) need no files. Loaders (``load_...``) read real data from a folder, that in the environment
variable ``STANDOUT_DATA`` if none is given, and fetch them from their public source only if asked with
``download=True``. ``..._contrast`` and ``make_digits_over_...`` cut the paper's targets and backgrounds from these.
"""

from standout.datasets._contrast import Contrast, FactorModel, ImageContrast
from standout.datasets._images import make_digits_over_photographs
from standout.datasets._paper import (
    faces_contrast,
    make_digits_over_frogs,
    make_digits_over_girls,
    mhealth_contrast,
    mice_contrast,
)
from standout.datasets._real import load_frogs, load_girls, load_mhealth, load_mice_protein, load_mnist, load_yale_faces
from standout.datasets._records import Digits, Faces, MHealth, MiceProtein, Photographs
from standout.datasets._synthetic import (
    make_circles_one_background,
    make_circles_two_backgrounds,
    make_factor_model,
    make_gaussians_two_backgrounds,
)

__all__ = [
    "Contrast",
    "Digits",
    "Faces",
    "FactorModel",
    "ImageContrast",
    "MHealth",
    "MiceProtein",
    "Photographs",
    "faces_contrast",
    "load_frogs",
    "load_girls",
    "load_mhealth",
    "load_mice_protein",
    "load_mnist",
    "load_yale_faces",
    "make_circles_one_background",
    "make_circles_two_backgrounds",
    "make_digits_over_frogs",
    "make_digits_over_girls",
    "make_digits_over_photographs",
    "make_factor_model",
    "make_gaussians_two_backgrounds",
    "mhealth_contrast",
    "mice_contrast",
]
