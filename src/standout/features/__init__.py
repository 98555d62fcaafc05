"""Kernels as coordinates: exact low rank, landmarks, random Fourier features."""

from standout.features._coordinates import (
    choose_approximation,
    chosen_landmarks,
    exact_coordinates,
    fourier_features,
    given_landmarks,
)
from standout.features._kernels import Kernel, NamedKernel, PrecomputedKernel, SumKernel, resolve_kernel
from standout.features._maps import FeatureMap, FourierMap, IdentityMap, KernelRowMap, KernelValueMap, LandmarkMap

__all__ = [
    "FeatureMap",
    "FourierMap",
    "IdentityMap",
    "Kernel",
    "KernelRowMap",
    "KernelValueMap",
    "LandmarkMap",
    "NamedKernel",
    "PrecomputedKernel",
    "SumKernel",
    "choose_approximation",
    "chosen_landmarks",
    "exact_coordinates",
    "fourier_features",
    "given_landmarks",
    "resolve_kernel",
]

# Shared with other packages, but not part of the public interface.
from standout.features._coordinates import BOUNDED_TOL as BOUNDED_TOL
from standout.features._kernels import check_kernel_matrix as check_kernel_matrix
from standout.features._kernels import check_kernel_numbers as check_kernel_numbers
from standout.features._kernels import median_distance as median_distance
from standout.features._kernels import reject_indefinite as reject_indefinite
from standout.features._maps import centre_columns as centre_columns
from standout.features._maps import give_same_coordinates as give_same_coordinates
from standout.features._sums import CoordinateSums as CoordinateSums
from standout.features._sums import FeatureWeights as FeatureWeights
from standout.features._sums import coordinate_folds as coordinate_folds
from standout.features._sums import coordinate_sums as coordinate_sums
from standout.features._sums import residual_share as residual_share

# Saved models and checkpoints name these classes by the public package. Its modules can then be reorganised.
for _class in [thing for thing in globals().values() if isinstance(thing, type)]:
    _class.__module__ = __name__
