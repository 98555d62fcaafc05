"""Many similar pencils: a few are solved by block iterations, all others in the span of what these find."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from standout._arrays import Float, product
from standout._xp import add_to_diagonal, cholesky, column_norms, concat, like, namespace, solve_triangular, to_host
from standout.moments import ScatterMoments
from standout.pencil._record import Form, Pencil, Solution, finish

# Vectors in a block beyond those that are wanted, products per round, and representatives of a path.
MORE, DEPTH, REPRESENTATIVES = 4, 3, 4
# Rounds of iterations at a representative, and the residual that ends them: enough to choose a value by.
ROUNDS, ROUGH = 3, 0.02
# The same for a solution that is reported.
MOST_ROUNDS, EXACT = 8, 1e-11
# Smaller problems are solved by LAPACK as fast.
LEAST_REFINED = 96


def path_vectors(
    pencils: Sequence[Pencil], n_components: int, start: Float | None = None, seed: int = 0
) -> list[Float | None]:
    """Return approximate leading vectors of each pencil; None where B is singular.

    The pencils are in the order of a parameter, from the least to the most regularised. Iterations at each
    representative start from the vectors of the one before, from the most regularised on.
    """
    size = pencils[0].n_features
    width = min(n_components + MORE, size)
    matrices = _Family(pencils)
    places = np.unique(np.linspace(len(pencils) - 1, 0, min(REPRESENTATIVES, len(pencils))).round().astype(int))[::-1]
    block = _start_block(start, matrices.reference, size, width, seed)
    found: list[Float] = []
    for place in places.tolist():
        ended = _iterated(*matrices.of(place), block, n_components, ROUNDS, ROUGH)
        if ended is None:
            continue
        block = ended[1]
        found.append(block)
    if not found:
        return [None] * len(pencils)
    basis = _orthonormal(concat(found, axis=1))
    return matrices.inside(basis, n_components)


def refined(pencil: Pencil, n_components: int, start: Float) -> Solution | None:
    """Solve a pencil by block iterations from vectors near the solution; None if they do not converge fast."""
    size = pencil.n_features
    width = min(n_components + MORE, size)
    terms = (*pencil.a.terms, *pencil.b.terms)
    if size < max(LEAST_REFINED, (DEPTH + 1) * width) or not all(isinstance(m, ScatterMoments) for _, m in terms):
        return None
    a, b = pencil.a.matrix(), None if pencil.b.is_identity else pencil.b.matrix()
    ended = _iterated(a, b, _start_block(start, a, size, width, 0), n_components, MOST_ROUNDS, EXACT)
    if ended is None or ended[2] > EXACT:
        return None
    values, vectors = ended[0][:n_components], ended[1][:, :n_components]
    return finish(pencil, values, vectors, "dense")


class _Family:
    """Pencils over the same datasets, by the matrices of these and their coefficients."""

    def __init__(self, pencils: Sequence[Pencil]) -> None:
        self._pencils = pencils
        self._matrices: dict[int, Float] = {}
        for pencil in pencils:
            for form in (pencil.a, pencil.b):
                for _, moments in form.terms:
                    if id(moments) not in self._matrices:
                        self._matrices[id(moments)] = moments.covariance()
        self.reference = next(iter(self._matrices.values()))

    def of(self, place: int) -> tuple[Float, Float | None]:
        """Return A and B of one pencil; None for a B that is the identity."""
        pencil = self._pencils[place]
        b = None if pencil.b.is_identity else self._summed(pencil.b, self._matrices)
        return self._summed(pencil.a, self._matrices), b

    def _summed(self, form: Form, matrices: dict[int, Float], identity: Float | None = None) -> Float:
        total: Float | None = None
        for coefficient, moments in form.terms:
            part = coefficient * matrices[id(moments)]
            total = part if total is None else total + part
        if total is None:
            reference = self.reference if identity is None else identity
            total = 0.0 * reference
        if form.ridge:
            total = total + form.ridge * identity if identity is not None else add_to_diagonal(total, form.ridge)
        return total

    def inside(self, basis: Float, n_components: int) -> list[Float | None]:
        """Solve every pencil in the span of an orthonormal basis."""
        small = {key: product(basis.T, product(matrix, basis)) for key, matrix in self._matrices.items()}
        identity = like(np.eye(basis.shape[1]), basis)
        found: list[Float | None] = []
        for pencil in self._pencils:
            a = to_host(self._summed(pencil.a, small, identity))
            b = to_host(self._summed(pencil.b, small, identity))
            turned = _small(a, b, n_components)
            found.append(None if turned is None else product(basis, like(turned[1], basis)))
        return found


def _small(a: Float, b: Float, count: int) -> tuple[Float, Float] | None:
    """Return the leading values and vectors of a small pencil on the host; None if B is singular."""
    factor = cholesky(np.array(0.5 * (b + b.T)))
    if factor is None:
        return None
    half = solve_triangular(factor, 0.5 * (a + a.T))
    white = solve_triangular(factor, half.T)
    values, vectors = np.linalg.eigh(0.5 * (white + white.T))
    lead = vectors[:, : -count - 1 : -1]
    return values[: -count - 1 : -1], solve_triangular(factor, lead, transposed=True)


def _start_block(start: Float | None, reference: Float, size: int, width: int, seed: int) -> Float:
    """Return a block of vectors: those given, and random ones."""
    n_given = 0 if start is None else min(start.shape[1], width)
    more = like(np.random.default_rng(seed).standard_normal((size, width - n_given)), reference)
    if start is None:
        return _orthonormal(product(reference, more))
    return _orthonormal(start[:, :n_given] if n_given == width else concat([start[:, :n_given], more], axis=1))


def _orthonormal(block: Float) -> Float:
    lengths = column_norms(block)
    xp = namespace(block)
    return xp.linalg.qr(block / xp.where(lengths > 0.0, lengths, xp.ones_like(lengths)))[0]


def _iterated(
    a: Float, b: Float | None, block: Float, n_wanted: int, rounds: int, tolerance: float
) -> tuple[Float, Float, float] | None:
    """Improve a block by rounds of block Krylov steps of ``B⁻¹ A``, or of ``(σ I - A)⁻¹`` where B is the identity.

    Returns the values and vectors of the block in descending order, and the largest residual of the wanted ones; None
    if B is singular.
    """
    size, width = block.shape
    factor = None if b is None else cholesky(1.0 * b)
    if b is not None and factor is None:
        return None
    residual = float("inf")
    for _ in range(rounds):
        if b is None and residual > 0.1:
            factor = _shifted_factor(a, block)
        assert factor is not None
        blocks = [block]
        while len(blocks) <= DEPTH and (len(blocks) + 1) * width <= size:
            image = blocks[-1] if b is None else product(a, blocks[-1])
            image = solve_triangular(factor, solve_triangular(factor, image), transposed=True)
            blocks.append(_orthonormal(image))
        ritz = _ritz(a, b, _orthonormal(concat(blocks, axis=1)), width, n_wanted)
        if ritz is None:
            return None
        values, block, residual = ritz
        if residual <= tolerance:
            break
    return values, block, residual


def _ritz(a: Float, b: Float | None, basis: Float, width: int, n_wanted: int) -> tuple[Float, Float, float] | None:
    """Solve the pencil in the span of a basis; return the residual of the wanted vectors too."""
    a_basis = product(a, basis)
    b_basis = basis if b is None else product(b, basis)
    turned = _small(to_host(product(basis.T, a_basis)), to_host(product(basis.T, b_basis)), width)
    if turned is None:
        return None
    values, turn = like(turned[0], basis), like(turned[1], basis)
    images = product(a_basis, turn)
    missed = to_host(column_norms(images - product(b_basis, turn) * values))[:n_wanted]
    sizes = to_host(column_norms(images))[:n_wanted]
    return values, product(basis, turn), float(np.max(missed / np.where(sizes > 0.0, sizes, 1.0)))


def _shifted_factor(a: Float, block: Float) -> Float:
    """Return the factor of ``σ I - A`` with σ just above all eigenvalues of A, found by trying."""
    inside = to_host(product(block.T, product(a, block)))
    values = np.linalg.eigvalsh(0.5 * (inside + inside.T))
    top, step = float(values[-1]), 0.1 * float(values[-1] - values[0]) + 1e-3 * float(np.abs(values).max())
    step = step or 1.0
    while True:
        factor = cholesky(add_to_diagonal(-1.0 * a, top + step))
        if factor is not None:
            return factor
        step *= 4.0
