"""Many similar pencils: a few are solved by block iterations, the others in the span of the vectors of these few.

All functions work on stacks: pencils of the same size from several folds are solved together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from standout._arrays import Float
from standout._xp import concat, diagonal, eye, is_foreign, like, namespace, orthonormal, to_host, zeros
from standout.moments import Moments, ScatterMoments
from standout.pencil._direct import is_weak
from standout.pencil._iterative import LEAST_STEPS, MORE, Halves, cast, halves_of, krylov, random, transposed

# Positions on a path (0 to 1) that are solved first.
REPRESENTATIVES = (0.0, 0.45, 0.9)
# Number of matrix products for the representatives, of ratios and of differences.
PATH_STEPS, DIFFERENCE_STEPS = 4, 6
# Largest number of products for the components of a fold. The iterations start from random vectors, so that results do
# not depend on the path or the array library. The iterations end at the residual FOLD_EXACT. In single precision they
# end at SINGLE_EXACT.
FOLD_STEPS, FOLD_EXACT, SINGLE_EXACT = 18, 1e-9, 1e-5
# A solution with a larger residual, relative to the largest eigenvalue, is not used.
MOST_RESIDUAL = 0.1
# Columns are scaled to a similar size if their variances differ by more than the factor UNEVEN. Beyond the factor
# MOST_UNEVEN, iterations are not tried.
UNEVEN, MOST_UNEVEN = 1e4, 1e10
# With at least this many columns, paths are in single precision, which is accurate enough to choose a parameter.
LEAST_SINGLE = 256
EPS = float(np.finfo(np.float64).eps)
# With at most WHOLE_SIZE columns, LAPACK solves the pencils at all values of a path. With at most SMALL_SIZE columns,
# LAPACK solves the pencils at the representatives, and the pencils of folds in `fold_vectors`.
WHOLE_SIZE, SMALL_SIZE = 20, 128
# Number of extra vectors of a representative, and highest order of the changes that are computed: if LAPACK solves the
# representatives, and if iterations solve them.
ONE_MORE, SMALL_ORDERS, ORDERS = 1, 1, 2


@dataclass(frozen=True, eq=False)
class Posed:
    """Pencils of one dataset at several values of a parameter.

    Attributes
    ----------
    terms : list of Moments
        The moments whose covariances are added, with coefficients, to A and B.
    first, second : ndarray of shape (n_values, n_terms)
        Coefficients of the terms in A and in B.
    ridges : ndarray of shape (n_values,)
        The multiple of the identity that is added to B.
    shares : ndarray of shape (n_values, n_backgrounds)
        The shrinkage of each background.
    scale : array of shape (n_features,) or None
        The numbers by which the columns were divided.
    """

    terms: Sequence[Moments]
    first: Float
    second: Float
    ridges: Float
    shares: Float
    scale: Float | None


@dataclass(frozen=True, eq=False)
class _Stack:
    """Pencils ``Σ aⱼ Mⱼ u = λ (Σ bⱼ Mⱼ + r E) u``, with columns scaled to a similar size.

    The Mⱼ are scatter matrices, a and b are coefficients, r is the ridge, and E is a diagonal matrix.

    Attributes
    ----------
    matrices : array of shape (n_folds, n_terms, n, n)
    scale : ndarray of shape (n_folds, n)
        The factors by which the columns were multiplied. Their squares are the diagonal of E.
    units : array of shape (n_folds, n)
        Multiplied with these factors, solutions become vectors in the units of the columns before any scaling.
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
        """Return the stack of folds; None if a term has no matrix, or the variances of columns differ too much."""
        every = [part for posed in folds for part in posed.terms if isinstance(part, ScatterMoments)]
        if len(every) < len(folds) * len(folds[0].terms):
            return None
        xp, n_folds = namespace(every[0].mean), len(folds)
        variances = to_host(xp.stack([part.variances for part in every]))
        least = variances.min(axis=1, initial=np.inf, where=variances > 0.0)
        if np.any(variances.max(axis=1) > MOST_UNEVEN * least):
            return None
        # A covariance is a scatter matrix divided by its total weight. The coefficients are divided instead of the
        # scatter matrices, which saves copies of the matrices.
        matrices = [part.scatter for part in every]
        shares = np.array([part.total_weight for part in every]).reshape(n_folds, 1, -1)
        totals = variances.reshape(n_folds, -1, variances.shape[1]).sum(axis=1)
        safe = np.where(totals > 0.0, totals, 1.0)
        scale = np.ones_like(safe)
        units: Any = like(scale, every[0].mean)
        if safe.max() > UNEVEN * safe.min():
            # Scaling by powers of two is exact.
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
        """Whether B is the identity at every value of the parameter."""
        return not self.second.any() and bool(np.all(self.ridges == 1.0))

    def summed(self, coefficients: Float, ridges: Float) -> Float:
        """Return weighted sums of each fold's matrices plus the ridge, in the shape (n_folds * n_values, n, n)."""
        xp, (n_folds, n_terms, size, _) = namespace(self.matrices), self.matrices.shape
        flat = xp.reshape(self.matrices, (n_folds, n_terms, -1))
        whole = xp.reshape(cast(coefficients, flat) @ flat, (-1, size, size))
        ridge = cast(np.reshape(ridges[:, :, None] * self.scale[:, None] ** 2, (-1, size)), flat)
        if is_foreign(flat):
            return whole + ridge[:, :, None] * eye(size, whole)
        # Add in place, because the matrices may be large.
        whole.reshape(len(whole), -1)[:, :: size + 1] += ridge
        return whole

    def inside(self, basis: Float | None, values: Any, count: int, exact: bool = False) -> tuple[Float, Float]:
        """Return eigenvalues and vectors of the scaled columns at some values of the parameter, by LAPACK.

        Vectors are in the span of `basis`. If `basis` is None, they may have any direction. If B is singular,
        eigenvalues are NaN and vectors are zero. With `exact`, eigenvalues are NaN and vectors zero also if B is nearly
        singular.
        """
        # The ridge is added to every `step`-th entry of a flat matrix: to the diagonal, or with a basis to all entries.
        small, ridge, step = self.matrices, self.scale**2, self.scale.shape[1] + 1
        if basis is not None:
            small = transposed(basis)[:, None] @ (small @ basis[:, None])
            ridge = to_host(transposed(basis) @ (cast(ridge[:, :, None], basis) * basis)).reshape((len(ridge), -1))
            step = 1
        small, size = to_host(small).astype(np.float64, copy=False), small.shape[-1]
        first, second, ridges = self.first[:, values], self.second[:, values], self.ridges[:, values]
        count = min(count, size)
        found, turn = np.full((*ridges.shape, count), np.nan), np.zeros((*ridges.shape, size, count))
        # Work fold by fold. Arrays of all folds would be so large that their memory is requested from the operating
        # system in every call, which is slow.
        for fold in np.flatnonzero(np.isfinite(small).all(axis=(1, 2, 3))).tolist():
            flat = np.reshape(small[fold], (-1, size * size))
            a, b = first[fold] @ flat, second[fold] @ flat
            b[:, ::step] += ridges[fold, :, None] * ridge[fold]
            # Transposing the symmetric matrices gives LAPACK's memory order without a copy.
            a, b = (part.reshape((-1, size, size)).swapaxes(1, 2) for part in (a, b))
            variances = diagonal(b).copy()
            for place, pair in enumerate(zip(a, b, strict=True)):
                values, vectors, n_found, _, info = linalg.lapack.dsygvx(
                    *pair, range="I", il=size - count + 1, iu=size, overwrite_a=True, overwrite_b=True
                )
                if info == 0 and n_found == count:
                    found[fold, place], turn[fold, place] = values[count - 1 :: -1], vectors[:, ::-1]
            # LAPACK has replaced B by its Cholesky factor.
            if exact:
                weak = is_weak(diagonal(b), variances, self.precision)
                found[fold, weak], turn[fold, weak] = np.nan, 0.0
        turn = like(turn, self.matrices)
        return found, turn if basis is None else basis[:, None] @ turn

    def halved(self, places: Sequence[int], bounds: Float, limit: float = 0.0) -> tuple[Halves | None, Float | None]:
        """Return the functions of `halves_of` for ``B = L Lᵀ``, or for ``σ E - A = L Lᵀ`` of a difference, and σ.

        σ must be just above all eigenvalues. From the `bounds`, approximate leading eigenvalues, it is increased until
        the factor L exists. The functions are None if B is singular, or if bounds are NaN.
        """
        if not self.difference:
            return halves_of(self.summed(self.second[:, places], self.ridges[:, places]), limit), None
        halves, shift = None, None
        step = 0.1 * (bounds[..., 0] - bounds[..., -1]) + 1e-3 * np.abs(bounds).max(axis=-1)
        step = np.where(step > 0.0, step, 1.0)
        while halves is None and np.all(np.isfinite(bounds)):
            shift = bounds[..., 0] + step
            halves = halves_of(self.summed(-self.first[:, places], shift))
            step = 4.0 * step
        return halves, shift

    def images(self, matrices: Float, blocks: Float) -> Float:
        """Return the product of the matrix of each fold and the blocks of vectors at all values of the parameter.

        All values are multiplied together, because reading the matrix takes most of the time.
        """
        xp, (n_folds, size, _) = namespace(blocks), matrices.shape
        wide = xp.moveaxis(xp.reshape(blocks, (n_folds, -1, *blocks.shape[1:])), 1, 2)
        images = xp.reshape(matrices @ xp.reshape(wide, (n_folds, size, -1)), wide.shape)
        return xp.reshape(xp.moveaxis(images, 2, 1), blocks.shape)

    def with_changes(self, halves: Halves, vectors: Float, count: int, orders: int) -> Float:
        """Return vectors, and the changes of the first `count` of them along the path, up to an order.

        The vectors are solutions at some values of the parameter. The factorised matrix K is a linear function of a
        term of the parameter, with the derivative K'. The derivatives of the solutions are then, up to terms with other
        solutions, in the span of ``K⁻¹ K' u``.
        """
        xp, shape = namespace(vectors), vectors.shape
        terms, ridges = (self.first, 0.0 * self.ridges) if self.difference else (self.second, self.ridges)
        change = self.summed(terms[:, -1:] - terms[:, :1], ridges[:, -1:] - ridges[:, :1])
        parts, (forward, backward) = [vectors], halves
        part = xp.reshape(vectors[..., :count], (-1, shape[2], count))
        for _ in range(orders):
            part = backward(forward(self.images(change, part)))
            parts.append(xp.reshape(part, (*shape[:3], count)))
        return concat(parts, axis=-1)

    def iterated(
        self, places: Sequence[int], count: int, span: Float | None = None, tolerance: float = 0.0
    ) -> tuple[Float, Float] | None:
        """Return eigenvalues and vectors of the scaled columns at some values of the parameter, by iterations.

        Return None if B is singular, or if the iterations stay far from the `tolerance`. A few more vectors than
        `count` are returned; without a tolerance, also their changes along the path. Iterations start from the best
        vectors in `span`. If `span` is None, they start from random vectors. For a ratio, the iterations use
        ``L⁻¹ A L⁻ᵀ`` with ``B = L Lᵀ``. For a difference, they use ``L⁻¹ E L⁻ᵀ`` with ``σ E - A = L Lᵀ``.
        """
        xp, target, n_values = namespace(self.matrices), self.matrices[:, 0], len(places)
        n_folds, size = target.shape[:2]
        block = orthonormal(target @ random((size, count + MORE), 0, target)) if span is None else span
        bounds, blocks = np.zeros(1), xp.stack([block] * n_values, axis=1)
        if self.difference:
            bounds, blocks = self.inside(block, places, count + MORE)
        halves, shift = self.halved(places, bounds, self.precision if tolerance else 0.0)
        if halves is None:
            return None
        forward, backward = halves
        square = cast(np.repeat(self.scale**2, n_values, axis=0)[..., None], target)

        def turned(part: Float) -> Float:
            return forward(self.images(target, part) if shift is None else square * part)

        start = turned(xp.reshape(blocks, (n_folds * n_values, size, -1)))
        steps = FOLD_STEPS if tolerance else DIFFERENCE_STEPS if self.difference else PATH_STEPS
        values, found, residual = krylov(lambda part: turned(backward(part)), start, count, steps, tolerance)
        if tolerance and not residual <= MOST_RESIDUAL:
            return None
        values = np.reshape(values, (n_folds, n_values, -1))
        vectors = xp.reshape(backward(found), (n_folds, n_values, size, -1))
        if shift is None:
            values = values * self.first[:, places, :1]
        else:
            # Scale the vectors to unit length in B, as for ratios.
            values, vectors = shift[..., None] - 1.0 / values, vectors / cast(np.sqrt(values)[..., None, :], vectors)
        if not tolerance:
            vectors = self.with_changes(halves, vectors[..., : count + MORE], count + ONE_MORE, ORDERS)
        return values, vectors


