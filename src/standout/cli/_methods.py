"""Options -> an estimator."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import click
from click.core import ParameterSource

IN_WORDS = {
    "dpca": "discriminative PCA",
    "kdpca": "kernel discriminative PCA",
    "cpca": "contrastive PCA",
    "kcpca": "kernel contrastive PCA",
    "pca": "PCA",
    "kpca": "kernel PCA",
}

KERNEL_METHODS = ("kdpca", "kcpca", "kpca")
POLYNOMIALS = ("poly", "homogeneous_polynomial", "inhomogeneous_polynomial")

# The methods that heed an option; all heed those that are not named here.
HEEDED_BY = {
    "shrinkage": ("dpca",),
    "test": ("dpca",),
    "weights": ("dpca", "kdpca", "cpca", "kcpca"),
    "alpha": ("cpca", "kcpca"),
    "kernel": KERNEL_METHODS,
    "bandwidth": KERNEL_METHODS,
    "degree": KERNEL_METHODS,
    "epsilon": ("kdpca",),
}


def uses_background(method: str) -> bool:
    """Tell whether a method compares at all."""
    return method not in ("pca", "kpca")


def check_heeded(context: click.Context, methods: Collection[str]) -> None:
    """Refuse an option that none of the methods heeds: whoever gives it means another method."""
    for name, heeding in HEEDED_BY.items():
        if _given(context, name) and not set(heeding) & set(methods):
            raise click.UsageError(
                f"--{name} is for {', '.join(heeding)}, not for {', '.join(methods)}. Leave it out, or choose another "
                "method."
            )
    _check_kernel(context)


def _check_kernel(context: click.Context) -> None:
    """Refuse a number that the kernel does not heed."""
    kernel = context.params["kernel"]
    if _given(context, "kernel") and context.params["bandwidth"] is not None and kernel != "gaussian":
        raise click.UsageError(f"--bandwidth is for --kernel gaussian, not {kernel}. Give one of the two.")
    if _given(context, "degree") and kernel not in POLYNOMIALS:
        raise click.UsageError(
            f"--degree is for --kernel {', '.join(POLYNOMIALS)}, not {kernel}. Leave it out, or choose one of these."
        )


def _given(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) is ParameterSource.COMMANDLINE


def make_estimator(options: dict[str, Any]) -> Any:
    """Make the estimator that the options ask for."""
    # Loaded here, and not for the help of a command.
    from standout import ContrastivePCA, DiscriminativePCA, KernelContrastivePCA, KernelDiscriminativePCA

    method = options["method"]
    if options["components"] == "auto" and method != "dpca":
        raise click.UsageError(f"--components auto is for dpca, not for {method}. Give a number.")
    if isinstance(options["weights"], str) and method in ("cpca", "kcpca"):
        raise click.UsageError(f"--weights {options['weights']} is for dpca and kdpca, not for {method}. Give numbers.")
    common = {"n_components": options["components"], "random_state": options["seed"]}
    if uses_background(method):
        common["background_weights"] = options["weights"]
    if method == "pca":
        return DiscriminativePCA(**common)
    if method == "dpca":
        shrinkage = None if options["shrinkage"] == "none" else options["shrinkage"]
        return DiscriminativePCA(**common, shrinkage=shrinkage, test=options["test"])
    if method == "cpca":
        return ContrastivePCA(**common, alpha=options["alpha"])
    kernel = _kernel(options)
    if method == "kcpca":
        return KernelContrastivePCA(**common, **kernel, alpha=options["alpha"])
    return KernelDiscriminativePCA(**common, **kernel, epsilon=options["epsilon"] if method == "kdpca" else "scaled")


def _kernel(options: dict[str, Any]) -> dict[str, Any]:
    if options["bandwidth"] is not None:
        return {"kernel": "gaussian", "kernel_params": {"bandwidth": options["bandwidth"]}}
    if options["kernel"] == "gaussian":
        raise click.UsageError("--kernel gaussian needs --bandwidth: how far apart are rows that are alike?")
    return {"kernel": options["kernel"], "degree": options["degree"]}
