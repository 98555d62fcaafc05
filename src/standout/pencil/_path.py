"""Many similar pencils: a few are solved by block iterations, the others in the span of their vectors.

Everything here works on stacks: the pencils of several folds, of the same size, are solved together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from standout._arrays import Float
from standout._xp import cholesky, concat, diagonal, eye, is_foreign, like, namespace, solve_triangular, to_host
from standout.moments import Moments, ScatterMoments
from standout.pencil._direct import is_weak

# Representatives, as shares of the length of a path. Nearly full regularisation hardly changes the components.
REPRESENTATIVES = (0.0, 0.22, 0.83)
# Extra vectors in a block, and in what a representative adds to the span.
MORE, KEPT_MORE = 2, 10
# Products for the first representative, and for those that start from the vectors of another one.
FIRST_STEPS, NEXT_STEPS = 6, 5
# Products for the components of a fold. They start from random vectors, so that results do not depend on the path or
# the array library, and end at this residual.
FOLD_STEPS, FOLD_EXACT = 20, 1e-10
# Products between two checks of the residual.
LOOK = 6
# Random numbers that are added to a block, as a share of its size.
BLUR = 1e-12
# Columns are brought to one size if their variances differ by more than the first number. Beyond the second one,
# iterations are not tried.
UNEVEN, MOST_UNEVEN = 1e4, 1e10
# From this size on, paths are computed in single precision, which is enough for a choice.
LEAST_SINGLE = 256
# Up to these sizes LAPACK solves all values of a path, and its representatives and the pencils of folds.
WHOLE_SIZE, SMALL_SIZE = 20, 128


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

    def summed(self, coefficients: Float, ridges: Float) -> Float:
        """Return the sums of the matrices of each fold with a ridge, a stack of shape (n_folds, n, n)."""
        xp, (n_folds, n_terms, size, _) = namespace(self.matrices), self.matrices.shape
        flat = xp.reshape(self.matrices, (n_folds, n_terms, -1))
        whole = xp.reshape(_as(coefficients[:, None], flat) @ flat, (n_folds, size, size))
        ridge = _as(ridges[:, None] * self.scale**2, flat)
        if is_foreign(flat):
            return whole + ridge[:, :, None] * eye(size, whole)
        # In place: matrices may be large.
        whole.reshape(n_folds, -1)[:, :: size + 1] += ridge
        return whole

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

    def iterated(
        self, value: int, count: int, steps: int, span: Float | None = None, tolerance: float = 0.0
    ) -> tuple[Float, Float] | None:
        """Return values and vectors at one value by iterations, with more vectors than wanted; None if B is singular.

        They start from the best vectors of a span, or from random ones, and use ``L⁻¹ A L⁻ᵀ`` with ``B = L Lᵀ``. For a
        difference they use ``L⁻¹ E L⁻ᵀ`` with ``σ E - A = L Lᵀ``, and σ just above all eigenvalues, found by trying.
        """
        target, squares = self.matrices[:, 0], self.scale[:, :, None] ** 2
        block = target @ _random(target.shape[-1], count + MORE, 0, target)
        bounds, started = self.inside(_orthonormal(block) if span is None else span, [value], count + MORE)
        if span is not None:
            block = started[:, 0] / self.units[..., None]
        bounds, shift, halves = bounds[:, 0], None, None
        if not self.difference:
            limit = self.precision if tolerance else 0.0
            halves = _halves(self.summed(self.second[:, value], self.ridges[:, value]), limit)
        elif np.all(np.isfinite(bounds)):
            step = 0.1 * (bounds[:, 0] - bounds[:, -1]) + 1e-3 * np.abs(bounds).max(axis=-1)
            step = np.where(step > 0.0, step, 1.0)
            while halves is None:
                shift = bounds[:, 0] + step
                halves = _halves(self.summed(-self.first[:, value], shift))
                step = 4.0 * step
        if halves is None:
            return None
        forward, backward = halves
        square = _as(squares, target)

        def turned(part: Float) -> Float:
            return forward(target @ part if shift is None else square * part)

        values, vectors = krylov(lambda part: turned(backward(part)), turned(block), count, steps, tolerance)
        values = values * self.first[:, value, :1] if shift is None else shift[:, None] - 1.0 / values
        return values, backward(vectors)


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
    places = np.unique(np.round((n_values - 1) * np.array(REPRESENTATIVES)).astype(int))[::-1]
    # A problem without a basis is solved in all of its directions.
    basis = None
    if size > WHOLE_SIZE and len(places) * (n_components + MORE) < size:
        blocks = list[Float]()
        if size <= SMALL_SIZE:
            values, vectors = stack.inside(None, places, n_components + MORE)
            known = np.flatnonzero(np.isfinite(values).all(axis=(0, 2))).tolist()
            blocks = [vectors[:, place] / stack.units[..., None] for place in known]
        else:
            span = None
            for place in places.tolist():
                found = stack.iterated(place, n_components, NEXT_STEPS if blocks else FIRST_STEPS, span)
                if found is not None:
                    blocks.append(found[1])
                    span = _orthonormal(found[1])
        if not blocks and single:
            return path_vectors(folds, n_components, seed, single=False)
        if not blocks:
            return [[None] * n_values for _ in folds]
        basis = _orthonormal(concat(blocks, axis=-1))
    values, vectors = stack.inside(basis, slice(None), n_components)
    usable = np.all(np.isfinite(values), axis=-1)
    return [[vectors[i, j] if usable[i, j] else None for j in range(n_values)] for i in range(n_folds)]


def fold_vectors(folds: Sequence[Posed], n_components: int) -> list[tuple[Float, Float] | None]:
    """Return values and vectors of pencils of folds; None if B is singular or iterations do not suit the problem.

    Components of noise have close values, so that only many iterations separate them. On held-out rows they are
    equivalent. Few products are enough for components that stand out.
    """
    mean = folds[0].terms[0].mean
    single = mean.shape[0] >= LEAST_SINGLE and not is_foreign(mean) and folds[0].terms[0].precision > 1e-10
    stack, size = _Stack.of(folds, single), mean.shape[0]
    if stack is None:
        return [None] * len(folds)
    if size <= SMALL_SIZE or size < (LOOK + 1) * (n_components + MORE):
        values, vectors = stack.inside(None, slice(1), n_components, stack.precision)
        values, vectors = values[:, 0], vectors[:, 0]
    else:
        found = stack.iterated(0, n_components, FOLD_STEPS, tolerance=FOLD_EXACT)
        if found is None:
            return [None] * len(folds)
        values = found[0][:, :n_components]
        vectors = found[1][..., :n_components] * stack.units[..., None]
    usable: Any = np.isfinite(values).all(axis=1)
    return [(values[i], vectors[i]) if known else None for i, known in enumerate(usable)]


def krylov(
    apply: Callable[[Float], Float], block: Float, count: int, steps: int, tolerance: float = 0.0
) -> tuple[Float, Float]:
    """Return values (on the host) and vectors of symmetric operators in block Krylov spaces, in descending order.

    Blocks are wider than the number of wanted vectors, so that equal values are found. A space ends early if the
    residuals of the wanted vectors are below the tolerance.
    """
    xp, (size, width) = namespace(block), block.shape[-2:]
    steps = max(min(steps, size // width - 1), 1)
    more = _random(size, width * steps, 1, block)
    basis = block = _orthonormal(block)
    images = block[..., :0]
    while True:
        block = apply(block)
        images = concat([images, block], axis=-1)
        n_steps = images.shape[-1] // width
        if n_steps > steps or (tolerance and n_steps % LOOK == 0):
            inside = to_host(_transposed(basis) @ images).astype(np.float64)
            if not np.all(np.isfinite(inside)):
                return np.full((*inside.shape[:-2], count), np.nan), basis[..., :count]
            values, turn = np.linalg.eigh(0.5 * (inside + inside.swapaxes(-1, -2)))
            kept = min(count + KEPT_MORE, values.shape[-1])
            values, turn = values[..., ::-1][..., :kept], _as(turn[..., ::-1][..., :kept].copy(), basis)
            vectors = basis @ turn
            if n_steps > steps:
                return values, vectors
            missed = images @ turn[..., :count] - _as(values[..., None, :count], basis) * vectors[..., :count]
            lengths = to_host(xp.sum(missed**2, axis=-2)) ** 0.5
            if np.all(lengths <= tolerance * values[..., :1]):
                return values, vectors
        # The residual of a converged vector is only rounding. The same random numbers are added in every library.
        lengths = xp.sum(block**2, axis=-2) ** 0.5
        block = block + BLUR * lengths[..., None, :] * more[:, (n_steps - 1) * width : n_steps * width]
        # Twice, because the first result may be mostly rounding.
        for _ in range(2):
            block = block - basis @ (_transposed(basis) @ block)
        block = _orthonormal(block)
        basis = concat([basis, block], axis=-1)


def _halves(
    matrices: Float, precision: float = 0.0
) -> tuple[Callable[[Float], Float], Callable[[Float], Float]] | None:
    """Return functions that multiply blocks with L⁻¹ and L⁻ᵀ; None if a matrix is not positive definite."""
    variances = 1.0 * diagonal(matrices)
    if is_foreign(matrices):
        whole = cholesky(matrices)
        if whole is None or is_weak(whole, variances, precision):
            return None
        # Products take a device less time than triangular systems.
        half = solve_triangular(whole, eye(matrices.shape[-1], whole))
        return lambda block: half @ block, lambda block: half.mT @ block
    factors = [factor for part in matrices if (factor := cholesky(part)) is not None]
    if len(factors) < len(matrices) or any(map(is_weak, factors, variances, [precision] * len(factors))):
        return None

    def solved(block: Float, transposed: bool) -> Float:
        pairs = zip(factors, block, strict=True)
        return np.stack([solve_triangular(factor, part, transposed=transposed) for factor, part in pairs])

    return lambda block: solved(block, False), lambda block: solved(block, True)


def _small(a: Float, b: Float, count: int, precision: float = 0.0) -> tuple[Float, Float]:
    """Return the leading values and vectors of stacks of small pencils on the host; NaN where B is singular."""
    a, b, size = a.astype(np.float64), b.astype(np.float64), a.shape[-1]
    count = min(count, size)
    values, vectors = np.full((*a.shape[:-2], count), np.nan), np.zeros((*a.shape[:-1], count))
    variances = 1.0 * diagonal(b)
    known = np.isfinite(a).all(axis=(-1, -2)) & np.isfinite(b).all(axis=(-1, -2))
    for place in zip(*np.nonzero(known), strict=True):
        # The transpose of a symmetric matrix is the same matrix in LAPACK's order of memory.
        found, turn, n_found, _, info = linalg.lapack.dsygvx(
            a[place].T, b[place].T, range="I", il=size - count + 1, iu=size, overwrite_a=True, overwrite_b=True
        )
        if info == 0 and n_found == count:
            values[place], vectors[place] = found[count - 1 :: -1], turn[:, ::-1]
    values[np.any(diagonal(b) ** 2 < 100.0 * size * precision * variances, axis=-1)] = np.nan
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
