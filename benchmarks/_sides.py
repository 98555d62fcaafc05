"""The sides that are compared: how each is called, and how its two scores of the target are had.

Every import of a compared library is inside its side, because each peer lives in an environment
without the others. Peers are called with their own defaults, except for what they need to be told.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

N_COMPONENTS = 2
# Enough for the Cholesky factor of a singular background covariance, far below the unit noise.
REFERENCE_RIDGE = 1e-6
# How many spreads the mean of data far from zero is away from it.
FAR_SPREADS = 100.0
# Rows of an epoch, for what reads epochs: every shape is a whole number of them.
EPOCH_ROWS = 100


def _as_given(X: np.ndarray, Y: np.ndarray) -> Any:
    return X, Y


def _nothing(*_: Any) -> Any:
    return None


@dataclass(frozen=True)
class Side:
    """One side of the comparison.

    Attributes
    ----------
    fit
        The timed call, on what `prepare` returned and the options of the case.
    scores
        From the result of `fit` and the target, the target's scores: one array, or a list where the
        side returns several views to choose from, or None where it has none.
    prepare
        Puts the arrays into the side's own format before the clock starts.
    facts
        From the result of `fit`, what else is to be reported of it, fit for JSON; or None.
    """

    fit: Callable[..., Any]
    scores: Callable[[Any, np.ndarray], Any] = _nothing
    prepare: Callable[[np.ndarray, np.ndarray], Any] = _as_given
    facts: Callable[[Any], dict[str, Any] | None] = _nothing


def _centred(X: np.ndarray, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    X -= X.mean(axis=0)
    Y -= Y.mean(axis=0)
    return X, Y


def _reference_fit(inputs: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Two symmetric products and one partial solve: what a direct computation takes."""
    from scipy.linalg import eigh

    X, Y = inputs
    A, B = X.T @ X, Y.T @ Y
    A /= len(X)
    B /= len(Y)
    B.flat[:: len(B) + 1] += REFERENCE_RIDGE
    last = len(A) - 1
    wanted = (last - N_COMPONENTS + 1, last)
    return eigh(A, B, subset_by_index=wanted, overwrite_a=True, overwrite_b=True, check_finite=False)[1]


def _standout_fit(inputs: tuple[np.ndarray, np.ndarray], held_out: int | None = None) -> Any:
    """Fit without held-out ratios, which no other side computes, unless told otherwise."""
    from standout import DiscriminativePCA

    X, Y = inputs
    return DiscriminativePCA(n_components=N_COMPONENTS, shrinkage="auto", held_out=held_out).fit(X, background=Y)


def _gather(inputs: tuple[np.ndarray, np.ndarray]) -> Any:
    """Sum up both datasets, as a fit does before it solves anything."""
    from standout.moments import gather

    return [gather(rows, kind="scatter", norms=True) for rows in inputs]


