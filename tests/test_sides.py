"""Both ends of a pencil: what the background has and the target lacks, and the most extreme of both."""

import numpy as np
import pytest
from scipy import linalg

from standout import (
    ContrastivePCA,
    DiscriminativePCA,
    KernelContrastivePCA,
    KernelDiscriminativePCA,
    contrast,
)
from standout.estimators import fitted_test
from standout.moments import gather
from standout.pencil import solve, solve_path
from test_pencil import SOLVERS, covariance, mixed, pencil_of, reference

SINGULAR_TARGET = "ignore:the target covariance is singular"


def lacking(rng, n_target=250, n_background=300, n_features=12):
    """A target that varies more along column 0 and less along column 5, and a background with more along column 7."""
    X, Y = rng.normal(size=(n_target, n_features)), rng.normal(size=(n_background, n_features))
    X[:, 0] *= 3.0
    X[:, 5] *= 0.3
    Y[:, 7] *= 2.0
    return X, Y


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("shrinkage", [0.0, 0.1, 0.9])
def test_the_least_ratios_are_those_of_scipy(solver, shrinkage, rng):
    target, backgrounds = mixed(rng, 300, 20, boost=(9, 5, 0.2)), [mixed(rng, 200, 20), mixed(rng, 150, 20)]
    _, b, values, vectors = reference(target, backgrounds, shrinkage)
    solution = solve(pencil_of(target, backgrounds, solver, shrinkage), 3, solver=solver, side="background")
    np.testing.assert_allclose(solution.values, values[::-1][:3], rtol=1e-10)
    np.testing.assert_allclose(solution.vectors.T @ b @ solution.vectors, np.eye(3), atol=1e-10)
    overlap = np.abs(np.einsum("ij,ij->j", solution.vectors, b @ vectors[:, ::-1][:, :3]))
    np.testing.assert_allclose(overlap, 1.0, rtol=1e-8)
    np.testing.assert_allclose(solution.patterns, b @ solution.vectors, rtol=1e-8, atol=1e-8)
    assert solution.residuals.max() < 1e-6
    assert solution.accurate


@pytest.mark.parametrize("n_components", [1, 3, 12, 19, 20])
def test_both_sides_are_the_most_extreme_of_all_ratios(n_components, rng):
    target, background = mixed(rng, 300, 20, boost=(9, 5, 0.2)), mixed(rng, 200, 20)
    values = reference(target, [background], 0.1)[2]
    solution = solve(pencil_of(target, [background], "dense", 0.1), n_components, side="both")
    expected = values[np.argsort(-np.abs(np.log(values)))][:n_components]
    np.testing.assert_allclose(solution.values, expected, rtol=1e-9)


@pytest.mark.parametrize("n_features", [30, 1100])
def test_lanczos_finds_the_least_ratios_of_many_columns(n_features, rng):
    target, background = rng.normal(size=(1500, n_features)), rng.normal(size=(1500, n_features))
    target[:, 3] *= 0.2
    problem = pencil_of(target, [background], "lanczos", 0.1)
    solution = solve(problem, 2, solver="lanczos", side="background")
    a, b = problem.a.matrix(), problem.b.matrix()
    np.testing.assert_allclose(solution.values, linalg.eigh(a, b, subset_by_index=[0, 1])[0], rtol=1e-9)


def test_lobpcg_finds_the_least_ratios_without_a_matrix(rng):
    target, background = rng.normal(size=(900, 120)), rng.normal(size=(900, 120))
    target[:, 3] *= 0.2
    solution = solve(pencil_of(target, [background], "lobpcg", 0.1), 1, solver="lobpcg", side="background")
    assert solution.solver == "lobpcg"
    np.testing.assert_allclose(solution.values, reference(target, [background], 0.1)[2][-1:], rtol=1e-8)


@pytest.mark.parametrize("side", ["target", "background", "both"])
def test_values_are_those_of_gcpca_by_the_formula(side, rng):
    # gcPCA compares A - B with A + B, so that its values are (λ - 1) / (λ + 1).
    X, Y = lacking(rng)
    dpca = DiscriminativePCA(12, shrinkage=None, side=side).fit(X, background=Y)
    a, b = covariance(X), covariance(Y)
    values = linalg.eigh(a - b, a + b, eigvals_only=True)
    found = (dpca.eigenvalues_ - 1) / (dpca.eigenvalues_ + 1)
    np.testing.assert_allclose(np.sort(found), values, atol=1e-12)
    if side == "both":
        assert np.all(np.diff(np.abs(found)) <= 0)


