"""Many similar pencils: a few are solved by block iterations, the others in the span of their vectors.

Everything here works on stacks: the pencils of several folds, of the same size, are solved together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from standout._arrays import Float
from standout._xp import cholesky, concat, diagonal, eye, is_foreign, like, namespace, solve_triangular, to_host
from standout.moments import Moments, ScatterMoments
from standout.pencil._direct import is_weak, leading_pair

# Representatives of a path, products per round, and extra vectors in a block.
REPRESENTATIVES, DEPTH, MORE = 4, 5, 2
# Rounds from random vectors.
ROUNDS = 2
# Most rounds for a solution that is reported, and its residual. A round that leaves more than this share of the
# residual converges too slowly to go on.
MOST_ROUNDS, EXACT, SLOW = 5, 1e-11, 0.3
# The same for the components of a fold. Up to this size, folds start from random vectors, so that results do not depend
# on the path or the array library. Larger ones have fewer rounds from the vectors of the path.
FOLD_ROUNDS, NEAR_ROUNDS, FOLD_EXACT, FRESH_SIZE = 4, 2, 1e-9, 1000
# Random numbers that are added to a block, as a share of its size.
BLUR = 1e-12
# Columns are brought to one size if their variances differ by more than the first number. Beyond the second one,
# iterations are not tried.
UNEVEN, MOST_UNEVEN = 1e4, 1e10
# From this size on, paths are computed in single precision, which is enough for a choice.
LEAST_SINGLE = 256
# Up to these sizes LAPACK solves all values of a path, and its representatives and the pencils of folds.
WHOLE_SIZE, SMALL_SIZE = 20, 128
# Up to this size one call for a stack takes less time than one for each of its matrices.
TINY_SIZE = 10


@dataclass(frozen=True, eq=False)
class Posed:
    """Pencils of one dataset at several values of a parameter.

    Attributes
    ----------
    terms : list of Moments
    first, second : ndarray of shape (n_values, n_terms)
        Coefficients of the terms in A and in B.
    ridges : ndarray of shape (n_values,)
        Multiple of the identity in B.
    shares : ndarray of shape (n_values, n_backgrounds)
        The shrinkage of each background.
    scale : array of shape (n_features,) or None
        The scales by which columns were divided.
    """

    terms: Sequence[Moments]
    first: Float
    second: Float
    ridges: Float
    shares: Float
    scale: Float | None


@dataclass(frozen=True, eq=False)
class _Stack:
    """Pencils ``Σ aⱼ Mⱼ u = λ (Σ bⱼ Mⱼ + r E) u`` over stacks of matrices, with columns brought to one size.

    Attributes
    ----------
    matrices : array of shape (n_folds, n_terms, n, n)
    scale : ndarray of shape (n_folds, n)
        The factors of the columns. The diagonal of E is its square.
    units : array of shape (n_folds, n)
        The factors that turn vectors into vectors of the moments before any scaling.
    first, second : ndarray of shape (n_folds, n_values, n_terms)
        The coefficients a and b.
    ridges : ndarray of shape (n_folds, n_values)
    precision : float
        Relative rounding error of the least precise matrix.
    """

    matrices: Float
    scale: Float
    units: Float
    first: Float
    second: Float
    ridges: Float
    precision: float

    @classmethod
    def of(cls, folds: Sequence[Posed], single: bool = False) -> _Stack | None:
        """Collect the matrices and coefficients of folds; None if iterations do not suit them."""
        every = [part for posed in folds for part in posed.terms if isinstance(part, ScatterMoments)]
        # The number of coordinates of scaled wide rows depends on the fold.
        if len(every) < len(folds) * len(folds[0].terms) or len({part.n_features for part in every}) > 1:
            return None
        xp, n_folds = namespace(every[0].mean), len(folds)
        variances = to_host(xp.stack([part.variances for part in every]))
        varying = np.where(variances > 0.0, variances, np.nan)
        most, least = np.nanmax(varying, axis=1, initial=0.0), np.nanmin(varying, axis=1, initial=np.inf)
        if np.any(most > MOST_UNEVEN * least):
            return None
        # Sums are divided by their weights in the coefficients, which spares copies of them.
        matrices = [part.scatter for part in every]
        shares = np.array([part.total_weight for part in every]).reshape(n_folds, 1, -1)
        totals = variances.reshape(n_folds, -1, variances.shape[1]).sum(axis=1)
        safe = np.where(totals > 0.0, totals, 1.0)
        scale = np.ones_like(safe)
        units: Any = like(scale, every[0].mean)
        if safe.max() > UNEVEN * safe.min():
            # Powers of two change no digits.
            scale = 2.0 ** -np.round(0.5 * np.log2(safe))
            units = like(scale, every[0].mean)
            owners = [units[place, :] for place in np.repeat(np.arange(n_folds), len(every) // n_folds).tolist()]
            matrices = [part * (own[:, None] * own) for own, part in zip(owners, matrices, strict=True)]
        if folds[0].scale is not None:
            units = units / xp.stack([posed.scale for posed in folds])
        whole = np.stack(matrices, dtype=np.float32, casting="same_kind") if single else xp.stack(matrices)
        whole = xp.reshape(whole, (n_folds, -1, *whole.shape[1:]))
        precision = max(part.precision for part in every)
        first, second = np.array([posed.first for posed in folds]), np.array([posed.second for posed in folds])
        ridges = np.array([posed.ridges for posed in folds])
        return cls(whole, scale, units, first / shares, second / shares, ridges, precision)

    @property
    def difference(self) -> bool:
        """Whether B is the identity at every value."""
        return not self.second.any() and bool(np.all(self.ridges == 1.0))

    def at(self, values: list[int]) -> tuple[Float, Float]:
        """Return A and B at some values, stacks of shape (n_folds * n_values, n, n)."""
        xp, (n_folds, n_terms, size, _) = namespace(self.matrices), self.matrices.shape
        flat = xp.reshape(self.matrices, (n_folds, n_terms, -1))
        both = (_as(part[:, values], flat) @ flat for part in (self.first, self.second))
        a, b = (xp.reshape(part, (-1, size, size)) for part in both)
        ridges = _as((self.ridges[:, values, None] * self.scale[:, None] ** 2).reshape(-1, size), b)
        if is_foreign(b):
            return a, b + ridges[:, :, None] * eye(size, b)
        # In place: matrices may be large.
        b.reshape(len(b), -1)[:, :: size + 1] += ridges
        return a, b

    def inside(self, basis: Float | None, values: Any, count: int, precision: float = 0.0) -> tuple[Float, Float]:
        """Return values and vectors at some values, in the span of bases or in all directions; NaN if B is singular."""
        small, squares = self.matrices, self.scale[:, :, None] ** 2
        if basis is not None:
            small = _transposed(basis)[:, None] @ (small @ basis[:, None])
            ridge = to_host(_transposed(basis) @ (_as(squares, basis) * basis))
        else:
            ridge = squares * np.eye(len(squares[0]))
        small = to_host(small)
        a, b = (np.einsum("fvt,ft...->fv...", part[:, values], small) for part in (self.first, self.second))
        b += self.ridges[:, values, None, None] * ridge[:, None]
        found, turn = _small(a, b, count, precision)
        turn = like(turn, self.matrices)
        vectors = turn if basis is None else basis[:, None] @ turn
        return found, vectors * self.units[:, None, :, None]

    def improved(
        self, starts: Sequence[Float], n_wanted: int, rounds: int, tolerance: float = 0.0
    ) -> tuple[Float, Float, float] | None:
        """Solve the pencils at the first value by iterations, from vectors near the solutions if there are any."""
        size, width = self.matrices.shape[-1], n_wanted + MORE
        if starts:
            blocks = [part / self.units[place, :, None] for place, part in enumerate(starts)]
            more = _random(size, width - blocks[0].shape[1], 0, blocks[0])
            block = namespace(more).stack([concat([part, more], axis=1) for part in blocks])
        else:
            block = self.matrices[:, 0] @ _random(size, width, 0, self.matrices)
        found = _iterated(*self.at([0]), block, n_wanted, rounds, tolerance, self.difference, self.precision)
        if found is None:
            return None
        values, vectors, residual = found
        return values[:, :n_wanted], vectors[..., :n_wanted] * self.units[..., None], residual


def path_vectors(
    folds: Sequence[Posed], n_components: int, seed: int = 0, *, single: bool = True
) -> list[list[Float | None]] | None:
    """Return approximate leading vectors of each fold at each value; None if iterations do not suit the problem.

    Values are in the order of a parameter, from the least to the most regularised. A few representatives are solved by
    iterations, and all values in the joint span of their vectors. Vectors are None if B is singular. Large NumPy
    matrices are in single precision, unless one of them is singular in it.
    """
    n_folds, n_values, mean = len(folds), len(folds[0].ridges), folds[0].terms[0].mean
    size = mean.shape[0]
    single = single and size >= LEAST_SINGLE and not is_foreign(mean)
    stack = _Stack.of(folds, single)
    if stack is None:
        return None
    places = np.unique(np.linspace(n_values - 1, 0, min(REPRESENTATIVES, n_values)).round().astype(int))[::-1]
    # A problem without a basis is solved in all of its directions.
    basis = None
    if size > WHOLE_SIZE and len(places) * (n_components + MORE) < size:
        if size <= SMALL_SIZE:
            values, vectors = stack.inside(None, places, n_components)
            known = np.flatnonzero(np.isfinite(values).all(axis=(0, 2))).tolist()
            blocks = [vectors[:, place] / stack.units[..., None] for place in known]
        else:
            blocks = _representatives(stack, places, n_components, seed)
        if not blocks and single:
            return path_vectors(folds, n_components, seed, single=False)
        if not blocks:
            return [[None] * n_values for _ in folds]
        basis = _orthonormal(concat(blocks, axis=-1))
    values, vectors = stack.inside(basis, slice(None), n_components)
    usable = np.all(np.isfinite(values), axis=-1)
    return [[vectors[i, j] if usable[i, j] else None for j in range(n_values)] for i in range(n_folds)]


def _representatives(stack: _Stack, places: Any, n_components: int, seed: int) -> list[Float]:
    """Return vectors of all folds at some values, each started from the previous value; none where a B is singular."""
    size, blocks = stack.matrices.shape[-1], list[Float]()
    block = stack.matrices[:, 0] @ _random(size, n_components + MORE, seed, stack.matrices)
    for place in places.tolist():
        ended = _iterated(*stack.at([place]), block, n_components, 1 if blocks else ROUNDS, 0.0, stack.difference)
        if ended is not None:
            block = ended[1]
            blocks.append(block)
    return blocks


def fold_vectors(
    folds: Sequence[Posed], n_components: int, starts: Sequence[Float] | None = None
) -> list[tuple[Float, Float] | None]:
    """Return values and vectors of pencils of folds; None if B is singular or iterations do not suit the problem.

    Components of noise have close values, so that only many iterations separate them. On held-out rows they are
    equivalent. Few rounds are enough for components that stand out.
    """
    stack, size = _Stack.of(folds), folds[0].terms[0].n_features
    if stack is None:
        return [None] * len(folds)
    if size <= SMALL_SIZE or size < (DEPTH + 1) * (n_components + MORE):
        values, vectors = stack.inside(None, slice(1), n_components, stack.precision)
        values, vectors = values[:, 0], vectors[:, 0]
    else:
        near = () if starts is None or size <= FRESH_SIZE else starts
        found = stack.improved(near, n_components, NEAR_ROUNDS if near else FOLD_ROUNDS, FOLD_EXACT)
        if found is None:
            return [None] * len(folds)
        values, vectors, _ = found
    usable: Any = np.isfinite(values).all(axis=1)
    return [(values[i], vectors[i]) if known else None for i, known in enumerate(usable)]


def refined(posed: Posed, n_components: int, start: Float) -> tuple[Float, Float] | None:
    """Solve one pencil by block iterations from vectors near the solution; None if they do not converge fast."""
    if start.shape[0] < (DEPTH + 1) * (n_components + MORE):
        return None
    stack = _Stack.of([posed])
    found = None if stack is None else stack.improved([start], n_components, MOST_ROUNDS, EXACT)
    if found is None or not found[2] <= EXACT:
        return None
    return like(found[0][0], start), found[1][0]


def _iterated(
    a: Float,
    b: Float,
    block: Float,
    n_wanted: int,
    rounds: int,
    tolerance: float,
    difference: bool,
    precision: float = 0.0,
) -> tuple[Float, Float, float] | None:
    """Improve blocks by rounds of block Krylov steps of ``B⁻¹ A``, or of ``(σ B - A)⁻¹ B`` for differences.

    Returns values (on the host) and vectors in descending order, and the largest residual of the wanted ones, if the
    rounds end by a tolerance; None if a B is singular.
    """
    xp, (size, width) = namespace(block), block.shape[-2:]
    inverse = None if difference else _inverse(b, precision)
    residual, values = float("inf"), np.zeros(0)
    for _ in range(rounds):
        before = residual
        if difference and residual > 0.1:
            inverse = _shifted(a, b, block)
        if inverse is None:
            return None
        basis = block = _orthonormal(block)
        for _ in range(min(DEPTH, size // width - 1)):
            block = inverse((b if difference else a) @ block)
            # The residual of a converged vector is only rounding. The same random numbers are added in every library.
            lengths = xp.sum(block**2, axis=-2) ** 0.5
            block = block + BLUR * lengths[..., None, :] * _random(size, width, basis.shape[-1], basis)
            for _ in range(2):
                block = block - basis @ (_transposed(basis) @ block)
            block = _orthonormal(block)
            basis = concat([basis, block], axis=-1)
        a_basis, b_basis = a @ basis, b @ basis
        values, turn = _projected(basis, a_basis, b_basis, width)
        if not np.all(np.isfinite(values)):
            return None
        turn = _as(turn, basis)
        block = basis @ turn
        if rounds == 1 or not tolerance:
            continue
        images, others = a_basis @ turn[..., :n_wanted], b_basis @ turn[..., :n_wanted]
        missed = images - others * _as(values[:, None, :n_wanted], basis)
        lengths = to_host(xp.sum(xp.stack([missed, images]) ** 2, axis=-2)) ** 0.5
        residual = float(np.max(lengths[0] / np.where(lengths[1] > 0.0, lengths[1], 1.0)))
        if residual <= tolerance or SLOW * before < residual < before < float("inf"):
            break
    return values, block, residual


def _inverse(matrices: Float, precision: float = 0.0) -> Callable[[Float], Float] | None:
    """Return a function that multiplies blocks with inverses; None if a matrix is not positive definite."""
    if is_foreign(matrices):
        whole = cholesky(matrices)
        if whole is None or is_weak(whole, diagonal(matrices), precision):
            return None
        # Products take a device less time than triangular systems.
        half = solve_triangular(whole, eye(matrices.shape[-1], whole))
        return lambda block: half.mT @ (half @ block)
    factors = [factor for part in matrices if (factor := cholesky(1.0 * part)) is not None]
    if len(factors) < len(matrices) or any(map(is_weak, factors, diagonal(matrices), [precision] * len(factors))):
        return None

    def inverse(block: Float) -> Float:
        halves = [solve_triangular(factor, part) for factor, part in zip(factors, block, strict=True)]
        return np.stack(
            [solve_triangular(factor, half, transposed=True) for factor, half in zip(factors, halves, strict=True)]
        )

    return inverse


def _shifted(a: Float, b: Float, block: Float) -> Callable[[Float], Float] | None:
    """Return the inverse of ``σ B - A`` with σ just above all eigenvalues, found by trying; None out of range."""
    basis = _orthonormal(block)
    values, _ = _projected(basis, a @ basis, b @ basis, block.shape[-1])
    if not np.all(np.isfinite(values)):
        return None
    top = values[:, 0]
    step = 0.1 * (values[:, 0] - values[:, -1]) + 1e-3 * np.abs(values).max(axis=-1)
    step = np.where(step > 0.0, step, 1.0)
    while True:
        inverse = _inverse(_as((top + step)[:, None, None], a) * b - a)
        if inverse is not None:
            return inverse
        step = 4.0 * step


def _projected(basis: Float, a_basis: Float, b_basis: Float, count: int) -> tuple[Float, Float]:
    """Solve pencils in the span of bases, by their products with A and B."""
    both = to_host(namespace(basis).stack([_transposed(basis) @ a_basis, _transposed(basis) @ b_basis]))
    return _small(both[0], both[1], count)


def _small(a: Float, b: Float, count: int, precision: float = 0.0) -> tuple[Float, Float]:
    """Return the leading values and vectors of stacks of small pencils on the host; NaN where B is singular."""
    a, b, count = a.astype(np.float64), b.astype(np.float64), min(count, a.shape[-1])
    if a.shape[-1] <= TINY_SIZE and not precision:
        with suppress(np.linalg.LinAlgError):
            half = np.linalg.inv(np.linalg.cholesky(b))
            values, vectors = np.linalg.eigh(half @ a @ half.swapaxes(-1, -2))
            return values[..., ::-1][..., :count], half.swapaxes(-1, -2) @ vectors[..., ::-1][..., :count]
    values, vectors = np.full((*a.shape[:-2], count), np.nan), np.zeros((*a.shape[:-1], count))
    for place in np.ndindex(a.shape[:-2]):
        found = leading_pair(a[place], b[place], count, precision)
        if found is not None:
            values[place], vectors[place] = found
    return values, vectors


def _random(size: int, width: int, seed: int, reference: Float) -> Float:
    return _as(np.random.default_rng(seed).standard_normal((size, width)), reference)


def _as(numbers: Float, reference: Float) -> Float:
    """Return numbers in the library and the precision of a reference."""
    return like(numbers, reference) if is_foreign(reference) else np.asarray(numbers, dtype=reference.dtype)


def _orthonormal(block: Float) -> Float:
    basis: Float = namespace(block).linalg.qr(block)[0]
    return basis


def _transposed(matrices: Float) -> Float:
    return matrices.mT if is_foreign(matrices) else np.swapaxes(matrices, -1, -2)
