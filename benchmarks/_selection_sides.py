"""The sides of the selection benchmark: every choice that standout makes by itself, and the fit without that choice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from _sides import N_COMPONENTS, Side, listed_alphas

N_BACKGROUNDS = 3

Inputs = tuple[np.ndarray, Any]


def _contrastive_fit(**params: Any) -> Callable[[Inputs], Any]:
    def fit(inputs: Inputs) -> Any:
        from standout import ContrastivePCA

        X, background = inputs
        return ContrastivePCA(N_COMPONENTS, **params).fit(X, background=background)

    return fit


def _discriminative_fit(**params: Any) -> Callable[..., Any]:
    def fit(inputs: Inputs, times: int = 1) -> Any:
        """Fit; several times over where one fit is too short to be compared with anything."""
        from standout import DiscriminativePCA

        X, background = inputs
        for _ in range(times):
            model = DiscriminativePCA(N_COMPONENTS, **params).fit(X, background=background)
        return model

    return fit


def _analytic_test(inputs: Inputs) -> Any:
    from standout.selection import component_test

    return component_test(*inputs)


def _permutation_test(inputs: Inputs, times: int, shrinkage: str | None = None) -> Any:
    from standout.selection import component_test

    return component_test(*inputs, method="permutation", n_permutations=times, shrinkage=shrinkage)


def _stability(inputs: Inputs, times: int) -> Any:
    from standout.selection import stability

    return stability(*inputs, n_components=N_COMPONENTS, n_bootstrap=times)


def _scores(model: Any, X: np.ndarray) -> np.ndarray:
    return model.transform(X)


def _candidate_scores(model: Any, X: np.ndarray) -> list[np.ndarray]:
    """Give one view for each representative α, as the peer does."""
    centred = X - model.mean_
    return [centred @ components.T for components in model.candidates_]


def _found(text: Callable[[Any], str]) -> Callable[[Any], dict[str, Any]]:
    return lambda fitted: {"found": text(fitted)}


def _several(X: np.ndarray, Y: np.ndarray) -> Inputs:
    """Take the rows of all backgrounds apart; they lie one below the other in one file."""
    return X, np.array_split(Y, N_BACKGROUNDS)


def _listed(values: Any) -> str:
    return ", ".join(f"{value:.2g}" for value in values)


def _tested(answer: Any) -> str:
    made = f", {answer.n_permutations} permutations" if answer.n_permutations else ""
    return f"{answer.n_significant} real of {len(answer.p_values)} tested{made}"


_weights = _found(lambda model: f"weights {_listed(model.weights_)}")

SELECTION_SIDES: dict[str, Side] = {
    "alpha-one": Side(_contrastive_fit(alpha=1.0), _scores, facts=_found(lambda model: listed_alphas(model.alphas_))),
    "alpha-auto": Side(
        _contrastive_fit(),
        _candidate_scores,
        facts=_found(lambda model: f"{listed_alphas(model.alphas_)}; chosen {model.alpha_:.3g}"),
    ),
    "fit": Side(_discriminative_fit(), _scores),
    "fit-without-folds": Side(_discriminative_fit(held_out=None), _scores),
    "clusters": Side(
        _discriminative_fit(shrinkage="clusters"),
        _scores,
        facts=_found(lambda model: f"shrinkage {_listed(model.shrinkage_)}"),
    ),
    "weights-equal": Side(_discriminative_fit(), prepare=_several, facts=_weights),
    "weights-worst-case": Side(_discriminative_fit(background_weights="worst-case"), prepare=_several, facts=_weights),
    "test-analytic": Side(_analytic_test, facts=_found(_tested)),
    "test-permutation": Side(_permutation_test, facts=_found(_tested)),
    "stability": Side(
        _stability,
        facts=_found(lambda found: f"mean angles {_listed(np.degrees(found.mean_angle))}°"),
    ),
}