@pytest.mark.parametrize("solver", ["auto", "dense", "root", "reduced", "lanczos", "lobpcg"])
@pytest.mark.filterwarnings(SINGULAR_TARGET)
def test_directions_that_only_the_background_has_come_first_by_its_variance(solver, rng):
    # Wide data: the target's rows span 24 of the 53 directions of all rows, and directions of no row are no finding.
    X, Y = rng.normal(size=(25, 90)), rng.normal(size=(30, 90))
    Y[:, 3] *= 6
    dpca = DiscriminativePCA(29, side="background", shrinkage=0.5, solver=solver, held_out=None)
    dpca.fit(X, background=Y)
    assert np.all(dpca.eigenvalues_ == 0.0)
    assert np.abs(dpca.target_variance_).max() < 1e-14
    # The least ratios with a vanishing ridge on the target are the reference.
    a, b = covariance(X), 0.5 * covariance(Y) + 0.5 * np.trace(covariance(Y)) / 90 * np.eye(90)
    span = linalg.orth(np.vstack([X - X.mean(axis=0), Y - Y.mean(axis=0)]).T)
    inside = span.T @ (a + 1e-9 * np.eye(90)) @ span, span.T @ b @ span
    limit = span @ linalg.eigh(inside[1], inside[0])[1][:, ::-1][:, :3]
    limit /= np.sqrt(np.einsum("ij,ij->j", limit, b @ limit))
    overlap = np.abs(np.einsum("ij,ij->j", dpca.components_[:3].T, b @ limit))
    np.testing.assert_allclose(overlap, 1.0, rtol=1e-5)
    with pytest.raises(ValueError, match="n_components=54 is larger than 53"):
        DiscriminativePCA(54, side="background", solver=solver, held_out=None).fit(X, background=Y)


@pytest.mark.parametrize("shrinkage", [None, 0.3])
@pytest.mark.filterwarnings("ignore:the background covariance is singular")
def test_columns_that_no_dataset_has_are_no_finding(shrinkage, rng):
    X, Y = lacking(rng)
    empty = np.hstack([X, np.full((len(X), 2), 7.0)]), np.hstack([Y, np.full((len(Y), 2), 7.0)])
    given = {"side": "background", "held_out": None}
    plain = DiscriminativePCA(3, shrinkage=shrinkage, **given).fit(X, background=Y)
    factor = 1.0 if shrinkage is None else 14 / 12
    # The ridge is a share of the mean variance, which two empty columns lower.
    padded = DiscriminativePCA(3, shrinkage=shrinkage, **given).fit(empty[0], background=empty[1])
    assert np.all(padded.components_[:, 12:] == 0.0)
    assert padded.eigenvalues_[0] == pytest.approx(plain.eigenvalues_[0], rel=1e-9 if factor == 1.0 else 0.2)


@pytest.mark.parametrize("seed", range(4))
def test_more_components_than_the_background_has_are_refused(seed):
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(60, 6)), rng.normal(size=(4, 6))
    with pytest.raises(ValueError, match="more than 3, the number of directions in which the background varies"):
        DiscriminativePCA(5, shrinkage=None, side="background").fit(X, background=Y)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 3.0])
@pytest.mark.parametrize("shape", [(250, 300, 12), (20, 25, 60)])
def test_contrastive_pca_has_the_least_differences(alpha, shape, rng):
    X, Y = lacking(rng, *shape)
    difference = covariance(X) - alpha * covariance(Y)
    cpca = ContrastivePCA(2, alpha=alpha, side="background", held_out=None).fit(X, background=Y)
    # Without any background only the target has directions.
    span = linalg.orth(np.vstack([X - X.mean(axis=0), *([Y - Y.mean(axis=0)] if alpha else [])]).T)
    values = linalg.eigvalsh(span.T @ difference @ span)
    np.testing.assert_allclose(cpca.eigenvalues_, values[:2], rtol=1e-9, atol=1e-9)
    both = ContrastivePCA(4, alpha=alpha, side="both", held_out=None).fit(X, background=Y)
    np.testing.assert_allclose(both.eigenvalues_, values[np.argsort(-np.abs(values))][:4], rtol=1e-9, atol=1e-9)


