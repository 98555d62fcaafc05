"""Fit a model: open the datasets, choose parameters, solve the eigenproblem, and compute held-out ratios."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from sklearn.utils.validation import _check_feature_names, check_random_state

from standout._arrays import Float, all_finite, product
from standout._messages import FindingWarning, InvalidValueError, dataset_names, warn_user
from standout._options import check_parameters, check_weights
from standout._xp import like, namespace, take, to_host
from standout.estimators._pipeline import check_caller
from standout.estimators._scores import CHOSEN, FittedTransformer
from standout.moments import Moments, learn_from, weighed
from standout.pencil import Solution, count_directions
from standout.problem import Problem, Sums, adjusted, center_of, is_sparse_problem, lifted, mixed, solve, solve_inside
from standout.selection import HeldOut, Path, choose, choose_columns, choose_weights, judge
from standout.selection._choose import ridge_unit
from standout.selection._data import Data, Folds, Places
from standout.selection._inference import count_components
from standout.sources import Source, open_datasets

# Beyond this shrinkage the backgrounds have little effect, and the fit warns.
NEARLY_PCA = 0.9
# The value of each regularisation parameter before the fit chooses one.
FIRST: dict[str, Any] = {"shrinkage": "ledoit-wolf", "alpha": 0.0, "epsilon": 1.0}
# Maximum number of components for "auto".
MOST_COMPONENTS = 20
# With `n_columns`, the fit of wide rows warns if the variances of columns differ by more than this factor.
MOST_UNEVEN = 1e14
# Sparse data with more rows and more columns than this are kept as rows, because their products would be too large.
LARGE = 8192

Found = TypeVar("Found")


@dataclass(frozen=True, eq=False)
class Fit:
    """The result of a fit: the problem with all choices, its solution, and its results on held-out rows.

    `inner` has the components in the coordinates of `sums`, which can differ from the columns of the data. `moments`
    has the moments of the datasets without the effects of covariates. `mean` is the point from which scores are
    measured, in the columns of the data. For a kernel method, `mean` is in the coordinates of the kernel.
    """

    problem: Problem
    solution: Solution
    inner: Float
    sums: Sums
    moments: Sequence[Moments]
    mean: Float
    path: Path | None
    columns_path: Path | None
    held_out: HeldOut | None


def _signed(solution: Solution, moments: Sequence[Moments]) -> tuple[Solution, Float]:
    """Return the solution with new signs of the components, and the factors (1 or -1) that change the signs.

    With a background, the target's mean gets a larger score than the mean of the first background. Without a
    background, the target's mean gets a positive score.
    """
    step = moments[0].mean if len(moments) == 1 else moments[0].mean - moments[1].mean
    along = to_host(product(step[None, :], solution.vectors)[0, :])
    signs = like(np.where(along < 0.0, -1.0, 1.0), solution.vectors)
    return replace(solution, vectors=solution.vectors * signs, patterns=solution.patterns * signs), signs


def fallback(problem: Problem, sums: Sums) -> Problem:
    """Return the problem with a regularisation that needs no folds.

    With a background, it is α = 1, or ε = 0.01 times `ridge_unit`, or Ledoit-Wolf shrinkage. Without a background, the
    problem is PCA.
    """
    if len(sums.moments) == 1:
        return replace(problem, shrinkage=0.0, alpha=0.0, epsilon=None if problem.epsilon is None else 1.0)
    if problem.kind == "difference":
        return replace(problem, alpha=1.0)
    if problem.epsilon is not None:
        return replace(problem, epsilon=1e-2 * ridge_unit(problem, sums))
    return replace(problem, shrinkage="ledoit-wolf")


class BackgroundTransformer(FittedTransformer):
    """A transformer that is fitted to a target and its backgrounds."""

    # Number of components that `n_components`="auto" has found.
    _n_found: int = 1
    # Whether components are directions in the columns of the data, and not in the feature space of a kernel.
    _linear: ClassVar[bool] = True
    # Text at the end of the warning about a missing ratio. It names a parameter that can be the cause.
    _why_no_ratio: ClassVar[str] = ""

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        background: Any = None,
        groups: Any = None,
        background_groups: Any = None,
        sample_weight: Any = None,
        background_sample_weight: Any = None,
        adjust: Any = None,
        background_adjust: Any = None,
    ) -> Self:
        """Find the components.

        Parameters
        ----------
        X : dataset
            The target: an array, a frame, a sparse matrix, `standout.scan` of files, a Dask collection or an iterator
            of batches; with `target_label`, the rows of all datasets.
        y : array-like of shape (n_samples,), default=None
            Label of each row, with `target_label`; otherwise ignored.
        background : dataset, or list or tuple of datasets, default=None
            None is PCA of the target.
        groups, background_groups : array-like, str or None, default=None
            The subject of each row, or the name of a column. All rows of a subject are in the same fold.
        sample_weight, background_sample_weight : array-like, str or None, default=None
            Weight of each row, or the name of a column.
        adjust, background_adjust : array-like, list of str or None, default=None
            Covariates. Their linear effects on the columns are removed within each dataset.

        Returns
        -------
        object
            The estimator itself.
        """
        # PCA has no folds, so `cv` is not checked: scikit-learn's own tests set `cv` to a list of splits.
        folded = background is not None or self.target_label is not None
        check_parameters(self.method, {name: value for name, value in vars(self).items() if folded or name != "cv"})
        if background is not None:
            check_caller(background)
        sources = open_datasets(
            X,
            background,
            sample_weight=sample_weight,
            background_sample_weight=background_sample_weight,
            groups=groups,
            background_groups=background_groups,
            adjust=adjust,
            background_adjust=background_adjust,
            y=y,
            target_label=self.target_label,
            finite=not self._linear or self.robust is not None,
        )
        check_counts([source.n_rows for source in sources])
        self._keep_columns(X, sources[0].columns, sources[0].width)
        if self.target_label is not None:
            self.classes_ = np.unique(np.asarray(y))
            self.background_labels_ = [label for label in self.classes_.tolist() if label != self.target_label]
        # Turn off NumPy's warnings, because numbers out of range raise an error later.
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            self._fit_sources(sources if self.robust is None else self._weighed(sources))
        return self

    def _fit_sources(self, sources: list[Source]) -> None:
        raise NotImplementedError

    def _forget(self, *kept: str) -> None:
        """Remove the attributes of an earlier fit, except the names in `kept`."""
        self._n_found = 1
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("__")]:
            if name not in kept:
                delattr(self, name)

    def _keep_columns(self, X: Any, columns: Sequence[str] | None, width: int | None) -> None:
        self._forget()
        if columns is not None:
            self.feature_names_in_ = np.array(columns, dtype=object)
        elif hasattr(X, "columns") or hasattr(X, "__dataframe__"):
            _check_feature_names(self, X, reset=True)
        self.n_features_in_ = int(width or 0)

    def _seed(self) -> int:
        return 0 if self.random_state is None else int(check_random_state(self.random_state).randint(2**31 - 1))

    def _weighed(self, sources: list[Source]) -> list[Source]:
        """Learn robust row weights from each dataset. Store the weights, and return the datasets with them."""
        found = []
        self.row_weights_, self.robust_weights_, self.outlying_rows_ = [], [], []
        for source in sources:
            learned = learn_from(source, cells=self.robust == "cells", seed=self._seed())
            part, weights, outlying = weighed(source, learned)
            found.append(part)
            self.row_weights_.append(weights)
            self.robust_weights_.append(learned)
            self.outlying_rows_.append(outlying)
        return found

    def _count_components(self, sources: list[Source], fit: Fit, again: Callable[[], Found]) -> Found | None:
        """Set the number of components by a permutation test. If it is more than 1, return a new fit, else None."""
        shares = fit.solution.shrinkage
        numeric = replace(fit.problem, shrinkage=float(np.mean(shares))) if shares else fit.problem
        self.component_test_ = count_components(
            sources,
            numeric,
            chosen=fit.path is not None,
            columns_chosen=fit.columns_path is not None,
            learned=getattr(self, "row_weights_", None),
            most=max(min(MOST_COMPONENTS, *(part.count - 1 for part in fit.sums.moments)), 1),
            seed=self._seed(),
        )
        if self.component_test_.n_components == 0:
            _warn("no component is distinguishable from chance", "One component is kept.")
        self._n_found = max(self.component_test_.n_components, 1)
        while self._n_found > 1:
            try:
                return again()
            except InvalidValueError as error:
                # Because of rounding, the fit or one of its folds can have fewer directions than the test has found.
                if error.parameter != "n_components":
                    raise
                self._n_found -= 1
        return None

    def _posed(self, moments: Sequence[Moments], width: int, **fields: Any) -> tuple[Problem, str | None]:
        """Return the problem, and the rule that chooses the weights of backgrounds, or None."""
        n_backgrounds, name = len(moments) - 1, CHOSEN[self.method]
        given = getattr(self, name)
        value: Any = FIRST[name] if isinstance(given, str) else float(given or 0.0)
        n_directions = max(sum(part.count - 1 for part in moments), 1)
        most = max(min(width, n_directions), 1)
        wanted = self._n_found if isinstance(self.n_components, str) else self.n_components or most
        if wanted > most:
            what = "columns" if width <= n_directions else "directions in which the rows vary"
            problem = f"is more than the {most} {what}"
            raise InvalidValueError(problem, parameter="n_components", value=wanted, advice=f"Use at most {most}.")
        weights, rule = [1.0 / max(n_backgrounds, 1)] * n_backgrounds, None
        if n_backgrounds and isinstance(self.background_weights, str):
            rule = self.background_weights if n_backgrounds > 1 else None
        elif n_backgrounds and self.background_weights is not None:
            weights = check_weights("background_weights", self.background_weights, n_backgrounds, "backgrounds")
        columns = fields.get("n_columns")
        if columns is not None and not wanted <= columns <= width:
            wrong = f"is not between {wanted} (components) and {width} (columns)"
            raise InvalidValueError(wrong, parameter="n_columns", value=columns, advice="Use a number between them.")
        kind: Any = "difference" if name == "alpha" else "ratio"
        fields = {"kind": kind, "center": self.center, "weights": tuple(weights), name: value, **fields}
        return Problem(int(wanted), **fields), rule

    def _fit_problem(self, data: Data, folds: Folds | Places | None, reason: str, seed: int, **fields: Any) -> Fit:
        """Return the fit: pose the problem, make all choices, solve, and judge by held-out rows."""
        name, solver = CHOSEN[self.method], getattr(self, "solver", "auto")
        sums = data.sums(Problem())
        problem, weight_rule = self._posed(sums.moments, sums.dimension, n_covariates=data.n_covariates, **fields)
        if folds is not None and data.lacks_rows:
            folds, reason = None, "a fold has no rows of one of the datasets"
        # With the ridge of a kernel, there are always as many components as coordinates.
        if self.n_components is None and problem.epsilon is None:
            # Without shrinkage, a fit that leaves out a fold can have fewer components than the fit of all rows.
            parts = range(data.n_folds if folds is not None and problem.shrinkage == 0.0 else 0)
            known = [data.sums(problem, fold).moments for fold in (None, *parts)]
            most = min(count_directions([adjusted(part, data.n_covariates) for part in one]) for one in known)
            problem = replace(problem, n_components=min(problem.n_components, max(most, 1)))
        path = columns_path = None
        sums = data.sums(problem)
        if weight_rule is not None:
            problem = choose_weights(weight_rule, sums, problem, solver=solver, seed=seed)
        if len(sums.moments) > 1 and str(getattr(self, name)) == "auto":
            if folds is None:
                path = Path(name, np.zeros(0), np.zeros(0), np.zeros(0), 0, 0, reason)
            else:
                problem, path = choose(problem, data, seed=seed)
            if path.reason:
                problem = fallback(problem, sums)
            elif weight_rule is not None:
                problem = choose_weights(weight_rule, sums, problem, solver=solver, seed=seed)
        if folds is not None and isinstance(getattr(self, "n_columns", None), str):
            problem, columns_path = choose_columns(problem, data, seed=seed)
            sums = data.sums(problem)
        mean = center_of(problem, sums)
        mean = mean if sums.lift is None else sums.point(mean)
        moments = [adjusted(part, problem.n_covariates) for part in sums.moments]
        if is_sparse_problem(problem, sums):
            solution = solve(sums, problem, solver=solver, seed=seed)
            inner = sums.dropped(solution.vectors)
        else:
            found = solve_inside(sums, problem, solver=solver, seed=seed)
            # `_signed` uses the means of the datasets, because the signs of kernel coordinates have no meaning.
            solution, signs = lifted(sums, found) if self._linear else _signed(found, moments)
            inner = found.vectors * signs
        held_out = None
        if folds is not None:
            held_out = judge(problem, data, folds, inner, seed=seed)
            order = np.argsort(-held_out.ratio, kind="stable")
            if np.all(np.isfinite(held_out.ratio)) and np.any(order != np.arange(len(order))):
                # Sort by held-out ratios, because their order can differ from the order of the eigenvalues.
                solution, held_out = solution.taken(order), held_out.taken(order)
                inner = take(inner, order, axis=1)
        return Fit(problem, solution, inner, sums, moments, mean, path, columns_path, held_out)

    # --- fitted attributes ---------------------------------------------------------------------------------------

    def _keep_fit(self, fit: Fit) -> Float:
        """Set the fitted attributes; return the background's standard deviation along the components.

        With folds, this standard deviation is computed on held-out rows. Without folds, it is computed in sample. It is
        1 if there is no background, or if the background does not vary.
        """
        problem, held_out, moments = fit.problem, fit.held_out, fit.moments
        xp, ones = namespace(fit.inner), namespace(fit.inner).ones_like(fit.inner[0, :])
        unit = ones if held_out is None else like(held_out.unit, fit.inner)
        if held_out is None and len(moments) > 1:
            squares = mixed(problem.weights, [part.variance(fit.inner) for part in moments[1:]])
            unit = xp.sqrt(xp.where(squares > 0.0, squares, ones))
        vectors = fit.inner / unit
        if not all_finite(vectors):
            advice = "Scale the columns, or regularise more."
            raise InvalidValueError("rounding has left no digit of the components", advice=advice)
        self.problem_ = problem
        self.n_components_ = int(fit.solution.values.shape[0])
        self.eigenvalues_ = fit.solution.values
        self.background_weights_ = np.array(problem.weights[: len(moments) - 1])
        self.n_samples_, *self.background_n_samples_ = (part.count for part in moments)
        self.path_, self.held_out_ = fit.path, held_out
        self.n_folds_ = 0 if held_out is None else held_out.vectors.shape[0]
        # Held-out scores of a background are measured from the mean of this background. After adding its entry of
        # `shifts_`, they are measured from the same point as the scores of the target. The entry of the target is 0.
        centre = center_of(replace(problem, n_covariates=0), Sums(tuple(moments), moments[0].n_features))
        self.shifts_ = np.array([to_host(product((part.mean - centre)[None, :], vectors)[0, :]) for part in moments])
        self.shifts_[0] = 0.0
        shares = fit.solution.shrinkage
        name = CHOSEN[self.method]
        share = float(np.dot(shares, problem.weights)) if shares else 0.0
        setattr(self, f"{name}_", share if name == "shrinkage" else float(getattr(problem, name) or 0.0))
        missing = np.full(self.n_components_, np.nan)
        for field in ("ratio", "spread", "spread_error", "shift", "shift_error"):
            setattr(self, f"{field}_", missing if held_out is None else getattr(held_out, field))
        log_error = missing if held_out is None else held_out.log_error
        self.ratio_error_ = self.ratio_ * log_error
        self.ratio_interval_ = np.stack([self.ratio_ * np.exp(-log_error), self.ratio_ * np.exp(log_error)], axis=1)
        self._warn_of(fit)
        return unit

    def _warn_of(self, fit: Fit) -> None:
        solution, held_out = fit.solution, fit.held_out
        if solution.n_absent:
            several = "1 direction" if solution.n_absent == 1 else f"{solution.n_absent} directions"
            problem = f"the background does not vary along {several} of the target, where eigenvalues are infinite"
            _warn(problem, 'Use `shrinkage`="auto".')
        elif held_out is not None and held_out.flat:
            advice = 'Use `shrinkage`="auto".' if held_out.flat == "the background" else "Give more rows of the target."
            _warn(f"without a fold, {held_out.flat} does not vary along a component: its ratio is not reliable", advice)
        if held_out is not None and not np.all(np.isfinite(held_out.ratio)):
            _warn(f"held-out rows do not vary along a component beyond rounding: there is no ratio{self._why_no_ratio}")
        elif held_out is not None and fit.path is not None and fit.path.reason:
            _warn(f"{fit.path.reason}: `{fit.path.parameter}` was not chosen by them, and a ratio may be arbitrary")
        share = max(solution.shrinkage, default=0.0)
        if fit.path is not None and not fit.path.reason and share > NEARLY_PCA:
            _warn(
                f"the chosen shrinkage is {share:.2f}: the background has little effect, and the view is nearly that "
                "of PCA"
            )
        # In the feature space of a kernel, a larger spread also shifts the mean, so there is no warning.
        linear = self._linear and fit.problem.center == "own"
        if linear and held_out is not None and np.any(held_out.shift > np.maximum(held_out.ratio, 1.0)):
            _warn(
                f"the means of target and background are {np.sqrt(np.nanmax(held_out.shift)):.1f} standard deviations "
                "apart along a component, further than the target varies",
                'Use `center`="background" to let a shift of the mean stand out.',
            )
        # Inner products of wide rows lose the digits of columns with much smaller variances than other columns.
        if solution.columns is not None and solution.scale is None and fit.sums.variances:
            variances = to_host(fit.sums.variances[0])
            if variances.max() > MOST_UNEVEN * variances.min(initial=np.inf, where=variances > 0.0):
                problem = "the variances of columns differ so much that rounding can decide which columns are chosen"
                _warn(problem, 'Use `scale`="pooled".')
        if not solution.accurate:
            problem = "rounding has left less than half of the digits of the eigenvalues"
            _warn(problem, "Scale the columns, or use a shrinkage.")


def _warn(problem: str, advice: str = "") -> None:
    warn_user(problem, advice=advice, category=FindingWarning)


def check_counts(counts: Sequence[int | None]) -> None:
    """Raise an error if a dataset has fewer than two rows."""
    for name, count in zip(dataset_names(len(counts)), counts, strict=True):
        if count is not None and count < 2:
            problem = f"{name} has {count} sample{'' if count == 1 else 's'}, but a minimum of 2 is required"
            raise InvalidValueError(problem, advice="Give at least 2 rows.")
