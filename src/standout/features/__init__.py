"""Kernels as coordinates: exact low rank, landmarks, random Fourier features."""

from standout.features._choice import choose_approximation
from standout.features._exact import exact_coordinates
from standout.features._kernels import Kernel, NamedKernel, PrecomputedKernel, SumKernel, resolve_kernel
from standout.features._landmarks import chosen_landmarks, fourier_features, given_landmarks
from standout.features._maps import (
    FeatureMap,
    FourierMap,
    IdentityMap,
    KernelRowMap,
    LandmarkMap,
    give_same_coordinates,
)
from standout.features._pivoted import pivoted_cholesky, random_pivots

__all__ = [
    "FeatureMap",
    "FourierMap",
    "IdentityMap",
    "Kernel",
    "KernelRowMap",
    "LandmarkMap",
    "NamedKernel",
    "PrecomputedKernel",
    "SumKernel",
    "choose_approximation",
    "chosen_landmarks",
    "exact_coordinates",
    "fourier_features",
    "give_same_coordinates",
    "given_landmarks",
    "pivoted_cholesky",
    "random_pivots",
    "resolve_kernel",
]