def path_vectors(folds: Sequence[Posed], n_components: int, *, single: bool = True) -> Float | None:
    """Return approximate leading vectors of each fold at all values of a parameter; None if `_Stack` cannot be used.

    The result has the shape (n_folds, n, n_values * d). The vectors of all values are side by side, from the least to
    the most regularised. A few values (representatives) are solved first. The other values are solved in the joint span
    of the vectors found. Vectors are zero if B is singular. Large NumPy matrices are in single precision, unless B is
    singular in single precision.
    """
    n_folds, n_values, mean = len(folds), len(folds[0].ridges), folds[0].terms[0].mean
    size = mean.shape[0]
    single = single and size >= LEAST_SINGLE and not is_foreign(mean)
    stack = _Stack.of(folds, single)
    if stack is None:
        return None
    places = np.round((n_values - 1) * np.array(REPRESENTATIVES)).astype(int)
    # Without a ridge at the first value, B can be singular there. The second value then replaces the first value as a
    # representative.
    places = np.unique(np.maximum(places, int(not folds[0].ridges[0].any()))).tolist()
    known: dict[int, Float] = {}
    # If there is no basis, `inside` uses all directions.
    basis = None
    if size > WHOLE_SIZE and len(places) * (n_components + MORE) < size:
        if size <= SMALL_SIZE:
            values, vectors = stack.inside(None, places, n_components + ONE_MORE)
            halves, _ = stack.halved(places, values)
            if np.isfinite(values).all() and halves is not None:
                vectors = stack.with_changes(halves, vectors, n_components, SMALL_ORDERS)
                known = {place: vectors[:, number] for number, place in enumerate(places)}
        else:
            # For a difference, the vectors of one value are the start for the next value.
            for group in [[place] for place in reversed(places)] if stack.difference else [places]:
                span = orthonormal(known[min(known)]) if known else None
                solved = stack.iterated(group, n_components, span)
                if solved is not None:
                    known |= {place: solved[1][:, number] for number, place in enumerate(group)}
        if not known:
            nothing = zeros((n_folds, size, n_values * n_components), stack.units)
            return path_vectors(folds, n_components, single=False) if single else nothing
        basis = concat(list(known.values()), axis=-1)
        basis = orthonormal(basis) if basis.shape[-1] < size else None
    others = [place for place in range(n_values) if place not in known]
    _, between = stack.inside(basis, others, n_components, exact=basis is None)
    known |= {place: between[:, number] for number, place in enumerate(others)}
    if basis is not None and not folds[0].ridges[0] and _is_singular(stack, folds, single):
        # The span of the representatives' vectors lacks the directions in which B is zero. So the vectors at the first
        # value, where B is singular, would be wrong.
        known[0] = 0.0 * known[0]
    vectors = concat([known[place][..., :n_components] for place in range(n_values)], axis=-1)
    return vectors * stack.units[..., None]


