"""What the linear estimators share: from datasets to components, and from rows to scores and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from sklearn.utils.validation import check_is_fitted

from standout._arrays import Array, Float, Rows, double, in_type_of, is_single
from standout._checks import as_rows, check_one_place, check_same_columns, reject_on_device
from standout._messages import InvalidValueError, warn_user
from standout._xp import columns_as_rows, is_foreign, largest
from standout.estimators._base import check_same_place
from standout.estimators._incremental import IncrementalTransformer
from standout.moments import CentredRows, Kind, Moments, RowMoments, ScatterMoments, gather, project
from standout.pencil import Solution, choose_solver
from standout.sources import Source

# Share of a value from which on an error of rounding is worth a warning.
VISIBLE = 1e-6
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
        check_same_place(scores, self, "inverse_transform")
        if scores.shape[1] != self.n_components_:
            raise InvalidValueError(
                "there are {given} scores in a row, but the model has {limit} components",
                given=scores.shape[1],
                limit=self.n_components_,
                advice="Give one for each.",
            )
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

    def _sum(self, dataset: Source) -> Moments:
        kind: Kind = "root" if self.solver == "root" else "scatter"
        return gather(dataset, kind=kind, norms=True, single=False, name=dataset.name)

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
    datasets: Sequence[Source],
    answer: Callable[[list[Moments], str], Fit],
    *,
    n_components: int,
    solver: str,
    norms: bool = False,
    roots: bool = True,
) -> Fit:
    """Gather the moments of the target, `datasets[0]`, and the backgrounds, and let `answer` solve with a solver.

    The data are read once. If the solution shows that rounding has cost more than half of the digits, data that can be
    read again are: single-precision data in double precision, and data that are too ill-conditioned for a covariance
    matrix as QR roots (unless `roots` is false). `n_components` is for the choice of the solver only.
    """
    in_memory = all(dataset.in_memory for dataset in datasets)
    chosen = solver
    n_rows = [dataset.n_rows for dataset in datasets if dataset.n_rows is not None]
    n_features = datasets[0].width
    if solver == "auto" and len(n_rows) == len(datasets) and n_features is not None:
        on_device = datasets[0].specimen is not None and is_foreign(datasets[0].specimen)
        chosen = choose_solver(sum(n_rows), n_features, n_components, on_device=on_device)

    def attempt(solver: str, single: bool) -> Fit:
        kind = KIND_FOR_SOLVER[solver]
        moments = [
            gather(dataset, kind=kind, norms=norms and number > 0, single=single, name=dataset.name)
            for number, dataset in enumerate(datasets)
        ]
        for dataset, part in zip(datasets[1:], moments[1:], strict=True):
            check_same_columns(part.n_features, None, dataset.name, moments[0].n_features, None, "the target")
        check_one_place([part.mean for part in moments], [dataset.name for dataset in datasets])
        if solver in ("lanczos", "lobpcg"):
            reject_on_device(moments[0].mean, f"solver={solver!r}", "Use solver='auto'.")
        return answer(moments, solver)

    # Data that are read in parts are converted to float64 before multiplying: reading costs more than the products.
    fit = attempt(chosen, single=in_memory)
    if not all(dataset.again for dataset in datasets):
        return fit
    if in_memory and any(is_single(dataset.specimen) for dataset in datasets) and _lost(fit, chosen):
        fit = attempt(chosen, single=False)
    # If the number of rows is not known before they are read, the solver is chosen by what was gathered.
    by_matrix = any(isinstance(part, ScatterMoments) for part in (fit.target, *fit.backgrounds))
    if roots and by_matrix and (fit.solution.solver == "root" or (solver == "auto" and not fit.solution.accurate)):
        fit = attempt("root", single=False)
    return fit


def _lost(fit: LinearFit, chosen: str) -> bool:
    """Tell whether a fit has lost too many digits, or its solver has had to give up."""
    return not fit.accurate or (fit.solution.solver == "root" and chosen != "root")


def warn_of_trouble(solution: Solution) -> None:
    """Warn if the background is singular or the data are badly conditioned, and say what that means for the answer."""
    if solution.singular and solution.n_absent:
        warn_user(
            "the background covariance is singular: {n_absent} direction(s) in which the target varies do not occur in "
            "the background at all. Their ratio is inf; they come first, ordered by the target's variance",
            n_absent=solution.n_absent,
            advice="Shrinkage, for example {p.shrinkage:0.1}, gives every direction a finite ratio.",
            finding=True,
        )
    elif solution.singular:
        warn_user(
            "the background covariance is singular: some directions occur in no dataset at all, as far as double "
            "precision can tell (constant or dependent columns, or columns beside a few huge entries). They are left "
            "out",
            advice="Shrinkage, for example {p.shrinkage:0.1}, takes them in.",
        )
    else:
        warn_of_rounding(
            solution,
            "Use shrinkage, or {p.solver:root}, which loses fewer digits. Look for entries that stand for missing "
            "values, such as -999999999.",
        )


def warn_of_rounding(solution: Solution, advice: str) -> None:
    """Warn if rounding may have changed a value visibly, or drowned it."""
    share = largest(solution.rounding)
    if solution.n_lost:
        warn_user(
            "{n_lost} of the values are zero, as far as double precision can tell: the target varies in fewer "
            "directions, or a few huge entries drown the rest",
            n_lost=solution.n_lost,
            advice="Choose a smaller {p.n_components}. Look for entries that stand for missing values, such as "
            "-999999999 or 1e20.",
        )
    elif not solution.accurate and not share <= VISIBLE:
        problem = "the data are badly conditioned: rounding may have changed a ratio by a share of {share}"
        warn_user(problem, share=f"{share:.0e}", advice=advice)