@pytest.mark.filterwarnings(SINGULAR_TARGET)
@pytest.mark.parametrize("side", ["background", "both"])
def test_a_linear_kernel_has_the_components_of_the_linear_method(side, rng):
    X, Y = lacking(rng, 80, 90, 9)
    kernel = KernelContrastivePCA(2, kernel="linear", alpha=2.0, side=side).fit(X, background=Y)
    linear = ContrastivePCA(2, alpha=2.0, side=side).fit(X, background=Y)
    np.testing.assert_allclose(kernel.eigenvalues_, linear.eigenvalues_, rtol=1e-8)
    np.testing.assert_allclose(np.abs(kernel.transform(X)), np.abs(linear.transform(X)), atol=1e-7)
    # A ridge that is small: the ratios are those of the plain pencil.
    kernel = KernelDiscriminativePCA(2, kernel="linear", epsilon=1e-9, side=side).fit(X, background=Y)
    linear = DiscriminativePCA(2, shrinkage=None, side=side).fit(X, background=Y)
    np.testing.assert_allclose(kernel.eigenvalues_, linear.eigenvalues_, rtol=1e-6)


@pytest.mark.parametrize("side", ["background", "both"])
@pytest.mark.parametrize("seed", [0, 1, 6])
def test_the_constant_of_a_polynomial_kernel_is_no_direction(seed, side):
    """The kernel (x·z + 1)² is the inner product of these monomials, and of a constant that does not vary."""
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(70, 3)) * [2, 1, 1], rng.normal(size=(60, 3)) * [1, 1, 2]
    monomials = [
        np.column_stack([np.sqrt(2) * rows, rows**2, np.sqrt(2) * rows[:, [0, 0, 1]] * rows[:, [1, 2, 2]]])
        for rows in (X, Y)
    ]
    given = {"side": side, "epsilon": 1.0}
    kernel = KernelDiscriminativePCA(2, kernel="inhomogeneous_polynomial", degree=2, **given).fit(X, background=Y)
    linear = KernelDiscriminativePCA(2, kernel="linear", **given).fit(monomials[0], background=monomials[1])
    np.testing.assert_allclose(kernel.eigenvalues_, linear.eigenvalues_, rtol=1e-6)
    np.testing.assert_allclose(kernel.held_out_ratio_, linear.held_out_ratio_, rtol=1e-6)


def test_components_are_found_and_held_out_ratios_follow(rng):
    X, Y = lacking(rng)
    less = DiscriminativePCA(2, side="background", test="permutation").fit(X, background=Y)
    assert np.abs(less.patterns_).argmax(axis=1).tolist() == [5, 7]
    np.testing.assert_allclose(less.held_out_ratio_, [0.09, 0.25], rtol=0.25)
    assert np.all(less.p_values_ <= 0.05)
    assert np.all(less.eigenvalues_ < less.component_test_.edges)
    both = DiscriminativePCA(2, side="both", test="permutation").fit(X, background=Y)
    assert np.abs(both.patterns_).argmax(axis=1).tolist() == [5, 0]
    assert both.component_test_.edges[0] < 1.0 < both.component_test_.edges[1]
    assert np.all(both.p_values_ <= 0.05)
    # What stands out in one direction is what is lacking in the other.
    exchanged = DiscriminativePCA(2, shrinkage=None).fit(Y, background=X)
    plain = DiscriminativePCA(2, shrinkage=None, side="background").fit(X, background=Y)
    np.testing.assert_allclose(plain.eigenvalues_, 1 / exchanged.eigenvalues_, rtol=1e-9)
    np.testing.assert_allclose(plain.held_out_ratio_, 1 / exchanged.held_out_ratio_, rtol=1e-9)


def test_tests_of_equal_datasets_find_nothing_on_any_side(rng):
    p_values = []
    for _ in range(12):
        X, Y = rng.normal(size=(60, 6)), rng.normal(size=(80, 6))
        for side in ("background", "both"):
            dpca = DiscriminativePCA(1, side=side, held_out=None).fit(X, background=Y)
            p_values.append(fitted_test(dpca, X, Y, n_components=1, n_permutations=39).p_values[0])
    # 24 p-values of which 5 % are below 0.05: six or more have a chance of 0.0014.
    assert np.sum(np.array(p_values) <= 0.05) < 6