def _far(X: np.ndarray, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Move both datasets, in place, far away from zero."""
    for rows in (X, Y):
        rows += FAR_SPREADS * rows.std(axis=0)
    return X, Y


def _sklearn_fit(inputs: tuple[np.ndarray, np.ndarray]) -> Any:
    from sklearn.decomposition import PCA

    return PCA(N_COMPONENTS).fit(inputs[0])


def _lda_fit(inputs: tuple[np.ndarray, np.ndarray]) -> Any:
    """Tell target from background: two classes have one score, along the difference of their means."""
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    rows, labels = inputs
    return LinearDiscriminantAnalysis().fit(rows, labels)


def _labelled(X: np.ndarray, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.vstack([X, Y]), np.repeat([1, 0], [len(X), len(Y)])


def _contrastive(*, standardize: bool = True, alpha: float | None = None) -> Side:
    """Fit and transform together: the eigenvectors are only computed in its `transform`.

    Without `alpha` it chooses among 0 and 40 values, and returns the scores for each that it chose.
    """
    how = {"alpha_selection": "auto"} if alpha is None else {"alpha_selection": "manual", "alpha_value": alpha}

    def fit(inputs: tuple[np.ndarray, np.ndarray]) -> Any:
        from contrastive import CPCA

        model = CPCA(n_components=N_COMPONENTS, standardize=standardize)
        return model.fit_transform(*inputs, return_alphas=True, **how)

    return Side(fit, lambda fitted, _: fitted[0], facts=lambda fitted: {"found": listed_alphas(fitted[1])})


def listed_alphas(alphas: Any) -> str:
    return "α " + ", ".join(f"{alpha:.3g}" for alpha in np.atleast_1d(alphas))


def _gcpca_fit(inputs: tuple[np.ndarray, np.ndarray]) -> Any:
    from generalized_contrastive_PCA import gcPCA

    model = gcPCA(method="v2")
    model.fit(*inputs)
    return model


def _rhopca_prepare(X: np.ndarray, Y: np.ndarray) -> Any:
    """Wrap both in what it reads: an AnnData object with a sparse matrix and a column of labels."""
    import pandas as pd
    from anndata import AnnData
    from scipy.sparse import csr_matrix

    group = np.repeat(["target", "background"], [len(X), len(Y)])
    names = pd.Index([f"row {i}" for i in range(len(group))])
    return AnnData(csr_matrix(np.vstack([X, Y])), obs=pd.DataFrame({"group": group}, index=names))


def _rhopca_fit(rows: Any) -> Any:
    from rhopca.core import rhoPCA

    model = rhoPCA(rows, "group", target="target", background="background", n_GEs=N_COMPONENTS)
    model.fit()
    return model


def _ccpca_fit(inputs: tuple[np.ndarray, np.ndarray]) -> Any:
    """Use the package's contrastive PCA with automatic α; its CCPCA answers another question, about clusters."""
    from cpca import CPCA

    return CPCA(n_components=N_COMPONENTS).fit(*inputs)


def _pcpca(gamma: float) -> Side:
    """Columns are rows to it, and it does not centre: both are done before the clock starts."""

    def fit(inputs: tuple[np.ndarray, np.ndarray]) -> Any:
        from pcpca import PCPCA

        model = PCPCA(n_components=N_COMPONENTS, gamma=gamma)
        model.fit(*inputs)
        return model

    def prepare(X: np.ndarray, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        X, Y = _centred(X, Y)
        return X.T, Y.T

    return Side(fit, lambda model, X: model.transform(X.T, X.T)[0].T, prepare)


def _epochs(X: np.ndarray, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Give centred rows as epochs of channels by times, with a class for each: those of the target are 1."""
    cut = [_cut(rows) for rows in _centred(X, Y)]
    return np.concatenate(cut), np.repeat([1, 0], [len(cut[0]), len(cut[1])])


def _cut(rows: np.ndarray) -> np.ndarray:
    """Cut rows into epochs; the few rows of a warm-up are one."""
    n_epochs = max(len(rows) // EPOCH_ROWS, 1)
    return rows.reshape(n_epochs, -1, rows.shape[1]).transpose(0, 2, 1)


def _mne_csp(reg: str | None = None) -> Side:
    """Common spatial patterns; its `transform` gives the power of epochs, so that scores are taken with its filters."""

    def fit(inputs: tuple[np.ndarray, np.ndarray]) -> Any:
        from mne.decoding import CSP

        return CSP(n_components=N_COMPONENTS, reg=reg).fit(*inputs)

    return Side(fit, lambda model, X: X @ model.filters_[:N_COMPONENTS].T, _epochs)


SIDES: dict[str, Side] = {
    "reference": Side(_reference_fit, lambda vectors, X: X @ vectors, _centred),
    "reference-gram": Side(lambda Z: Z @ Z.T, prepare=lambda X, Y: np.vstack(_centred(X, Y))),
    "standout": Side(_standout_fit, lambda model, X: model.transform(X)),
    "standout-far": Side(_standout_fit, lambda model, X: model.transform(X), _far),
    "gather": Side(_gather),
    "gather-far": Side(_gather, prepare=_far),
    "sklearn-pca": Side(_sklearn_fit, lambda model, X: model.transform(X)),
    "sklearn-lda": Side(_lda_fit, lambda model, X: model.transform(X), _labelled),
    "contrastive-manual": _contrastive(alpha=2),
    "contrastive-auto": _contrastive(),
    "contrastive-one": _contrastive(standardize=False, alpha=1),
    "contrastive-auto-plain": _contrastive(standardize=False),
    "gcpca": Side(_gcpca_fit, lambda model, _: model.Ra_scores_[:, :N_COMPONENTS]),
    "rhopca": Side(_rhopca_fit, lambda model, _: model.target_proj, _rhopca_prepare),
    "ccpca": Side(_ccpca_fit, lambda model, X: model.transform(X)),
    "pcpca": _pcpca(0.5),
    "pcpca-strong": _pcpca(0.9),
    "mne-csp": _mne_csp(),
    "mne-csp-shrunken": _mne_csp("ledoit_wolf"),
}
