"""Many similar pencils: a few are solved by block iterations, all others in the span of what these find.

Everything here works on stacks: the pencils of several folds, of the same size, are solved together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from standout._arrays import Float
from standout._xp import cholesky, concat, eye, is_foreign, like, namespace, solve_triangular, take, to_host
from standout.moments import Moments, ScatterMoments

# Products per round, plain products before a single round, and representatives of a path.
DEPTH, POWERS, REPRESENTATIVES = 3, 2, 4
# Vectors in a block beyond those that are wanted, rounds of iterations at a representative, and the residual that ends
# them: enough to choose a value by.
MORE, ROUNDS, ROUGH = 2, 2, 0.03
# The same for a solution that is reported.
MORE_EXACT, MOST_ROUNDS, EXACT = 2, 8, 1e-11
# Columns are brought to one size if their variances differ by more than this.
UNEVEN = 1e4
# A round that leaves more than this share of the residual converges too slowly to go on.
SLOW = 0.3
# Paths of this size and more are found in single precision, which is enough to choose a value by.
LEAST_SINGLE = 256
# Up to this size a path is solved in all directions.
WHOLE_SIZE = 20
# Up to this size a stack is inverted by one call; larger matrices are factorised one by one.
STACKED_SIZE = 100


# Coefficients of A and B over the moments of a fold at each value of a path, and the ridge of B at each value.
Posed = tuple[Sequence[Moments], Float, Float, Float]


@dataclass(frozen=True, eq=False)
class _Stack:
    """Pencils ``Σ aⱼ Mⱼ u = λ (Σ bⱼ Mⱼ + r E) u`` over stacks of matrices, with columns brought to one size.

    Attributes
    ----------
    matrices : array of shape (n_folds, n_terms, n, n)
    squares : array of shape (n_folds, n)
        The diagonal of E: the identity after columns were scaled.
    first, second : ndarray of shape (n_folds, n_values, n_terms)
        The coefficients a and b.
    ridges : ndarray of shape (n_folds, n_values)
    difference : bool
        Whether B is the identity at every value.
    """

    matrices: Float
    squares: Float
    first: Float
    second: Float
    ridges: Float
    difference: bool

    @classmethod
    def of(cls, folds: Sequence[Posed], single: bool = False) -> _Stack:
        """Collect the matrices and coefficients of folds."""
        first, second, ridges = (np.array([posed[place] for posed in folds]) for place in (1, 2, 3))
        xp = namespace(folds[0][0][0].mean)
        variances = xp.stack([sum(part.variances for part in posed[0]) for posed in folds])
        safe = xp.where(variances > 0.0, variances, xp.ones_like(variances))
        scale, uneven = xp.ones_like(safe), float(xp.max(safe)) > UNEVEN * float(xp.min(safe))
        matrices = [part.covariance() for posed in folds for part in posed[0]]
        if uneven:
            # Powers of two change no digit.
            scale = 2.0 ** -xp.round(0.5 * xp.log2(safe))
            owner = np.repeat(np.arange(len(folds)), len(folds[0][0])).tolist()
            matrices = [part * (scale[i, :, None] * scale[i, :]) for i, part in zip(owner, matrices, strict=True)]
        whole = np.stack(matrices, dtype=np.float32, casting="same_kind") if single else xp.stack(matrices)
        whole = xp.reshape(whole, (len(folds), -1, *whole.shape[1:]))
        difference = not second.any() and bool(np.all(ridges == 1.0))
        return cls(whole, scale**2, first, second, ridges, difference)

    def at(self, values: list[int]) -> tuple[Float, Float]:
        """Return A and B at some values, stacks of shape (n_folds * n_values, n, n)."""
        xp, size = namespace(self.matrices), self.matrices.shape[-1]
        a, b = (
            xp.reshape(_mixed(part[:, values], self.matrices), (-1, size, size)) for part in (self.first, self.second)
        )
        ridges = xp.reshape(_as(self.ridges[:, values, None], self.squares) * self.squares[:, None, :], (-1, size))
        if is_foreign(b):
            return a, b + ridges[:, :, None] * eye(size, b)
        # In place: matrices may be large.
        b.reshape(len(b), -1)[:, :: size + 1] += ridges
        return a, b

    def inside(self, basis: Float, count: int) -> tuple[Float, Float]:
        """Solve all pencils in the span of orthonormal bases, in the columns that were given; NaN if B is singular."""
        small = to_host(_transposed(basis)[:, None] @ (self.matrices @ basis[:, None]))
        basis = _as(basis, self.squares)
        ridge = to_host(_transposed(basis) @ (self.squares[:, :, None] * basis))
        b = _mixed(self.second, small) + self.ridges[:, :, None, None] * ridge[:, None]
        values, turn = _small(_mixed(self.first, small), b, count)
        basis = basis * self.squares[:, :, None] ** 0.5
        return values, basis[:, None] @ like(turn, basis)


def path_vectors(
    folds: Sequence[Posed], n_components: int, seed: int = 0, *, single: bool = True
) -> list[list[Float | None]]:
    """Return approximate leading vectors of each fold at each value; None where B is singular.

    Values are in the order of a parameter, from the least to the most regularised. Small representatives are solved
    together. Otherwise iterations at each start from the vectors of the one before, from the most regularised on. Large
    NumPy matrices are in single precision, unless one of them is singular in it.
    """
    n_folds, n_values, mean = len(folds), len(folds[0][3]), folds[0][0][0].mean
    size = mean.shape[0]
    single = single and size >= LEAST_SINGLE and not is_foreign(mean)
    stack = _Stack.of(folds, single)
    together = size <= STACKED_SIZE
    width = min(n_components + (1 if together else MORE), size)
    if size <= WHOLE_SIZE or (REPRESENTATIVES + 1) * width >= size:
        # A small problem is solved in all of its directions.
        basis = like(np.broadcast_to(np.eye(size), (n_folds, size, size)), stack.matrices)
    else:
        places = np.unique(np.linspace(n_values - 1, 0, min(REPRESENTATIVES, n_values)).round().astype(int))[::-1]
        groups = [places.tolist()] if together else places[:, None].tolist()
        rounds = 1 if together and not stack.difference else ROUNDS
        blocks: list[Float] = []
        start = stack.matrices[:, 0] @ _random(size, width, seed, stack.matrices)
        while groups:
            group = groups.pop(0)
            block = take(start, np.repeat(np.arange(n_folds), len(group)))
            ended = _iterated(*stack.at(group), block, n_components, rounds, ROUGH, stack.difference)
            if ended is not None:
                found = namespace(start).reshape(ended[1], (n_folds, len(group), size, width))
                blocks += [found[:, place] for place in range(len(group))]
                start = blocks[-1]
            elif single:
                return path_vectors(folds, n_components, seed, single=False)
            elif len(group) > 1:
                groups = [[place] for place in group]
        if not blocks:
            return [[None] * n_values for _ in folds]
        basis = _orthonormal(concat(blocks, axis=-1))
    values, vectors = stack.inside(basis, n_components)
    usable: Any = np.isfinite(values).all(axis=-1).tolist()
    return [[vectors[i, j] if known else None for j, known in enumerate(own)] for i, own in enumerate(usable)]


def refined(posed: Posed, n_components: int, start: Float) -> tuple[Float, Float] | None:
    """Solve one pencil by block iterations from vectors near the solution; None if they do not converge fast."""
    size = start.shape[0]
    width = min(n_components + MORE_EXACT, size)
    if size < (DEPTH + 1) * width or not all(isinstance(part, ScatterMoments) for part in posed[0]):
        return None
    stack = _Stack.of([posed])
    scale = stack.squares[0][:, None] ** 0.5
    block = (start / scale)[None]
    if start.shape[1] < width:
        block = concat([block, _random(size, width - start.shape[1], 0, start)[None]], axis=-1)
    ended = _iterated(*stack.at([0]), block, n_components, MOST_ROUNDS, EXACT, stack.difference)
    if ended is None or not ended[2] <= EXACT:
        return None
    vectors = scale * ended[1][0][:, :n_components]
    return like(ended[0][0][:n_components], vectors), vectors


def _mixed(coefficients: Float, matrices: Float) -> Float:
    """Return the sums of the matrices of each fold, with coefficients of shape (n_folds, n_values, n_terms)."""
    xp = namespace(matrices)
    n_folds, n_terms, *size = matrices.shape
    flat = _as(coefficients, matrices) @ xp.reshape(matrices, (n_folds, n_terms, -1))
    mixed: Float = xp.reshape(flat, (n_folds, -1, *size))
    return mixed


def _iterated(
    a: Float, b: Float, block: Float, n_wanted: int, rounds: int, tolerance: float, difference: bool
) -> tuple[Float, Float, float] | None:
    """Improve blocks by rounds of block Krylov steps of ``B⁻¹ A``, or of ``(σ B - A)⁻¹ B`` for differences.

    Returns values (on the host) and vectors in descending order, and the largest residual of the wanted ones; None if
    a B is singular.
    """
    size, width = block.shape[-2:]
    inverse = None if difference else _inverse(b)
    if not difference and inverse is None:
        return None
    residual, values = float("inf"), np.zeros(0)
    if rounds == 1 and inverse is not None:
        # A few plain products first: they cost less than another round.
        for _ in range(POWERS):
            block = inverse(a @ _orthonormal(block))
    for _ in range(rounds):
        before = residual
        if difference and residual > 0.1:
            inverse = _shifted(a, b, block)
        assert inverse is not None
        blocks = [_orthonormal(block)]
        while len(blocks) <= DEPTH and (len(blocks) + 1) * width <= size:
            blocks.append(inverse((b if difference else a) @ blocks[-1]))
        basis = _orthonormal(concat(blocks, axis=-1))
        a_basis, b_basis, turned = a @ basis, b @ basis, _transposed(basis)
        values, turn = _small(to_host(turned @ a_basis), to_host(turned @ b_basis), width)
        if not np.all(np.isfinite(values)):
            return None
        turn_there = _as(turn, basis)
        block, images = basis @ turn_there, a_basis @ turn_there[..., :n_wanted]
        missed = images - (b_basis @ turn_there[..., :n_wanted]) * _as(values[:, None, :n_wanted], basis)
        sizes = _lengths(images)
        residual = float(np.max(_lengths(missed) / np.where(sizes > 0.0, sizes, 1.0)))
        if residual <= tolerance or SLOW * before < residual < before < float("inf"):
            break
    return values, block, residual


def _inverse(matrices: Float) -> Callable[[Float], Float] | None:
    """Return a function that multiplies blocks with inverses; None if a matrix is not positive definite."""
    if not is_foreign(matrices) and matrices.shape[-1] <= STACKED_SIZE:
        try:
            np.linalg.cholesky(matrices)
            whole = np.linalg.inv(matrices)
        except np.linalg.LinAlgError:
            return None
        return lambda block: whole @ block
    factors = [cholesky(1.0 * matrices[number]) for number in range(matrices.shape[0])]
    if any(factor is None for factor in factors):
        return None

    def inverse(block: Float) -> Float:
        pairs = [(factor, block[number]) for number, factor in enumerate(factors) if factor is not None]
        halves = [(factor, solve_triangular(factor, part)) for factor, part in pairs]
        found: Float = namespace(block).stack([solve_triangular(*half, transposed=True) for half in halves])
        return found

    return inverse


def _shifted(a: Float, b: Float, block: Float) -> Callable[[Float], Float]:
    """Return the inverse of ``σ B - A`` with σ just above all eigenvalues, found by trying."""
    basis = _orthonormal(block)
    turned = _transposed(basis)
    values, _ = _small(to_host(turned @ (a @ basis)), to_host(turned @ (b @ basis)), block.shape[-1])
    top = values[:, 0]
    step = 0.1 * (values[:, 0] - values[:, -1]) + 1e-3 * np.abs(values).max(axis=-1)
    step = np.where(step > 0.0, step, 1.0)
    while True:
        inverse = _inverse(_as((top + step)[:, None, None], a) * b - a)
        if inverse is not None:
            return inverse
        step = 4.0 * step


def _small(a: Float, b: Float, count: int) -> tuple[Float, Float]:
    """Return the leading values and vectors of stacks of small pencils on the host; NaN where B is singular."""
    a, b = a.astype(np.float64), 0.5 * (b + _transposed(b)).astype(np.float64)
    try:
        lower = np.linalg.inv(np.linalg.cholesky(b))
        white = lower @ a @ _transposed(lower)
        values, vectors = np.linalg.eigh(0.5 * (white + _transposed(white)))
    except np.linalg.LinAlgError:
        if b.ndim == 2:
            count = min(count, len(b))
            return np.full(count, np.nan), np.full((len(b), count), np.nan)
        found = [_small(one, other, count) for one, other in zip(a, b, strict=True)]
        return np.array([part[0] for part in found]), np.array([part[1] for part in found])
    lead = vectors[..., ::-1][..., :count]
    return values[..., ::-1][..., :count], _transposed(lower) @ lead


def _random(size: int, width: int, seed: int, reference: Float) -> Float:
    return _as(np.random.default_rng(seed).standard_normal((size, width)), reference)


def _as(numbers: Float, reference: Float) -> Float:
    """Return numbers in the library and the precision of a reference."""
    return like(numbers, reference) if is_foreign(reference) else np.asarray(numbers, dtype=reference.dtype)


def _orthonormal(block: Float) -> Float:
    basis: Float = namespace(block).linalg.qr(block)[0]
    return basis


def _lengths(block: Float) -> Float:
    lengths: Float = to_host(namespace(block).sum(block**2, axis=-2)) ** 0.5
    return lengths


def _transposed(matrices: Float) -> Float:
    return matrices.mT if is_foreign(matrices) else np.swapaxes(matrices, -1, -2)
