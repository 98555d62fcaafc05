"""What the linear estimators share: from datasets to components, and from rows to scores and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from standout._arrays import Array, Float, Rows, double, in_type_of, is_single
from standout._checks import as_rows, check_one_place, check_same_columns, check_whole, reject_on_device
from standout._messages import InvalidTypeError, InvalidValueError, dataset_names, warn_user
from standout._params import check_n_columns, is_auto
from standout._xp import columns_as_rows, indices_like, largest, like, namespace, to_host
from standout.estimators._base import check_same_place
from standout.estimators._incremental import IncrementalTransformer, check_sums_suffice
from standout.moments import (
    Folds,
    KeptRows,
    Kind,
    Moments,
    RootMoments,
    ScatterMoments,
    folds_of_datasets,
    gather,
    gather_folds,
    joint_gram,
    most_folds,
    project,
)
from standout.pencil import Pencil, Solution, choose_solver
from standout.private import PrivateMoments, warn_if_drowned
from standout.selection import (
    FewColumns,
    FoldColumns,
    HeldOut,
    LeftOut,
    SpanFolds,
    few_of,
    judge,
    n_folds_for,
    numbers_of_columns,
)
from standout.sources import Source, check_subjects

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
class LinearSums:
    """What a linear fit needs to know of its datasets, the target first.

    Attributes
    ----------
    moments : list of Moments
    span : SpanFolds or None
        The span of wide data.
    tall_folds : list of Folds or None
        The moments of each fold of other data. None if none were asked for.
    """

    moments: list[Moments]
    tall_folds: list[Folds[Moments]] | None = None
    span: SpanFolds | None = None

    @property
    def folds(self) -> list[Folds[Moments]] | None:
        """The moments of each fold; of wide data in coordinates of the span of their rows. None without folds."""
        return self.tall_folds if self.span is None else self.span.folds

    @property
    def n_columns(self) -> int:
        """Number of columns of the data."""
        return self.moments[0].n_features

    def held_out(
        self,
        solve: Callable[[Moments, list[Moments], LeftOut], Float],
        weights: Float,
        vectors: Float,
        side: str = "target",
        by_rows: bool = False,
    ) -> HeldOut | None:
        """Find out what the components of a fit, columns of an array, are worth on rows that were not fitted.

        With `by_rows`, problems without a fold of wide data are posed with the coordinates of rows themselves.
        """
        if len(self.moments) == 1 or (self.tall_folds is None and self.span is None):
            return None
        if self.span is None:
            assert self.tall_folds is not None
            return judge(solve, self.tall_folds, weights, vectors, side, self.moments)
        folds = self.span.row_folds if by_rows else self.span.folds
        found = judge(solve, folds, weights, self.span.inside(vectors), side)
        return None if found is None else found.lifted(self.span, vectors)


@dataclass(frozen=True, eq=False)
class LinearFit:
    """What a linear fit found.

    Attributes
    ----------
    target : Moments
    backgrounds : list of Moments
    weights : ndarray of shape (n_backgrounds,)
    solution : Solution
    held_out : HeldOut or None
        What the components are worth on rows that were not fitted.
    few : FewColumns or None
        The columns of the components, if few were asked for.
    """

    target: Moments
    backgrounds: list[Moments]
    weights: Float
    solution: Solution
    held_out: HeldOut | None = field(default=None, kw_only=True)
    few: FewColumns | None = field(default=None, kw_only=True)

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
    side: str
    n_columns: Any
    held_out: int | None

    @classmethod
    def from_moments(cls, target: Any, backgrounds: Any = None, **parameters: Any) -> Self:
        """Fit from sums, without rows: saved sums, those of a colleague or a database, or private ones.

        Parameters
        ----------
        target : Moments or tuple
            Moments of `standout.moments`, a private release (`standout.private`), or a tuple ``(covariance, count)`` or
            ``(covariance, count, mean)``. The covariance has ``1/n``, as that of ``np.cov(X.T, bias=True)``. Without a
            mean, scores are not centred.
        backgrounds : Moments or tuple, or list or tuple of these, default=None
            None means PCA of the target.
        **parameters
            Parameters of the estimator. What would need rows is refused. With private sums, ``shrinkage="auto"`` is
            the one that their known noise asks for.

        Returns
        -------
        estimator
            Fitted, as by ``fit`` on the rows.

        Examples
        --------
        >>> import numpy as np
        >>> from standout import DiscriminativePCA
        >>> covariance = np.diag([100.0, 1.0, 1.0]), np.diag([100.0, 1.0, 9.0])
        >>> dpca = DiscriminativePCA.from_moments(
        ...     (covariance[1], 500), (covariance[0], 500), n_components=1, shrinkage=0.0
        ... )
        >>> dpca.eigenvalues_
        array([9.])
        """
        estimator = cls(**parameters)
        moments = given_moments(target, backgrounds)
        private = [part for part in moments if isinstance(part, PrivateMoments)]
        if private:
            _check_private(estimator, n_exact=len(moments) - len(private))
        check_sums_suffice(estimator)
        if estimator.target_label is not None:
            raise InvalidValueError(
                "tells rows apart, but moments are those of one dataset each",
                parameter="target_label",
                value=estimator.target_label,
                advice="Leave {p.target_label} out.",
            )
        check_one_place([part.mean for part in moments], dataset_names(len(moments)))
        names = [list(part.columns) for part in private if part.columns is not None]
        estimator._set_columns(moments[0].n_features, names[0] if names else None)
        estimator._solve(moments)
        warn_if_drowned(moments[0], moments[1:], estimator.components_.T)
        return estimator

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

    def get_support(self, indices: bool = False) -> npt.NDArray[Any]:
        """Which columns do the components use, as scikit-learn's selectors tell it?

        Parameters
        ----------
        indices : bool, default=False
            Give the numbers of the columns, and not a truth value for each.

        Returns
        -------
        ndarray
            Of shape (n_features,), or (n_columns,) with `indices`. All columns without `n_columns`.
        """
        check_is_fitted(self)
        columns = to_host(getattr(self, "columns_", np.arange(self.n_features_in_)))
        return columns if indices else np.isin(np.arange(self.n_features_in_), columns)

    def _on_few_columns(
        self,
        problem: Pencil,
        solution: Solution,
        sums: LinearSums,
        pose: Callable[[Moments, list[Moments]], Pencil],
        weights: Float,
        *,
        solver: str,
        seed: int,
        dense_size: int,
        known: FewColumns | None = None,
    ) -> tuple[Solution, FewColumns | None, HeldOut | None]:
        """Solve on few columns, if that is asked for, and find out what the components are worth, by folds.

        `pose` gives the problem without a fold from its moments; up to `dense_size` it is solved without iterations.
        `known` are the columns of a solution with fewer components: their number is kept.
        """
        n_components, n_features = solution.values.shape[0], problem.n_features
        folds = FoldColumns(pose, n_components, self.side, sums.span, dense_size)
        few, seen, n_rows = known, [], sum(part.count for part in sums.moments)
        count = (
            check_n_columns(self.n_columns, n_features, n_components)
            if known is None
            else max(len(known.columns), n_components)
        )
        if self._finds_n_columns and known is None:
            counts = numbers_of_columns(n_features, n_rows, n_components)
            found = None if sums.folds is None or len(sums.folds) == 1 else folds.choose(counts, sums.folds, weights)
            if found is None and len(sums.moments) > 1:
                warn_user(
                    "the number of columns could not be chosen: there are too few rows, or too many columns, for folds",
                    advice="All are used. Give {p.n_columns} as a number.",
                    finding=True,
                )
            path, seen = (None, []) if found is None else found
            count = n_features if path is None else int(path.parameters[path.chosen])
            few = FewColumns(np.arange(n_features), path=path)
        steps = numbers_of_columns(n_features, n_rows, n_components, count)
        if count is not None:
            solution, columns = few_of(problem, solution, count, side=self.side, solver=solver, seed=seed)
            few = replace(few or FewColumns(columns), columns=columns)

        def solve_others(target: Moments, backgrounds: list[Moments], left_out: LeftOut) -> Float:
            if count is None:
                return folds.whole(target, backgrounds)[1].vectors
            *_, (columns, vectors) = folds.without(target, backgrounds, left_out, steps)
            judged.append(columns)
            return vectors

        judged: list[npt.NDArray[np.intp]] = []
        held_out = None
        if self.held_out is not None:
            # Inner products of rows solve a ratio, but no difference, and need all columns.
            by_rows = count is None and self.side == "target" and problem.a.is_nonnegative and problem.b.ridge > 0.0
            held_out = sums.held_out(solve_others, weights, solution.vectors, self.side, by_rows)
        return solution, None if few is None else few.seen(judged or seen, n_features), held_out

    @property
    def few_columns(self) -> FewColumns | None:
        """Which columns the components use; None if all were asked for."""
        if not hasattr(self, "columns_"):
            return None
        return FewColumns(to_host(self.columns_), path=getattr(self, "columns_path_", None))

    @property
    def _finds_n_columns(self) -> bool:
        return isinstance(self.n_columns, str)

    def _keep_columns_used(self, few: FewColumns | None) -> None:
        """Keep which columns the components use."""
        frequency = None if few is None else few.frequency
        self._keep_found(
            columns_=None if few is None else indices_like(few.columns, self.mean_),
            column_frequency_=None if frequency is None else like(frequency, self.mean_),
            columns_path_=None if few is None else few.path,
        )

    def _keep_linear(self, fit: LinearFit, datasets: Sequence[Any]) -> None:
        """Keep what every linear fit has found."""
        self._keep_held_out(fit.held_out, datasets)
        self.mean_ = fit.target.mean
        self._keep_columns_used(fit.few)
        self.components_ = columns_as_rows(fit.solution.vectors)
        self.patterns_ = columns_as_rows(fit.solution.patterns)
        self._keep(fit.solution, fit.target, fit.backgrounds, fit.weights)
        moments = [fit.target, *fit.backgrounds]
        # Rows are not kept beyond a fit: they are the user's.
        self._keep_found(_sums=None if any(isinstance(part, KeptRows) for part in moments) else moments)

    def _sum(self, dataset: Source) -> Moments:
        n_rows, width = dataset.n_rows, dataset.width
        # The root of few wide rows is much smaller than their scatter matrix.
        few = n_rows is not None and width is not None and 2 * n_rows < width and not dataset.on_device
        kind: Kind = "root" if self.solver == "root" or few else "scatter"
        moments = gather(dataset, kind=kind, norms=True, single=False, name=dataset.name)
        # Rows are not kept: a root of fewer rows than columns is turned.
        return moments.turned() if few and isinstance(moments, RootMoments) else moments

    def _settled(self, sums: Moments) -> Moments:
        """Give the sums of many rows as a scatter matrix, which is then the smaller form, unless roots are wanted."""
        if isinstance(sums, RootMoments) and 2 * sums.count >= sums.n_features and self.solver != "root":
            return sums.as_scatter()
        return sums

    def _check_merge(self, other: Any) -> None:
        """Moments of the same columns can always be added."""

    @property
    def _projection(self) -> Callable[[Rows], Array]:
        return LinearProjection(self.mean_, self.components_.T)

    @property
    def _uncentred_projection(self) -> Callable[[Rows], Array]:
        return LinearProjection(None, self.components_.T)


def given_moments(target: Any, backgrounds: Any) -> list[Moments]:
    """Check moments that a user gives, or covariances with counts, the target's first."""
    # A tuple may be one background, of a covariance and a count, or several.
    several = isinstance(backgrounds, list) or (
        isinstance(backgrounds, tuple) and all(isinstance(part, Moments | tuple) for part in backgrounds)
    )
    parts = [target, *([] if backgrounds is None else backgrounds if several else [backgrounds])]
    names = dataset_names(len(parts))
    moments = [_as_moments(part, name) for part, name in zip(parts, names, strict=True)]
    known = [list(part.columns) if isinstance(part, PrivateMoments) and part.columns else None for part in moments]
    for part, columns, name in zip(moments[1:], known[1:], names[1:], strict=True):
        check_same_columns(part.n_features, columns, name, moments[0].n_features, known[0], "the target")
    return moments


