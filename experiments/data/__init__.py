"""The paper's real data: files, downloads, and the targets and backgrounds that are taken from them."""

from experiments.data.files import FILES
from experiments.data.paper import (
    faces_contrast,
    make_digits_over_frogs,
    make_digits_over_girls,
    mhealth_contrast,
    mice_contrast,
)
from experiments.data.real import Dataset, load

__all__ = [
    "FILES",
    "Dataset",
    "faces_contrast",
    "load",
    "make_digits_over_frogs",
    "make_digits_over_girls",
    "mhealth_contrast",
    "mice_contrast",
]