def _is_singular(stack: _Stack, folds: Sequence[Posed], single: bool) -> bool:
    """Return whether the matrix B of any fold is singular at the first (least regularised) value of the parameter.

    If B is singular in single precision, B is computed again and checked in double precision.
    """
    precision = max(float(np.finfo(np.float32 if single else np.float64).eps), stack.precision)
    if halves_of(stack.summed(stack.second[:, :1], stack.ridges[:, :1]), precision) is not None:
        return False
    whole = _Stack.of(folds) if single else None
    return whole is None or _is_singular(whole, folds, False)


def fold_vectors(folds: Sequence[Posed], n_components: int, single: bool = False) -> list[tuple[Float, Float] | None]:
    """Return the eigenvalues and vectors of each fold; None if B is singular or `_Stack` cannot be used.

    A few products are enough for components whose eigenvalues are well separated. Components of noise have similar
    eigenvalues, and only many iterations would separate them. This is not needed, because on held-out rows such
    components are equivalent.
    """
    mean = folds[0].terms[0].mean
    single |= folds[0].terms[0].precision > EPS
    single &= mean.shape[0] >= LEAST_SINGLE and not is_foreign(mean)
    stack, size = _Stack.of(folds, single), mean.shape[0]
    if stack is None:
        return [None] * len(folds)
    if size <= SMALL_SIZE or size < (LEAST_STEPS + 1) * (n_components + MORE):
        found: Any = stack.inside(None, slice(1), n_components, exact=True)
    else:
        found = stack.iterated([0], n_components, tolerance=SINGLE_EXACT if single else FOLD_EXACT)
        if found is None:
            return [None] * len(folds)
    values, vectors = found[0][:, 0, :n_components], found[1][:, 0, :, :n_components] * stack.units[..., None]
    usable: Any = np.isfinite(values).all(axis=1)
    return [(values[i], vectors[i]) if known else None for i, known in enumerate(usable)]