def _as_moments(part: Any, name: str) -> Moments:
    if isinstance(part, Moments):
        return part
    advice = "Give moments, (covariance, count) or (covariance, count, mean)."
    if not isinstance(part, tuple) or len(part) not in (2, 3):
        raise InvalidTypeError("{name} is given as {type}", name=name, type=type(part).__name__, advice=advice)
    covariance = double(as_rows(part[0], f"the covariance of {name}", min_rows=1, finite=True))
    count = check_whole(part[1], "count", least=2)
    size = covariance.shape[0]
    xp = namespace(covariance)
    spread = float(xp.max(abs(covariance)))
    if covariance.shape != (size, size) or not float(xp.max(abs(covariance - covariance.T))) <= 1e-8 * spread:
        raise InvalidValueError(
            "the covariance of {name} is no symmetric matrix: its shape is {shape}",
            name=name,
            shape=tuple(covariance.shape),
            advice=advice,
        )
    mean = double(as_rows([part[2]], f"the mean of {name}", min_rows=1, finite=True))[0] if len(part) == 3 else None
    if mean is not None and mean.shape != (size,):
        problem = "the mean of {name} has {given} numbers, but there are {limit} columns"
        raise InvalidValueError(problem, name=name, given=mean.shape[0], limit=size, advice=advice)
    return ScatterMoments(count, 0.0 * covariance[0, :] if mean is None else mean, count * covariance)