@pytest.mark.filterwarnings("ignore:the shrinkage that was chosen", "ignore:the background covariance is singular")
@pytest.mark.parametrize("side", ["background", "both"])
@pytest.mark.parametrize(
    ("model", "same"),
    [
        (lambda **given: DiscriminativePCA(1, shrinkage=0.0, **given), True),
        (lambda **given: ContrastivePCA(1, **given), True),
        (lambda **given: KernelDiscriminativePCA(1, kernel="linear", **given), True),
        # The shrinkage follows from the number of columns.
        (lambda **given: DiscriminativePCA(1, shrinkage="held-out", **given), False),
    ],
)
def test_a_column_that_does_not_vary_changes_no_p_value(model, same, side, rng):
    X, Y = rng.normal(size=(60, 4)), rng.normal(size=(70, 4))
    p_values = []
    for n_constant in (0, 2):
        rows = [np.column_stack([part, np.full((len(part), n_constant), 0.1)]) for part in (X, Y)]
        fitted = model(side=side).fit(rows[0], background=rows[1])
        p_values.append(fitted_test(fitted, *rows, n_components=1, n_permutations=39).p_values[0])
    assert all(0.05 < p_value < 1.0 for p_value in p_values)
    assert not same or p_values[0] == p_values[1]


@pytest.mark.filterwarnings("ignore:the shrinkage that was chosen")
@pytest.mark.parametrize("side", ["background", "both"])
def test_rules_choose_by_the_side(side, rng):
    shared = rng.normal(size=(5, 30))
    X, Y = (rng.normal(size=(70, 30)) + 3 * rng.normal(size=(70, 5)) @ shared for _ in range(2))
    Y[:, 0] += 6 * rng.normal(size=70)
    dpca = DiscriminativePCA(1, shrinkage="held-out", side=side).fit(X, background=Y)
    path = dpca.held_out_path_
    worth = -path.log_ratios if side == "background" else np.abs(path.log_ratios)
    assert worth[path.chosen] >= worth.max() - path.standard_errors[path.chosen]
    cpca = ContrastivePCA(1, alpha="held-out", side="background").fit(X, background=Y)
    assert np.abs(cpca.components_[0]).argmax() == 0


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"side": "left"}, "side='left' is unknown"),
        ({"shrinkage": "clusters"}, "shrinkage='clusters' looks at what stands out in the target"),
        ({"background_weights": "worst-case"}, "background_weights='worst-case' looks at"),
        ({"test": "analytic"}, "test='analytic' looks at.* Choose it otherwise, or use side='target'"),
    ],
)
def test_what_does_not_go_with_a_side_is_refused(given, match, rng):
    X, Y = lacking(rng)
    with pytest.raises(ValueError, match=match):
        DiscriminativePCA(**{"side": "both", **given}).fit(X, background=[Y, Y[:100]])


def test_a_test_of_a_singular_target_is_refused(rng):
    X, Y = rng.normal(size=(20, 40)), rng.normal(size=(30, 40))
    with pytest.raises(ValueError, match="its least ratio is 0"):
        DiscriminativePCA(1, side="background", test="permutation").fit(X, background=Y)


def test_sums_and_batches_give_the_fit_of_all_rows(rng):
    X, Y = lacking(rng)
    whole = DiscriminativePCA(2, side="both").fit(X, background=Y)
    parts = DiscriminativePCA(2, side="both")
    for rows, others in zip(np.array_split(X, 3), np.array_split(Y, 3), strict=True):
        parts.partial_fit(rows, background=others)
    sums = DiscriminativePCA.from_moments(gather(X, norms=True), gather(Y, norms=True), n_components=2, side="both")
    for other in (parts, sums):
        np.testing.assert_allclose(other.eigenvalues_, whole.eigenvalues_, rtol=1e-9)
        np.testing.assert_allclose(other.components_, whole.components_, rtol=1e-7, atol=1e-9)


def test_a_path_of_differences_is_that_of_single_solutions(rng):
    X, Y = lacking(rng)
    target, background = gather(X), gather(Y)
    alphas = [0.0, 0.1, 0.5, 1.0, 2.0, 8.0]
    pencils = [contrast.contrastive(target, [background], [1.0], alpha) for alpha in alphas]
    for problem, found in zip(pencils, solve_path(pencils, 2, solver="lanczos", side="background"), strict=True):
        alone = solve(problem, 2, solver="dense", side="background")
        np.testing.assert_allclose(found.values, alone.values, rtol=1e-9, atol=1e-10)
