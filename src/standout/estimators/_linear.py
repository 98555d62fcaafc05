"""What the linear estimators share: from datasets to components, and from rows to scores and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from sklearn.utils.validation import check_is_fitted

from standout._arrays import Array, Float, Rows, double, in_type_of, is_single
from standout._validation import (
    FindingWarning,
    Source,
    as_rows,
    check_fitted_place,
    check_n_scores,
    check_one_place,
    check_same_columns,
    dataset_names,
    reject_on_device,
    specimen,
    warn_user,
)
from standout._xp import columns_as_rows, is_foreign, largest
from standout.estimators._incremental import IncrementalTransformer
from standout.moments import CentredRows, Kind, Moments, RowMoments, gather, project
from standout.pencil import Solution, choose_solver

KIND_FOR_SOLVER: dict[str, Kind] = {
    "auto": "auto",
    "dense": "scatter",
    "lanczos": "scatter",
    "root": "root",
    "reduced": "rows",
    "lobpcg": "rows",
}


@dataclass(frozen=True, eq=False)
class LinearFit:
    """What a linear fit found.

    Attributes
    ----------
    target : Moments
    backgrounds : list of Moments
    weights : ndarray of shape (n_backgrounds,)
    solution : Solution
    """

    target: Moments
    backgrounds: list[Moments]
    weights: Float
    solution: Solution

    @property
    def accurate(self) -> bool:
        """Whether rounding has left enough digits in all that was found."""
        return self.solution.accurate


Fit = TypeVar("Fit", bound=LinearFit)


class LinearTransformer(IncrementalTransformer):
    """A transformer whose components are directions in the space of the features."""

    mean_: Float
    patterns_: Float
    n_components_: int
    solver: str

    def inverse_transform(self, X: Any) -> Array:
        """Map scores back to rows, through the patterns: ``X @ patterns_ + mean_``.

        This is the part of the data that the components carry; what they leave out stays at the mean.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Scores.

        Returns
        -------
        array of shape (n_samples, n_features)
            Of the library and on the device of the fitted data.
        """
        check_is_fitted(self)
        scores = as_rows(X, "the scores", min_rows=1, finite=True)
        check_fitted_place(scores, self.components_, type(self).__name__, "inverse_transform")
        check_n_scores(scores.shape[1], self.n_components_)
        rows: Array = double(scores) @ self.patterns_ + self.mean_
        return rows

    def _keep_linear(self, fit: LinearFit) -> None:
        """Keep what every linear fit has found."""
        self.mean_ = fit.target.mean
        self.components_ = columns_as_rows(fit.solution.vectors)
        self.patterns_ = columns_as_rows(fit.solution.patterns)
        self._keep(fit.solution, fit.target, fit.backgrounds, fit.weights)
        moments = [fit.target, *fit.backgrounds]
        # Rows are not kept beyond a fit: they are the user's.
        self._keep_sums(None if any(isinstance(part, RowMoments | CentredRows) for part in moments) else moments)

    def _sum(self, dataset: Any, name: str) -> Moments:
        kind: Kind = "root" if self.solver == "root" else "scatter"
        return gather(dataset, kind=kind, norms=True, single=False, name=name)

    def _check_merge(self, other: Any) -> None:
        """Moments of the same columns can always be added."""

    @property
    def _projection(self) -> Callable[[Rows], Array]:
        return LinearProjection(self.mean_, self.components_.T)


@dataclass(frozen=True, eq=False)
class LinearProjection:
    """From rows to scores, with nothing but what that takes: it may be sent to other processes.

    Attributes
    ----------
    mean : ndarray of shape (n_features,)
    filters : ndarray of shape (n_features, n_components)
    """

    mean: Float
    filters: Float

    def __call__(self, rows: Rows) -> Array:
        """Give the scores of these rows."""
        return in_type_of(project(rows, self.mean, self.filters), rows)


def fit_linear(
    datasets: Sequence[Any],
    answer: Callable[[list[Moments], str], Fit],
    *,
    n_components: int,
    solver: str,
    norms: bool = False,
    roots: bool = True,
) -> Fit:
    """Gather the moments of the target, `datasets[0]`, and the backgrounds, and let `answer` solve with a solver.

    The data are read once. They are read again, where they can be, if the solution shows that rounding has cost more
    than half of the digits: single-precision data then in double precision, and data too ill-conditioned for a
    covariance matrix as QR roots (unless `roots` is false). `n_components` is for the choice of the solver only.
    """
    names = dataset_names(len(datasets))
    streams = [dataset for dataset in datasets if isinstance(dataset, Source)]
    chosen = solver
    sizes = [_size(dataset) for dataset in datasets]
    known = [size for size in sizes if size is not None]
    if solver == "auto" and len(known) == len(datasets):
        n_rows, n_features = sum(n_rows for n_rows, _ in known), known[0][1]
        on_device = specimen(datasets[0]) is not None and is_foreign(specimen(datasets[0]))
        chosen = choose_solver(n_rows, n_features, n_components, on_device=on_device)

    def attempt(solver: str, single: bool) -> Fit:
        kind = KIND_FOR_SOLVER[solver]
        moments = [
            gather(dataset, kind=kind, norms=norms and number > 0, single=single, name=name)
            for number, (name, dataset) in enumerate(zip(names, datasets, strict=True))
        ]
        for name, background in zip(names[1:], moments[1:], strict=True):
            check_same_columns(background.n_features, None, name, moments[0].n_features, None, "the target")
        check_one_place([part.mean for part in moments], names)
        if solver in ("lanczos", "lobpcg"):
            reject_on_device(moments[0].mean, f"solver={solver!r}", "Use solver='auto'.")
        return answer(moments, solver)

    # What is read in parts is multiplied in double precision at once: reading it costs more than the products.
    fit = attempt(chosen, single=not streams)
    if not all(stream.again for stream in streams):
        return fit
    if not streams and any(is_single(dataset) for dataset in datasets) and _lost(fit, chosen):
        fit = attempt(chosen, single=False)
    by_matrix = chosen in ("dense", "lanczos")
    if roots and by_matrix and (fit.solution.solver == "root" or (solver == "auto" and not fit.solution.accurate)):
        fit = attempt("root", single=False)
    return fit


def _size(dataset: Any) -> tuple[int, int] | None:
    """Give the numbers of rows and columns, where they are known before the dataset is read."""
    if not isinstance(dataset, Source):
        return dataset.shape[0], dataset.shape[1]
    return None if dataset.n_rows is None or dataset.width is None else (dataset.n_rows, dataset.width)


def _lost(fit: LinearFit, chosen: str) -> bool:
    """Tell whether a fit has lost too many digits, or its solver has had to give up."""
    return not fit.accurate or (fit.solution.solver == "root" and chosen != "root")


def warn_of_trouble(solution: Solution) -> None:
    """Say in one sentence what a singular or badly conditioned background means for the answer."""
    category: type[Warning] = UserWarning
    if solution.singular and solution.n_absent:
        text = (
            f"the background covariance is singular: {solution.n_absent} direction(s) in which the target varies do "
            "not occur in the background at all. Their ratio is inf; they come first, ordered by the target's "
            "variance. Shrinkage, for example shrinkage=0.1, gives every direction a finite ratio."
        )
        category = FindingWarning
    elif solution.singular:
        text = (
            "the background covariance is singular: some directions occur in no dataset at all (constant or dependent "
            "columns). They are left out. Shrinkage, for example shrinkage=0.1, takes them in."
        )
    elif not solution.accurate:
        text = (
            f"the background covariance is badly conditioned: rounding may have changed a ratio by a share of "
            f"{largest(solution.rounding):.0e}. Use shrinkage, or solver='root', which loses fewer digits."
        )
    else:
        return
    warn_user(text, category)
