"""Few columns: which of them carry the components, how many are needed, and the same pencil on these alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from standout._arrays import Array, Float, product
from standout._xp import concat, like, namespace, take, to_host
from standout.moments import Folds, Moments, ScatterMoments
from standout.pencil import Form, Pencil, Solution, solve
from standout.selection._held_out import HeldOutPath, judge_views
from standout.selection._row_folds import LeftOut, SpanFolds

Columns = npt.NDArray[np.intp]

# With fewer columns for each component, LAPACK finds all of them sooner than iterations do.
PER_COMPONENT = 40
# How many numbers of columns are looked at, all columns among them.
N_COUNTS = 15


@dataclass(frozen=True, eq=False)
class FewColumns:
    """Which columns carry the components of a fit.

    Attributes
    ----------
    columns : ndarray of int
        The numbers of the columns, ascending.
    frequency : ndarray of shape (n_features,) or None
        In which share of the folds each column is chosen; None if there are no folds.
    path : HeldOutPath or None
        How each number of columns fares on rows that were not fitted, if it was chosen by that: the mean of the
        components' logarithmic ratios.
    """

    columns: Columns
    frequency: Float | None = None
    path: HeldOutPath | None = None

    @property
    def numbers(self) -> list[int] | None:
        """The numbers of columns among which this one was chosen; None if it was given."""
        return None if self.path is None else self.path.parameters.astype(int).tolist()

    def seen(self, folds: Sequence[Columns], n_features: int) -> FewColumns:
        """Give the same with the share of folds that chose each column."""
        if not folds:
            return self
        return replace(self, frequency=np.bincount(np.concatenate(folds), minlength=n_features) / len(folds))


def rank_columns(patterns: Array, diagonal: Array) -> Columns:
    """Order columns by how much of a component they show, the first ones most.

    A component shows in a column by its pattern ``(B u)ⱼ`` in units of the backgrounds' spread ``√Bⱼⱼ``. Of several
    components, columns come in the order of the best rank that they have in any.

    Parameters
    ----------
    patterns : array of shape (n_features, d)
    diagonal : array of shape (n_features,)
        That of B.

    Returns
    -------
    ndarray of int

    Examples
    --------
    >>> import numpy as np
    >>> from standout.selection import rank_columns
    >>> rank_columns(np.array([[3.0, 0.0], [4.0, 1.0], [1.0, 2.0]]), np.array([1.0, 100.0, 1.0]))
    array([0, 2, 1])
    """
    sizes, spreads = np.abs(to_host(patterns)), np.sqrt(np.maximum(to_host(diagonal), 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        shown = np.where(sizes > 0.0, sizes / spreads[:, None], 0.0)
    ranks = np.argsort(np.argsort(-shown, axis=0, kind="stable"), axis=0)
    # Of columns with the same best rank in different components, the one that shows more comes first.
    return np.lexsort((-shown.max(axis=1), ranks.min(axis=1)))


def numbers_of_columns(n_features: int, n_rows: int, n_components: int, least: int | None = None) -> list[int]:
    """Give the numbers of columns to look at, descending: all columns, and fewer ones.

    Of more columns than rows, these are no more than half of the rows. With `least`, these are the steps to this
    number.
    """
    few = min(max(n_components, 2), n_features)
    most = n_features if n_features <= n_rows else max(n_rows // 2, few)
    counts = np.round(np.geomspace(few, most, N_COUNTS)).astype(np.intp)
    if least is not None:
        counts = np.append(counts[counts > least], least)
    return np.unique(np.append(counts, n_features))[::-1].tolist()


def eliminated(
    pencil: Pencil, whole: Solution, counts: Sequence[int], *, side: str, solver: str = "auto", seed: int = 0
) -> Iterator[tuple[Columns, Solution]]:
    """Leave out columns step by step, and solve the same pencil on those that are left.

    Patterns of fewer columns are less noisy, and rank columns better than those of all do.

    Parameters
    ----------
    pencil : Pencil
    whole : Solution
        On all columns.
    counts : sequence of int
        How many columns are left after each step, descending.
    side, solver, seed
        As in `standout.pencil.solve`; few columns are solved as fits them, by roots if those are asked for.

    Yields
    ------
    (ndarray of int, Solution)
        The columns that are left, ascending, and the solution on these.
    """
    columns, part, solution = np.arange(pencil.n_features), pencil, whole
    for count in counts:
        if count < len(columns):
            kept = np.sort(rank_columns(solution.patterns, part.b.diagonal)[:count])
            part, columns = part.taken(kept), columns[kept]
            kind = "root" if solver == "root" else "auto"
            solution = solve(part, whole.values.shape[0], solver=kind, seed=seed, side=side)
        yield columns, solution


def eliminated_in(
    pencil: Pencil,
    whole: Solution,
    counts: Sequence[int],
    order: Columns,
    basis_of: Callable[[Columns], Float],
    *,
    side: str,
    on_columns: Callable[[Columns], Pencil] | None = None,
) -> Iterator[tuple[Columns, Solution, Array]]:
    """Do as `eliminated` for a pencil in coordinates of a subspace.

    Parameters
    ----------
    pencil, whole, counts, side
        As in `eliminated`; the first of `counts` may be the number of all columns.
    order : ndarray of int
        All columns, by their rank in the solution on all.
    basis_of : callable
        Gives the rows of the basis Q of the subspace that belong to some columns.
    on_columns : callable, optional
        Gives the pencil on some columns where these are more than the coordinates.

    Yields
    ------
    (ndarray of int, Solution, ndarray)
        The columns that are left, the solution on these, and its vectors in the coordinates: ``Qᵀ u``.
    """
    n_features = len(order)
    if counts[0] >= n_features:
        yield np.arange(n_features), whole, whole.vectors
    fewer = [count for count in counts if count < n_features]
    if not fewer:
        return
    # The first step is taken in the coordinates, all others among its columns.
    first = np.sort(order[: fewer[0]])
    basis = basis_of(first)
    few = on_columns(first) if on_columns is not None and len(first) > pencil.n_features else None
    if few is None:
        few = replace(pencil, a=_mapped(pencil.a, basis), b=_mapped(pencil.b, basis))
    solution = solve(few, whole.values.shape[0], side=side)
    for columns, part in eliminated(few, solution, fewer, side=side):
        yield first[columns], part, product(take(basis, columns).T, part.vectors)


def _mapped(form: Form, basis: Float) -> Form:
    """Give a form of coordinates as one of columns."""
    terms = []
    for weight, part in form.terms:
        total = part.total_weight
        scattered = (
            part
            if isinstance(part, ScatterMoments)
            else ScatterMoments(part.count, part.mean, total * part.covariance(), part.precision, weights=part.weights)
        )
        terms.append((weight, scattered.mapped(basis)))
    return Form(basis.shape[0], tuple(terms), form.ridge)


def few_of(
    pencil: Pencil, whole: Solution, n_columns: int, *, side: str = "target", solver: str = "auto", seed: int = 0
) -> tuple[Solution, Columns]:
    """Choose the columns that carry the components, and solve the same pencil on these.

    Parameters
    ----------
    pencil : Pencil
    whole : Solution
        On all columns.
    n_columns : int
    side, solver, seed
        As in `standout.pencil.solve`.

    Returns
    -------
    (Solution, ndarray of int)
        The solution, with zeros for all other columns, and the columns, ascending.

    Examples
    --------
    >>> import numpy as np
    >>> from standout import contrast, moments
    >>> from standout.pencil import solve
    >>> from standout.selection import few_of
    >>> rng = np.random.default_rng(0)
    >>> target, background = rng.normal(size=(2, 200, 4)) * [[[1, 1, 3, 1]], [[1, 1, 1, 1]]]
    >>> problem = contrast.discriminative(moments.gather(target), [moments.gather(background)], [1.0], [0.0])
    >>> solution, columns = few_of(problem, solve(problem, 1), 1)
    >>> columns, np.flatnonzero(solution.vectors)
    (array([2]), array([2]))
    """
    size, n_rows = pencil.n_features, pencil.a.n_rows + pencil.b.n_rows
    if n_columns >= size:
        return whole, np.arange(size)
    counts = numbers_of_columns(size, n_rows, whole.values.shape[0], n_columns)
    *_, (columns, part) = eliminated(pencil, whole, counts, side=side, solver=solver, seed=seed)
    vectors = padded(part.vectors, columns, size)
    # The pattern shows in all columns. That of an infinite ratio, where B is zero, only in those of the component.
    infinite = namespace(part.values).isinf(part.values)
    patterns = namespace(vectors).where(infinite, padded(part.patterns, columns, size), pencil.b.apply(vectors))
    return replace(part, vectors=vectors, patterns=patterns), columns


def padded(vectors: Array, columns: Columns, n_features: int) -> Array:
    """Give vectors with zeros for all columns but some."""
    places = np.full(n_features, len(columns), dtype=np.intp)
    places[columns] = np.arange(len(columns))
    return take(concat([vectors, like(np.zeros((1, vectors.shape[1])), vectors)]), places)


# --- without each fold -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class FoldColumns:
    """Components on few columns without each fold, from moments of the columns or of coordinates in a span.

    Attributes
    ----------
    pose : callable
        From the moments of a target and of backgrounds to a pencil.
    n_components : int
    side : str
    span : SpanFolds or None
        What the moments of wide data are coordinates of.
    dense_size : int
        Up to this size LAPACK finds a few vectors as fast as iterations do.
    """

    pose: Callable[[Moments, list[Moments]], Pencil]
    n_components: int
    side: str
    span: SpanFolds | None
    dense_size: int

    def whole(self, target: Moments, backgrounds: list[Moments]) -> tuple[Pencil, Solution]:
        """Give the problem without a fold, and its solution on all columns."""
        problem = self.pose(target, backgrounds)
        few = problem.n_features > max(self.dense_size, PER_COMPONENT * self.n_components)
        solver = "lanczos" if few else "dense"
        if problem.keeps_rows:
            solver = "reduced"
        return problem, solve(problem, self.n_components, solver=solver, side=self.side)

    def without(
        self, target: Moments, backgrounds: list[Moments], left_out: LeftOut, counts: Sequence[int]
    ) -> Iterator[tuple[Columns, Array]]:
        """Give the columns and the components, in the coordinates of the moments, for each number, descending."""
        problem, whole = self.whole(target, backgrounds)
        if self.span is None:
            for columns, part in eliminated(problem, whole, counts, side=self.side):
                yield columns, padded(part.vectors, columns, problem.n_features)
            return
        span, datasets = self.span, [target, *backgrounds]
        variances = span.variances_without(left_out)

        def place(part: Moments) -> int:
            return [part is dataset for dataset in datasets].index(True)

        def on_columns(columns: Columns) -> Pencil:
            kept = span.rows_without(left_out, columns)
            forms = [
                Form(len(columns), tuple((weight, kept[place(part)]) for weight, part in form.terms), form.ridge)
                for form in (problem.a, problem.b)
            ]
            return replace(problem, a=forms[0], b=forms[1])

        diagonal = np.full(span.n_columns, problem.b.ridge)
        for weight, dataset in problem.b.terms:
            diagonal += weight * to_host(variances[place(dataset)])
        order = rank_columns(span.lifted(whole.patterns), diagonal)
        for columns, _, vectors in eliminated_in(
            problem, whole, counts, order, span.basis_of, side=self.side, on_columns=on_columns
        ):
            yield columns, vectors

    def choose(
        self, counts: Sequence[int], folds: Sequence[Folds[Moments]], weights: Float
    ) -> tuple[HeldOutPath, list[Columns]] | None:
        """Find the fewest columns whose ratios on rows that were not fitted are as good as the best.

        With the path come the columns that each fold chooses of this number; None if there are too few rows for folds.
        """
        seen: list[list[Columns]] = []

        def components(target: Moments, backgrounds: list[Moments], left_out: LeftOut) -> list[Array]:
            columns, found = zip(*self.without(target, backgrounds, left_out, counts), strict=True)
            seen.append(list(columns))
            return list(found)

        path = judge_views(components, np.array(counts), folds, weights, self.side)
        return None if path is None else (path, [columns[path.chosen] for columns in seen])