def _check_private(estimator: Any, *, n_exact: int) -> None:
    """Refuse what would read rows again, or does not know of noise; each such look would have to be paid for."""
    if n_exact:
        warn_user(
            "{n_exact} dataset(s) are given as exact sums beside private ones, and exact sums are not protected",
            n_exact=n_exact,
            advice="Release them as well, unless their rows are public.",
        )
    shrinkage, test = getattr(estimator, "shrinkage", None), getattr(estimator, "test", None)
    if isinstance(shrinkage, str) and shrinkage != "auto":
        raise InvalidValueError(
            "would look at rows again, and private sums have none: every further look would have to be paid for from "
            "the budget",
            parameter="shrinkage",
            value=shrinkage,
            advice="Use {p.shrinkage:auto}, which follows from the known noise, or a number.",
        )
    if getattr(estimator, "n_columns", None) is not None:
        raise InvalidValueError(
            "is refused on private sums: their noise would choose columns, too",
            parameter="n_columns",
            value=estimator.n_columns,
            advice="Leave {p.n_columns} out.",
        )
    advice = "Give a number of components, and compare their variance with the noise."
    if test is not None:
        reasons = {"permutation": "it would reshuffle rows, and there are none"}
        raise InvalidValueError(
            "is refused on private sums: {reason}",
            parameter="test",
            value=test,
            reason=reasons.get(test, "its p-values do not know of the noise"),
            advice=advice,
        )
    if is_auto(estimator.n_components):
        raise InvalidValueError(
            "is refused on private sums: it needs a test, whose p-values do not know of the noise",
            parameter="n_components",
            value=estimator.n_components,
            advice=advice,
        )


