"""Kernels as coordinates: exact low rank, landmarks, random Fourier features."""

from standout.features._coordinates import Coordinates, choose_approximation, fit_coordinates, sample
from standout.features._kernels import (
    Kernel,
    NamedKernel,
    PrecomputedKernel,
    SumKernel,
    median_distance,
    resolve_kernel,
)
from standout.features._maps import CoordinateMap, FourierMap, IdentityMap, LandmarkMap
from standout.features._maps import centred_columns as centred_columns

__all__ = [
    "CoordinateMap",
    "Coordinates",
    "FourierMap",
    "IdentityMap",
    "Kernel",
    "LandmarkMap",
    "NamedKernel",
    "PrecomputedKernel",
    "SumKernel",
    "choose_approximation",
    "fit_coordinates",
    "median_distance",
    "resolve_kernel",
    "sample",
]

# Saved models name these classes by the public package. Its modules can then be reorganised.
for _class in [thing for thing in globals().values() if isinstance(thing, type)]:
    _class.__module__ = __name__