@dataclass(frozen=True, eq=False)
class LinearProjection:
    """From rows to scores, with nothing but what that takes: it may be sent to other processes.

    Attributes
    ----------
    mean : ndarray of shape (n_features,) or None
        None for scores that are not centred.
    filters : ndarray of shape (n_features, n_components)
    """

    mean: Float | None
    filters: Float

    def __call__(self, rows: Rows) -> Array:
        """Give the scores of these rows."""
        return in_type_of(project(rows, self.mean, self.filters), rows)


def fit_linear(
    datasets: Sequence[Source],
    answer: Callable[[LinearSums, str], Fit],
    *,
    n_components: int,
    solver: str,
    n_folds: int | None = None,
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
        chosen = choose_solver(sum(n_rows), n_features, n_components, on_device=datasets[0].on_device)

    def attempt(solver: str, single: bool) -> Fit:
        sums = _gathered(datasets, KIND_FOR_SOLVER[solver], n_folds, norms, single)
        moments = sums.moments
        for dataset, part in zip(datasets, moments, strict=True):
            check_subjects(dataset, part.count)
        for dataset, part in zip(datasets[1:], moments[1:], strict=True):
            check_same_columns(part.n_features, None, dataset.name, moments[0].n_features, None, "the target")
        check_one_place([part.mean for part in moments], [dataset.name for dataset in datasets])
        kept = [part for part in moments if isinstance(part, KeptRows)]
        if solver == "reduced" and norms and len(kept) == len(moments):
            # The inner products of all rows hold those of each dataset, which the shrinkage needs.
            joint_gram(kept)
        if solver in ("lanczos", "lobpcg"):
            reject_on_device(moments[0].mean, f"solver={solver!r}", "Use solver='auto'.")
        return answer(sums, solver)

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


def _gathered(datasets: Sequence[Source], kind: Kind, wanted: int | None, norms: bool, single: bool) -> LinearSums:
    """Gather the moments of all datasets, those of the folds as well if they are wanted and not too large."""
    wanted = None if len(datasets) == 1 or wanted is None else most_folds(wanted, datasets)
    width = datasets[0].width or int(datasets[0].first(1).shape[1])
    known = [dataset.n_rows for dataset in datasets if dataset.n_rows is not None]
    all_known = len(known) == len(datasets)
    wide = kind == "rows" or (kind == "auto" and all_known and sum(known) < width)
    n_folds = None
    if wanted is not None:
        # Data that are read in parts are gathered in all folds, whether or not their rows have been counted before.
        # A device is slowed down by many small parts.
        counted = all_known and all(dataset.in_memory or dataset.on_device for dataset in datasets)
        n_folds = n_folds_for(wanted, sum(known) if wide else width, min(known) if counted else None)
    if wanted is None or n_folds is None or wide:
        moments = [
            gather(dataset, kind=kind, norms=norms and number > 0, single=single, name=dataset.name)
            for number, dataset in enumerate(datasets)
        ]
        kept = [part for part in moments if isinstance(part, KeptRows)]
        if wanted is None or n_folds is None or len(kept) < len(moments):
            return LinearSums(moments)
        numbers = folds_of_datasets([part.count for part in kept], datasets, n_folds, wanted)
        return _in_span(moments, kept, numbers, n_folds, wanted)
    folds = [
        gather_folds(
            dataset,
            n_folds,
            n_dealt=wanted,
            kind=kind,
            norms=norms and number > 0,
            single=single,
            name=dataset.name,
        )
        for number, dataset in enumerate(datasets)
    ]
    moments = [part.total() for part in folds]
    kept = [part for part in moments if isinstance(part, KeptRows)]
    if len(kept) == len(moments):
        # An iterator turned out to have fewer rows than columns. Its rows are kept fold after fold.
        numbers = [np.repeat(np.arange(n_folds), [0 if p is None else p.count for p in part.sums]) for part in folds]
        return _in_span(moments, kept, numbers, n_folds, wanted)
    if kept:
        return LinearSums(moments)
    # The number of rows of an iterator is known only now.
    n_folds = n_folds_for(wanted, width, min(part.count for part in folds)) or n_folds
    return LinearSums(moments, [part.fewer(n_folds) for part in folds])


def _in_span(
    moments: list[Moments],
    kept: list[KeptRows],
    fold_of: list[npt.NDArray[np.intp]],
    n_folds: int,
    n_dealt: int,
) -> LinearSums:
    span = SpanFolds.of(kept, fold_of, n_folds, n_dealt)
    return LinearSums(moments, span=span)


def _lost(fit: LinearFit, chosen: str) -> bool:
    """Tell whether a fit has lost too many digits, or its solver has had to give up."""
    return not fit.accurate or (fit.solution.solver == "root" and chosen != "root")


def warn_of_trouble(solution: Solution) -> None:
    """Warn if the background is singular or the data are badly conditioned, and say what that means for the answer."""
    warn_of_missing(solution)
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


def warn_of_missing(solution: Solution) -> None:
    """Warn if there are directions that only the background has: their number says little about the data."""
    if solution.n_missing:
        warn_user(
            "the target covariance is singular: {n_missing} direction(s) in which the background varies do not occur "
            "in the target at all. Their ratio is 0; they come before all others, ordered by the background's variance",
            n_missing=solution.n_missing,
            advice="To regularise the target in place of the background, exchange the two datasets.",
            finding=True,
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
