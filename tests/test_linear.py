"""The linear methods against the paper's equations written out, their limits, and laws that options obey."""

from itertools import permutations

import numpy as np
import pytest
from scipy import linalg, sparse
from sklearn.decomposition import PCA

from standout import ContrastivePCA, DiscriminativePCA, scan
from standout._messages import FindingWarning
from standout.moments import FoldPattern
from standout.selection import rule

# Eigenvalues of small well-conditioned matrices are known to a few units of rounding.
EXACT = {"rtol": 1e-10, "atol": 1e-12}
NEARLY_PCA = "ignore:the chosen shrinkage"


@pytest.fixture
def data(rng):
    mix = rng.normal(size=(6, 6))
    X = rng.normal(size=(120, 6)) * [4, 1, 1, 1, 1, 2] @ mix + 3
    Y = rng.normal(size=(90, 6)) * [4, 1, 1, 1, 1, 0.7] @ mix + 3
    Z = rng.normal(size=(70, 6)) * [1, 3, 1, 1, 1, 0.7] @ mix + 3
    return X, Y, Z


def covariance(rows, weights=None):
    return np.cov(rows.T, bias=True, aweights=weights)


def shrunken(C, share):
    return (1 - share) * C + share * np.trace(C) / len(C) * np.eye(len(C))


def leading(A, B, d):
    """Return the d largest values and vectors of A u = λ B u."""
    values, vectors = linalg.eigh(A, B)
    return values[::-1][:d], vectors[:, ::-1][:, :d]


def assert_same_directions(found, expected, tolerance=1e-9):
    """Compare the rows of two matrices up to their lengths and signs."""
    found, expected = (part / np.linalg.norm(part, axis=1, keepdims=True) for part in (found, expected))
    signs = np.sign(np.sum(found * expected, axis=1, keepdims=True))
    np.testing.assert_allclose(found, signs * expected, atol=tolerance)


# --- the paper's equations -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shrinkage", [None, 0.0, 0.3, 1.0])
def test_dpca_solves_equation_6(data, shrinkage):
    X, Y, _ = data
    model = DiscriminativePCA(3, shrinkage=shrinkage, cv=None).fit(X, background=Y)
    values, vectors = leading(covariance(X), shrunken(covariance(Y), shrinkage or 0.0), 3)
    np.testing.assert_allclose(model.eigenvalues_, values, **EXACT)
    assert_same_directions(model.components_, vectors.T)
    # Equation 4b: without folds the background has unit variance along each component, in sample.
    np.testing.assert_allclose(np.diag(model.components_ @ covariance(Y) @ model.components_.T), 1.0, **EXACT)
    assert np.isnan(model.ratio_).all()
    assert model.shrinkage_ == (shrinkage or 0.0)


def test_several_backgrounds_solve_equation_20(data):
    X, Y, Z = data
    model = DiscriminativePCA(2, shrinkage=0.2, background_weights=[1, 3], cv=None).fit(X, background=[Y, Z])
    B = 0.25 * shrunken(covariance(Y), 0.2) + 0.75 * shrunken(covariance(Z), 0.2)
    values, vectors = leading(covariance(X), B, 2)
    np.testing.assert_allclose(model.eigenvalues_, values, **EXACT)
    assert_same_directions(model.components_, vectors.T)
    np.testing.assert_allclose(model.background_weights_, [0.25, 0.75])


def test_contrastive_pca_is_the_difference_of_covariances(data):
    X, Y, Z = data
    model = ContrastivePCA(2, alpha=1.7, cv=None).fit(X, background=[Y, Z])
    values, vectors = leading(covariance(X) - 1.7 * (covariance(Y) + covariance(Z)) / 2, np.eye(6), 2)
    np.testing.assert_allclose(model.eigenvalues_, values, **EXACT)
    assert_same_directions(model.components_, vectors.T)


def test_scores_patterns_and_correlations_follow_their_definitions(data):
    X, Y, _ = data
    model = DiscriminativePCA(2, shrinkage=0.1, cv=None).fit(X, background=Y)
    scores = model.transform(X)
    np.testing.assert_allclose(scores, (X - X.mean(axis=0)) @ model.components_.T, **EXACT)
    patterns = model.components_ @ shrunken(covariance(Y), 0.1)
    assert_same_directions(model.patterns_, patterns)
    np.testing.assert_allclose(model.transform(model.inverse_transform(scores)), scores, atol=1e-9)
    both = np.corrcoef(X.T, scores.T)[:6, 6:].T
    np.testing.assert_allclose(model.correlations_, both, **EXACT)
    for row in model.components_:
        assert row[np.argmax(np.abs(row))] > 0


# --- limits ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        DiscriminativePCA(3),
        DiscriminativePCA(3, shrinkage=1.0, cv=None),
        ContrastivePCA(3, alpha=0.0, cv=None),
    ],
    ids=["no background", "full shrinkage", "alpha zero"],
)
def test_pca_is_a_limit(data, model):
    X, Y, _ = data
    model.fit(X, background=None if model.cv else Y)
    pca = PCA(3).fit(X)
    assert_same_directions(model.components_, pca.components_)
    unit = np.trace(covariance(Y)) / 6 if getattr(model, "shrinkage", None) == 1.0 else 1.0
    np.testing.assert_allclose(model.eigenvalues_ * unit, pca.explained_variance_ * 119 / 120, **EXACT)


def test_theorem_2_the_first_component_is_that_of_a_difference(data):
    X, Y, _ = data
    ratio = DiscriminativePCA(1, shrinkage=None, cv=None).fit(X, background=Y)
    difference = ContrastivePCA(1, alpha=float(ratio.eigenvalues_[0]), cv=None).fit(X, background=Y)
    assert_same_directions(ratio.components_, difference.components_, 1e-7)
    # The largest value of Cxx - λ Cyy is zero.
    assert abs(difference.eigenvalues_[0]) < 1e-10 * np.trace(covariance(X))


def test_exchanged_datasets_have_inverse_ratios_in_reverse_order(data):
    X, Y, _ = data
    one = DiscriminativePCA(None, shrinkage=None, cv=None).fit(X, background=Y)
    other = DiscriminativePCA(None, shrinkage=None, cv=None).fit(Y, background=X)
    np.testing.assert_allclose(one.eigenvalues_ * other.eigenvalues_[::-1], 1.0, rtol=1e-10)
    assert_same_directions(one.components_, other.components_[::-1], 1e-8)


def test_remark_3_dpca_is_pca_of_whitened_rows(data):
    X, Y, _ = data
    model = DiscriminativePCA(2, shrinkage=None, cv=None).fit(X, background=Y)
    white = linalg.inv(linalg.sqrtm(covariance(Y)).real)
    pca = PCA(2).fit(X @ white)
    np.testing.assert_allclose(model.eigenvalues_, pca.explained_variance_ * 119 / 120, rtol=1e-9)
    scores = pca.transform(X @ white)
    np.testing.assert_allclose(np.abs(model.transform(X)), np.abs(scores), atol=1e-8)


def test_ratios_do_not_depend_on_units_or_mixtures_of_columns(data, rng):
    X, Y, _ = data
    mix = rng.normal(size=(6, 6)) + 4 * np.eye(6)
    one = DiscriminativePCA(2, shrinkage=None).fit(X, background=Y)
    other = DiscriminativePCA(2, shrinkage=None).fit(X @ mix + 7, background=Y @ mix + 7)
    np.testing.assert_allclose(one.eigenvalues_, other.eigenvalues_, rtol=1e-9)
    np.testing.assert_allclose(one.ratio_, other.ratio_, rtol=1e-9)


# --- held-out rows ---------------------------------------------------------------------------------------------------


def held_out(X, Y, solved, center="own", n_folds=5):
    """Return the scores of each row by components without its fold, as the definition says."""
    folds = [FoldPattern(n_folds).of(np.arange(len(rows))) for rows in (X, Y)]
    reference = solved(X, Y)
    found = [np.empty((len(rows), reference.shape[1])) for rows in (X, Y)]
    for fold in range(n_folds):
        train = [rows[own != fold] for rows, own in zip((X, Y), folds, strict=True)]
        U = solved(*train)
        signs = np.sign(np.sum(U * (covariance(X) @ reference), axis=0))
        for k, (rows, own) in enumerate(zip((X, Y), folds, strict=True)):
            about_background = k == 0 and center == "background"
            held = rows[own == fold]
            middle = train[1].mean(axis=0) if about_background else held.mean(axis=0)
            factor = 1.0 if about_background else 1.0 / np.sqrt(1.0 - 1.0 / len(held))
            found[k][own == fold] = (rows[own == fold] - middle) @ (U * signs) * factor
    return found


@pytest.mark.parametrize("center", ["own", "background"])
def test_the_ratio_is_that_of_held_out_scores(data, center):
    X, Y, _ = data
    X = X + 0.3 * Y.std(axis=0)
    model = DiscriminativePCA(1, shrinkage=0.1, center=center).fit(X, background=Y)

    def solved(rows, others):
        A = covariance(rows)
        if center == "background":
            step = rows.mean(axis=0) - others.mean(axis=0)
            A = A + np.outer(step, step)
        return leading(A, shrunken(covariance(others), 0.1), 1)[1]

    own, other = held_out(X, Y, solved, center)
    square = own.var(axis=0) if center == "own" else np.mean(own**2, axis=0)
    np.testing.assert_allclose(model.ratio_, square / other.var(axis=0), rtol=1e-8)
    scores = model.held_out_scores(X, background=Y)
    np.testing.assert_allclose(scores[1].var(axis=0), 1.0, rtol=1e-8)
    measured = scores[0].var(axis=0) if center == "own" else np.mean(scores[0] ** 2, axis=0)
    np.testing.assert_allclose(measured, model.ratio_, rtol=1e-8)
    np.testing.assert_allclose(model.ratio_interval_[:, 0] * model.ratio_interval_[:, 1], model.ratio_**2, rtol=1e-10)
    if center == "background":
        np.testing.assert_allclose(model.spread_ + model.shift_, model.ratio_, rtol=0.02)
    else:
        np.testing.assert_allclose(scores[0].mean(axis=0), 0.0, atol=1e-9)


@pytest.mark.parametrize(
    "given",
    [
        {"scale": "pooled"},
        {"scale": "background", "n_columns": 3},
        {"smooth": "chain"},
        {"background_weights": [0.2, 0.8]},
        {"shrinkage": None},
    ],
    ids=str,
)
def test_the_variances_of_held_out_scores_are_the_ratio(data, given):
    X, Y, Z = data
    model = DiscriminativePCA(2, **given).fit(X, background=[Y, Z])
    target, *others = model.held_out_scores(X, background=[Y, Z])
    np.testing.assert_allclose(target.var(axis=0), model.ratio_, rtol=1e-8)
    against = model.background_weights_ @ [part.var(axis=0) for part in others]
    np.testing.assert_allclose(against, 1.0, rtol=1e-8)


@pytest.mark.parametrize("kind", [DiscriminativePCA, ContrastivePCA])
def test_the_path_is_the_mean_log_ratio_of_the_folds(data, kind):
    X, Y, _ = data
    model = kind(1).fit(X, background=Y)
    place = model.path_.chosen
    logs = []
    for fold in range(5):
        train, test = (
            [rows[(FoldPattern(5).of(np.arange(len(rows))) == fold) == held] for rows in (X, Y)] for held in (0, 1)
        )
        A, B = map(covariance, train)
        value = model.path_.values[place]
        pencil = (A, shrunken(B, value)) if kind is DiscriminativePCA else (A - value * B, np.eye(6))
        u = leading(*pencil, 1)[1]
        squares = [(rows @ u).var(ddof=1) for rows in test]
        logs.append(np.log(squares[0] / squares[1]))
    # The path is found by a few iterations, not to the last digit.
    np.testing.assert_allclose(model.path_.log_ratios[place], np.mean(logs), rtol=1e-3)
    assert (model.path_.best, model.path_.chosen) == rule(model.path_.log_ratios)
    parameter = {DiscriminativePCA: "shrinkage", ContrastivePCA: "alpha"}[kind]
    assert model.path_.parameter == parameter
    assert getattr(model, f"{parameter}_") == model.path_.value


@pytest.mark.parametrize(
    ("logs", "expected"),
    [
        ([0.5, 1.0, 0.9, 0.8, 0.75, 0.2], (1, 2)),  # 1 and 4 are the ends: halfway, rounded down
        ([1.0, 0.71, 0.69, 0.9], (0, 0)),  # a gap ends the stretch
        ([0.1, 1.0, 0.7, 0.7, 0.7], (1, 2)),  # exactly 70 % still counts
        ([0.1, 1.0, 0.69999, 0.9], (1, 1)),
        ([-2.0, -1.0, -1.01], (1, 1)),  # nothing stands out: the best itself
        ([0.0, -1.0], (0, 0)),
        ([np.nan, 2.0, np.nan, 1.9], (1, 1)),
        ([3.0, 3.0, 3.0, 3.0, 3.0], (0, 2)),
    ],
)
def test_the_rule_on_numbers_by_hand(logs, expected):
    assert rule(np.array(logs)) == expected


@pytest.mark.filterwarnings(NEARLY_PCA)
def test_values_of_the_path_start_without_shrinkage_only_for_many_rows(rng):
    X, Y = rng.normal(size=(2, 40, 10))
    path = DiscriminativePCA(1).fit(X, background=Y).path_
    ridges = np.geomspace(1e-2, 32.0, 13)
    np.testing.assert_allclose(path.values, [0.0, *(ridges / (1 + ridges))])
    path = DiscriminativePCA(1).fit(X, background=Y[:12]).path_
    np.testing.assert_allclose(path.values, ridges / (1 + ridges))


# --- the whole fit, written out --------------------------------------------------------------------------------------


def written_out(parts, weights, shares, d, center, folds=None):
    """Fit by the definitions: the path, the rule, the components, and their held-out ratio; everything in columns.

    Given folds are of whole subjects: their rows are about the mean of the other folds.
    """
    n_folds, width, subjects = min(5, *(len(rows) // 2 for rows in parts)), parts[0].shape[1], folds is not None
    folds = folds or [FoldPattern(n_folds).of(np.arange(len(rows))) for rows in parts]
    ridges = np.geomspace(1e-2, 32.0, 13)
    path = np.concatenate([[0.0], ridges / (1 + ridges)])[int(sum(map(len, parts[1:])) < 1.25 * width + 2) :]

    def taken(fold, held):
        kept = [(own == fold) == held for own in folds]
        return [(rows[own], by[own]) for rows, by, own in zip(parts, weights, kept, strict=True)]

    def mean_of(every):
        return shares @ [np.average(rows, axis=0, weights=by) for rows, by in every[1:]]

    def solved(every, share):
        A, *others = (covariance(rows, by) for rows, by in every)
        if center == "background":
            step = np.average(every[0][0], axis=0, weights=every[0][1]) - mean_of(every)
            A = A + np.outer(step, step)
        return leading(A, sum(w * shrunken(C, share) for w, C in zip(shares, others, strict=True)), d)

    def judged(fold, U):
        """Mean squares, mean scores and weights of the held-out rows, and the step between the means."""
        found, train, test = [], taken(fold, False), taken(fold, True)
        for k, (rows, by) in enumerate(test):
            about, own = train[k] if subjects else test[k]
            more = (1.0 if subjects else -1.0) * np.sum(own**2) / own.sum() ** 2
            if k == 0 and center == "background":
                middle, more = mean_of(train), 0.0
            else:
                middle = np.average(about, axis=0, weights=own)
            scores = (rows - middle) @ U / np.sqrt(1.0 + more)
            found.append((np.average(scores**2, axis=0, weights=by), np.average(scores, axis=0, weights=by), by.sum()))
        step = (np.average(test[0][0], axis=0, weights=test[0][1]) - mean_of(train)) @ U
        return [np.array(part) for part in zip(*found, strict=True)], step

    logs = np.empty((n_folds, len(path)))
    for fold in range(n_folds):
        for place, share in enumerate(path):
            squares = judged(fold, solved(taken(fold, False), share)[1])[0][0]
            logs[fold, place] = np.mean(np.log(squares[0] / (shares @ squares[1:])))
    best, chosen = rule(logs.mean(axis=0))
    errors = np.std(logs - logs[:, [best]], axis=0, ddof=1) / np.sqrt(n_folds)
    whole = list(zip(parts, weights, strict=True))
    values, U = solved(whole, path[chosen])
    C = covariance(parts[0], weights[0])
    every = []
    for fold in range(n_folds):
        V = solved(taken(fold, False), path[chosen])[1]
        scale = np.sqrt(np.outer(np.diag(U.T @ C @ U), np.diag(V.T @ C @ V)))
        both = U.T @ C @ V / scale
        order = max(permutations(range(d)), key=lambda order: sum(np.abs(both[np.arange(d), order])))
        every.append(judged(fold, V[:, order] * np.sign(both[np.arange(d), order])))
    squares, means, totals = (np.array(part) for part in zip(*[held for held, _ in every], strict=True))
    steps = np.array([step for _, step in every])

    def pooled(kept):
        share = totals[kept] / totals[kept].sum(axis=0)
        square, mean = (np.einsum("fk,fkd->kd", share, part[kept]) for part in (squares, means))
        spread = square - mean**2
        against, apart = shares @ spread[1:], share[:, 0] @ steps[kept]
        own = square[0] if center == "background" else spread[0]
        return np.array([np.log(own / against), spread[0] / against, apart**2 / against]), np.sqrt(against)

    found, unit = pooled(np.arange(n_folds))
    without = np.array([pooled(np.delete(np.arange(n_folds), fold))[0] for fold in range(n_folds)])
    jackknife = np.sqrt((n_folds - 1) * np.var(without, axis=0))
    order = np.argsort(-found[0])
    centre = mean_of(whole) if center == "background" else np.average(parts[0], axis=0, weights=weights[0])
    return {
        "path_values": path,
        "log_ratios": logs.mean(axis=0),
        "errors": errors,
        "place": (best, chosen),
        "eigenvalues_": values[order],
        "components_": (U / unit).T[order],
        "ratio_": np.exp(found[0])[order],
        "ratio_error_": (np.exp(found[0]) * jackknife[0])[order],
        "spread_": found[1][order],
        "spread_error_": jackknife[1][order],
        "shift_": found[2][order],
        "shift_error_": jackknife[2][order],
        "mean_": centre,
        "order": order,
    }


def check_folds_of_subjects(owners, folds):
    """Whole subjects, each kind dealt evenly over five folds, and no fold with the large subjects alone."""
    fold_of = {}
    for own, fold in zip(owners, folds, strict=True):
        for name in np.unique(own):
            assert len({*fold[own == name].tolist(), fold_of.get(name, fold[own == name][0])}) == 1
            fold_of[name] = int(fold[own == name][0])
    kinds = {name: tuple(name in own for own in owners) for name in fold_of}
    for kind in set(kinds.values()):
        counts = np.bincount([fold_of[name] for name in kinds if kinds[name] == kind], minlength=5)
        assert np.ptp(counts) <= 1
    rows = np.bincount(np.concatenate(folds))
    assert len(rows) == 5
    assert rows.max() < 2 * rows.min()


def test_two_subjects_are_two_folds(data):
    X, Y, _ = data
    given = {"groups": np.arange(120) % 2, "background_groups": 2 + np.arange(90) % 3}
    assert DiscriminativePCA(1, shrinkage=0.1).fit(X, background=Y, **given).n_folds_ == 2


@pytest.mark.filterwarnings("ignore:the means of target and background", NEARLY_PCA)
@pytest.mark.parametrize("center", ["own", "background"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("shape", ["tall", "wide", "subjects"])
def test_a_default_fit_is_its_definition_written_out(shape, weighted, center):
    """Choice, held-out ratio, jackknife, unit and order; wide rows have all directions of the plain problem."""
    rng = np.random.default_rng(5)
    counts, width = ((61, 47, 38), 5) if shape != "wide" else ((8, 7, 6), 34)
    parts = [rng.normal(size=(n, width)) * np.linspace(1, 2, width) + 0.5 for n in counts]
    parts[0] += 3 * rng.normal(size=(counts[0], 1)) * rng.normal(size=width)
    parts[0][:, 1] += 1.0
    weights = [rng.uniform(0.5, 2.0, n) if weighted else np.ones(n) for n in counts]
    beside = {"sample_weight": weights[0], "background_sample_weight": weights[1:]} if weighted else {}
    model = DiscriminativePCA(2, background_weights=[0.3, 0.7], center=center)
    folds = None
    if shape == "subjects":
        # Subjects of many sizes, in one or two of the datasets.
        owners = [np.sort(rng.integers(first, first + 12, n)) for first, n in zip((0, 6, 12), counts, strict=True)]
        beside |= {"groups": owners[0], "background_groups": owners[1:]}
    model.fit(parts[0], background=parts[1:], **beside)
    if shape == "subjects":
        folds = model.held_out_.folds
        check_folds_of_subjects(owners, folds)
    expected = written_out(parts, weights, np.array([0.3, 0.7]), 2, center, folds)
    path, near = model.path_, {"rtol": 1e-7, "atol": 1e-9}
    np.testing.assert_allclose(path.values, expected["path_values"])
    np.testing.assert_allclose(path.log_ratios, expected["log_ratios"], **near)
    np.testing.assert_allclose(path.errors, expected["errors"], **near)
    assert (path.best, path.chosen) == expected["place"]
    for name in (name for name in expected if name.endswith("_") and name != "components_"):
        np.testing.assert_allclose(getattr(model, name), expected[name], **near, err_msg=name)
    signs = np.sign(np.sum(model.components_ * expected["components_"], axis=1, keepdims=True))
    np.testing.assert_allclose(model.components_, signs * expected["components_"], **near)
    if shape == "subjects":
        return
    # Scores of held-out rows about the means of the fit are where these rows are in a picture.
    every = model.held_out_scores(parts[0], background=parts[1:])
    for scores, rows, own in zip(every[1:], parts[1:], weights[1:], strict=True):
        middle = (np.average(rows, axis=0, weights=own) - expected["mean_"]) @ model.components_.T
        np.testing.assert_allclose(np.average(scores, axis=0, weights=own), middle, atol=1e-8)


# --- options as laws -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", ["pooled", "background"])
@pytest.mark.parametrize("kind", [DiscriminativePCA, ContrastivePCA])
def test_scale_equals_a_fit_to_scaled_columns(data, kind, scale):
    X, Y, _ = data
    spread = Y.var(axis=0) if scale == "background" else (X.var(axis=0) + Y.var(axis=0)) / 2
    given = {"shrinkage": 0.2} if kind is DiscriminativePCA else {"alpha": 1.5}
    model = kind(2, scale=scale, cv=None, **given).fit(X, background=Y)
    other = kind(2, cv=None, **given).fit(X / np.sqrt(spread), background=Y / np.sqrt(spread))
    np.testing.assert_allclose(model.scale_, np.sqrt(spread), **EXACT)
    np.testing.assert_allclose(model.eigenvalues_, other.eigenvalues_, **EXACT)
    np.testing.assert_allclose(np.abs(model.transform(X)), np.abs(other.transform(X / np.sqrt(spread))), atol=1e-9)


@pytest.mark.parametrize("units", [1.0, 1e30, 1e-30])
def test_a_constant_column_adds_no_rounding_in_any_units(rng, units):
    """Its loading is rounding, which must be small in the units of the other columns."""
    X, Y = rng.normal(size=(2, 60, 4)) * units
    X[:, 1], Y[:, 1] = 3.0 * units, 3.0 * units
    model = ContrastivePCA(2, scale="pooled").fit(X, background=Y)
    own, other = model.held_out_scores(X, background=Y)
    np.testing.assert_allclose(own.var(axis=0), model.ratio_, rtol=1e-8)
    np.testing.assert_allclose(other.var(axis=0), 1.0, rtol=1e-8)


@pytest.mark.parametrize("kind", [DiscriminativePCA, ContrastivePCA])
def test_whole_weights_equal_repeated_rows(data, rng, kind):
    X, Y, _ = data
    weights, others = rng.integers(0, 4, len(X)), rng.integers(1, 4, len(Y))
    given = {"shrinkage": 0.2} if kind is DiscriminativePCA else {"alpha": 1.5}
    model = kind(2, cv=None, **given)
    model.fit(X, background=Y, sample_weight=weights, background_sample_weight=others)
    repeated = kind(2, cv=None, **given).fit(np.repeat(X, weights, axis=0), background=np.repeat(Y, others, axis=0))
    np.testing.assert_allclose(model.eigenvalues_, repeated.eigenvalues_, **EXACT)
    np.testing.assert_allclose(model.transform(X), repeated.transform(X), atol=1e-9)


def test_weights_are_in_the_held_out_ratio(data, rng):
    X, Y, _ = data
    weights = rng.uniform(0.5, 2.0, len(X))
    model = DiscriminativePCA(1, shrinkage=0.1).fit(X, background=Y, sample_weight=weights)
    target, other = model.held_out_scores(X, background=Y)
    mean = np.average(target, axis=0, weights=weights)
    np.testing.assert_allclose(np.average((target - mean) ** 2, axis=0, weights=weights), model.ratio_, rtol=1e-8)
    np.testing.assert_allclose(other.var(axis=0), 1.0, rtol=1e-8)
    # Equal weights of any size are no weights.
    one = DiscriminativePCA(1).fit(X, background=Y, sample_weight=np.full(len(X), 7.0))
    none = DiscriminativePCA(1).fit(X, background=Y)
    np.testing.assert_allclose(one.ratio_, none.ratio_, rtol=1e-10)


def test_covariates_equal_a_fit_to_residuals(rng):
    sizes = (100, 100)
    covariates = [rng.normal(size=(size, 2)) for size in sizes]
    X, Y = (rng.normal(size=(size, 5)) * [1, 1, 1, 1, 3 - 2 * k] for k, size in enumerate(sizes))
    X, Y = X + covariates[0] @ rng.normal(size=(2, 5)) * 4, Y + covariates[1] @ rng.normal(size=(2, 5)) * 4
    residuals = []
    for rows, beside in zip((X, Y), covariates, strict=True):
        design = np.column_stack([np.ones(len(rows)), beside])
        residuals.append(rows - design @ np.linalg.lstsq(design, rows)[0])
    given = {"shrinkage": 0.1, "cv": None}
    model = DiscriminativePCA(2, **given).fit(X, background=Y, adjust=covariates[0], background_adjust=covariates[1])
    other = DiscriminativePCA(2, **given).fit(residuals[0], background=residuals[1])
    np.testing.assert_allclose(model.eigenvalues_, other.eigenvalues_, rtol=1e-9)
    assert_same_directions(model.components_, other.components_, 1e-8)
    folded = DiscriminativePCA(1, shrinkage=0.1).fit(
        X, background=Y, adjust=covariates[0], background_adjust=covariates[1]
    )
    scores = folded.held_out_scores(X, background=Y, adjust=covariates[0], background_adjust=covariates[1])
    np.testing.assert_allclose(scores[0].var(axis=0), folded.ratio_, rtol=1e-8)
    assert 5.0 < folded.ratio_[0] < 13.0


@pytest.mark.parametrize("center", ["own", "background"])
@pytest.mark.parametrize("kind", [DiscriminativePCA, ContrastivePCA])
def test_wide_rows_have_the_answer_of_their_tall_coordinates(data, rng, kind, center):
    X, Y = (part[:40] for part in data[:2])
    turn = np.linalg.qr(rng.normal(size=(300, 6)))[0].T
    given, wide = {"alpha": 1.5}, {"alpha": 1.5}
    if kind is DiscriminativePCA:
        # The ridge s (tr C / D) is the same with 6 and with 300 columns, but for the factor 1 - s.
        ridge = 0.2 / 0.8 / 6 * 300
        given, wide = {"shrinkage": 0.2}, {"shrinkage": ridge / (1 + ridge)}
    tall = kind(2, center=center, **given).fit(X, background=Y)
    model = kind(2, center=center, **wide).fit(X @ turn + 5, background=Y @ turn + 5)
    assert model._data is None
    np.testing.assert_allclose(model.ratio_, tall.ratio_, rtol=1e-8)
    np.testing.assert_allclose(np.abs(model.transform(X @ turn + 5)), np.abs(tall.transform(X)), atol=1e-7)
    np.testing.assert_allclose(np.abs(model.components_), np.abs(tall.components_ @ turn), atol=1e-8)
    scores = model.held_out_scores(X @ turn + 5, background=Y @ turn + 5)
    np.testing.assert_allclose(scores[1].var(axis=0), 1.0, rtol=1e-8)


def test_wide_scaled_rows_equal_scaled_columns(rng):
    X, Y = rng.normal(size=(2, 30, 100)) * rng.uniform(0.1, 10, 100)
    spread = np.sqrt((X.var(axis=0) + Y.var(axis=0)) / 2)
    model = DiscriminativePCA(2, shrinkage=0.5, scale="pooled", cv=None).fit(X, background=Y)
    other = DiscriminativePCA(2, shrinkage=0.5, cv=None).fit(X / spread, background=Y / spread)
    np.testing.assert_allclose(model.eigenvalues_, other.eigenvalues_, rtol=1e-9)
    # The sign is that of the largest entry, which is another one in scaled columns.
    signs = np.sign((model.correlations_ * other.correlations_).sum(axis=1))
    np.testing.assert_allclose(model.transform(X), signs * other.transform(X / spread), atol=1e-8)
    np.testing.assert_allclose(model.correlations_, signs[:, None] * other.correlations_, atol=1e-8)
    thin = DiscriminativePCA(2, shrinkage=0.5, scale="pooled").fit(sparse.csr_array(X), background=sparse.csr_array(Y))
    dense = DiscriminativePCA(2, shrinkage=0.5, scale="pooled").fit(X, background=Y)
    for name in ("ratio_", "ratio_error_", "scale_", "components_", "correlations_", "patterns_", "mean_"):
        np.testing.assert_allclose(getattr(thin, name), getattr(dense, name), rtol=1e-8, atol=1e-9)


def test_few_columns_are_a_fit_to_these_columns(data):
    X, Y, _ = data
    model = DiscriminativePCA(1, shrinkage=0.2, n_columns=3, cv=None).fit(X, background=Y)
    columns = model.get_support(indices=True)
    assert len(columns) == model.n_columns_ == 3
    np.testing.assert_array_equal(np.flatnonzero(model.components_[0]), columns)
    np.testing.assert_array_equal(np.flatnonzero(model.get_support()), columns)
    other = DiscriminativePCA(1, shrinkage=0.2, cv=None).fit(X[:, columns], background=Y[:, columns])
    np.testing.assert_allclose(model.eigenvalues_, other.eigenvalues_, **EXACT)
    np.testing.assert_allclose(model.components_[:, columns], other.components_, **EXACT)
    scaled = DiscriminativePCA(1, shrinkage=0.2, n_columns=3, scale="background", cv=None).fit(X, background=Y)
    np.testing.assert_allclose(scaled.scale_[scaled.columns_], Y.std(axis=0)[scaled.columns_], **EXACT)
    every = DiscriminativePCA(1, shrinkage=0.2, n_columns=6, cv=None).fit(X, background=Y)
    np.testing.assert_allclose(
        every.components_, DiscriminativePCA(1, shrinkage=0.2, cv=None).fit(X, background=Y).components_, **EXACT
    )


@pytest.mark.parametrize("kind", [DiscriminativePCA, ContrastivePCA])
@pytest.mark.parametrize("wide", [False, True], ids=["tall", "wide"])
@pytest.mark.parametrize("scaled", [False, True], ids=["plain", "scaled"])
def test_columns_are_left_out_by_their_patterns_step_by_step(rng, kind, wide, scaled):
    """A third goes each time: the columns with the smallest ``|B u| / √B_jj``, each by its best component."""
    X, Y, Z = (rng.normal(size=(n, 60)) * np.geomspace(1, 9, 60) for n in ((14, 12, 9) if wide else (150, 140, 130)))
    X[:, [3, 30]] += 6 * rng.normal(size=(len(X), 2))
    given = {"shrinkage": 0.3} if kind is DiscriminativePCA else {"alpha": 1.5}
    more = {"scale": "background"} if scaled else {}
    model = kind(2, n_columns=7, background_weights=[0.25, 0.75], cv=None, **given, **more).fit(X, background=[Y, Z])
    unit = np.sqrt(0.25 * Y.var(axis=0) + 0.75 * Z.var(axis=0)) if scaled else np.ones(60)
    A, *others = (covariance(part / unit) for part in (X, Y, Z))
    kept = np.arange(60)
    while True:
        within = np.ix_(kept, kept)
        if kind is DiscriminativePCA:
            B = sum(w * shrunken(C[within], 0.3) for w, C in zip((0.25, 0.75), others, strict=True))
            values, vectors = leading(A[within], B, 2)
        else:
            B = np.eye(len(kept))
            values, vectors = leading(A[within] - 1.5 * (0.25 * others[0] + 0.75 * others[1])[within], B, 2)
        if len(kept) == 7:
            break
        shown = np.abs(B @ vectors) / np.sqrt(np.diag(B))[:, None]
        ranks = np.argsort(np.argsort(-shown, axis=0), axis=0).min(axis=1)
        order = np.lexsort((-shown.max(axis=1), ranks))
        kept = np.sort(kept[order[: max(2 * len(kept) // 3, 7)]])
    np.testing.assert_array_equal(model.columns_, kept)
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-8)
    assert_same_directions(model.components_[:, kept] * unit[kept], vectors.T, 1e-8)


@pytest.mark.filterwarnings(NEARLY_PCA)
def test_the_number_of_columns_is_chosen_small_where_few_matter(rng):
    X, Y = rng.normal(size=(2, 300, 40))
    X[:, [3, 17]] += 4 * rng.normal(size=(300, 1))
    model = DiscriminativePCA(1, n_columns="auto").fit(X, background=Y)
    assert set(model.columns_) >= {3, 17}
    assert model.n_columns_ <= 10
    assert model.columns_path_.parameter == "n_columns"


def test_smooth_adds_the_laplacian_of_the_graph(data):
    X, Y, _ = data
    chain, grid, C = np.eye(6, k=1), np.zeros((6, 6)), covariance(Y)
    # The pixels of 2 x 3 are 0 1 2 over 3 4 5.
    for one, other in [(0, 1), (1, 2), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5)]:
        grid[one, other] = 1.0
    forms = [
        ("chain", chain, 1.0),
        (((2, 3), 0.5), grid, 0.5),
        (grid + grid.T > 0, grid, 1.0),
        ((sparse.csr_array(3 * grid + 3 * grid.T), 2), grid, 6.0),
    ]
    for smooth, edges, strength in forms:
        laplacian = np.diag((edges + edges.T).sum(axis=0)) - edges - edges.T
        model = DiscriminativePCA(2, shrinkage=0.1, smooth=smooth, cv=None).fit(X, background=Y)
        values, vectors = leading(covariance(X), shrunken(C, 0.1) + strength * np.trace(C) / 6 * laplacian, 2)
        np.testing.assert_allclose(model.eigenvalues_, values, **EXACT)
        assert_same_directions(model.components_, vectors.T)
        few = DiscriminativePCA(1, shrinkage=0.1, smooth=smooth, n_columns=2, cv=None).fit(X, background=Y)
        of = np.ix_(few.columns_, few.columns_)
        own = np.trace(C[of]) / 2 * np.eye(2) * 0.1 + 0.9 * C[of] + strength * np.trace(C[of]) / 2 * laplacian[of]
        np.testing.assert_allclose(few.eigenvalues_, leading(covariance(X)[of], own, 1)[0], **EXACT)


@pytest.mark.parametrize(
    ("smooth", "message"),
    [
        (np.ones((3, 2)), "not a graph of the 6 columns"),
        ((2, 4), "not a graph of the 6 columns"),
        (1j * np.ones((6, 6)), "not a graph of the 6 columns"),
        ("ring", "smooth"),
        (-np.ones((6, 6)), "negative"),
        (np.triu(np.ones((6, 6))), "not symmetric"),
        (("chain", -1), "has the strength -1"),
    ],
)
def test_what_is_not_a_graph_of_the_columns_is_refused(data, smooth, message):
    X, Y, _ = data
    with pytest.raises((ValueError, TypeError), match=message):
        DiscriminativePCA(2, smooth=smooth).fit(X, background=Y)


def test_a_shift_of_the_mean_stands_out_from_the_background(rng):
    X, Y = rng.normal(size=(2, 400, 5))
    X[:, 2] += 3.0
    model = DiscriminativePCA(1, shrinkage=0.1, center="background").fit(X, background=Y)
    assert np.abs(model.components_[0]).argmax() == 2
    np.testing.assert_allclose(model.ratio_, 1 + 9, rtol=0.2)
    np.testing.assert_allclose(model.spread_ + model.shift_, model.ratio_, rtol=1e-2)
    np.testing.assert_allclose(model.transform(Y).mean(axis=0), 0.0, atol=1e-10)


# --- hard cases ------------------------------------------------------------------------------------------------------


def test_solvers_agree(rng):
    X, Y = rng.normal(size=(2, 700, 300)) * np.geomspace(1, 3, 300)
    X[:, 5] *= 4
    values = [
        DiscriminativePCA(2, shrinkage=0.1, cv=None, solver=solver).fit(X, background=Y).eigenvalues_
        for solver in ("dense", "iterative", "auto")
    ]
    np.testing.assert_allclose(values[1], values[0], rtol=1e-9)
    np.testing.assert_allclose(values[2], values[0], rtol=1e-9)


def test_a_large_common_mean_costs_few_digits(data):
    X, Y, _ = data
    near = DiscriminativePCA(1).fit(X, background=Y)
    far = DiscriminativePCA(1).fit(X + 1e6, background=Y + 1e6)
    np.testing.assert_allclose(far.ratio_, near.ratio_, rtol=1e-6)
    single = DiscriminativePCA(1).fit((X + 1000).astype(np.float32), background=(Y + 1000).astype(np.float32))
    np.testing.assert_allclose(single.ratio_, near.ratio_, rtol=1e-2)


def test_few_rows_of_single_precision_keep_what_a_small_shrinkage_adds(rng):
    X, Y = rng.normal(size=(2, 140, 200)).astype(np.float32)
    X[:, 0] *= 4
    single = DiscriminativePCA(2, shrinkage=1e-3).fit(X, background=Y)
    whole = DiscriminativePCA(2, shrinkage=1e-3).fit(X.astype(np.float64), background=Y.astype(np.float64))
    np.testing.assert_allclose(single.eigenvalues_, whole.eigenvalues_, rtol=1e-9)
    np.testing.assert_allclose(single.ratio_, whole.ratio_, rtol=1e-6)


def test_columns_that_are_nearly_combinations_of_others_keep_their_digits(rng):
    X, Y = rng.normal(size=(2, 200, 4)) * [1, 1, 1, 2]
    X[:, 3] *= 3
    # The last column is visible only in the seventh digit of the others: products have lost it, roots have not.
    mix = np.eye(4)
    mix[3, :3] = 1.0
    mix[3, 3] = 1e-7
    plain = DiscriminativePCA(1, shrinkage=None, cv=None).fit(X, background=Y)
    model = DiscriminativePCA(1, shrinkage=None, cv=None).fit(X @ mix, background=Y @ mix)
    np.testing.assert_allclose(model.eigenvalues_, plain.eigenvalues_, rtol=1e-4)


def test_a_direction_that_the_background_lacks_is_infinite_and_said(rng):
    X, Y = rng.normal(size=(2, 50, 4))
    Y[:, 1] = 2.0
    with pytest.warns(UserWarning, match="does not vary along 1 direction"):
        model = DiscriminativePCA(2, shrinkage=None, cv=None).fit(X, background=Y)
    assert np.isinf(model.eigenvalues_[0])
    assert np.isfinite(model.eigenvalues_[1])
    assert np.abs(model.components_[0]).argmax() == 1
    assert np.all(np.isfinite(model.transform(X)))


@pytest.mark.filterwarnings(NEARLY_PCA)
def test_the_same_datasets_have_no_ratio_above_one(rng):
    X = rng.normal(size=(300, 5)) * [5, 1, 1, 1, 2]
    model = DiscriminativePCA(1).fit(X, background=X)
    np.testing.assert_allclose(model.ratio_, 1.0, rtol=1e-8)


@pytest.mark.filterwarnings(NEARLY_PCA)
def test_noise_has_a_ratio_near_one_and_not_the_eigenvalue(rng):
    X, Y = rng.normal(size=(2, 60, 30))
    model = DiscriminativePCA(1).fit(X, background=Y)
    assert 0.5 < model.ratio_[0] < 1.6
    unshrunken = DiscriminativePCA(1, shrinkage=None).fit(X, background=Y)
    assert unshrunken.eigenvalues_[0] > 3.0
    assert unshrunken.ratio_[0] < 2.0


@pytest.mark.parametrize("units", [np.geomspace(1e-8, 1e8, 6), 1e130, 1e-130], ids=["columns", "large", "small"])
@pytest.mark.parametrize("kind", [DiscriminativePCA, ContrastivePCA])
def test_folds_are_brought_to_the_order_of_the_fit_whatever_the_units(kind, units):
    rng = np.random.default_rng(1)
    X, Y = rng.normal(size=(20, 6)) * [3, 3, 3, 1, 1, 1], rng.normal(size=(40, 6))
    # Units of columns do not matter to dPCA without shrinkage; one unit of all does not matter to any method.
    given = {"shrinkage": None} if kind is DiscriminativePCA else {"alpha": 1.0}
    units = units if kind is DiscriminativePCA else np.max(units)
    expected = kind(3, **given).fit(X, background=Y).ratio_
    np.testing.assert_allclose(kind(3, **given).fit(X * units, background=Y * units).ratio_, expected, rtol=1e-6)


def test_the_zero_of_a_covariate_does_not_matter_to_a_shift(rng):
    X, Y, ages, others = rng.normal(size=(30, 4)), rng.normal(size=(40, 4)), rng.normal(size=30), rng.normal(size=40)
    X, Y = X + ages[:, None] * [1, 2, 3, 4], Y + others[:, None] * [1, 2, 3, 5]
    fits = [
        DiscriminativePCA(2, center="background").fit(
            X, background=Y, adjust=ages + zero, background_adjust=others + zero
        )
        for zero in (0.0, 1000.0)
    ]
    np.testing.assert_allclose(fits[1].ratio_, fits[0].ratio_, rtol=1e-6)


@pytest.mark.parametrize("width", [3, 90])
def test_a_fold_whose_rows_have_no_weight_leaves_no_ratio(rng, width):
    X, Y = rng.normal(size=(2, 10, width))
    weights = (FoldPattern(5).of(np.arange(10)) != 0).astype(float)
    model = ContrastivePCA(1, alpha=1.0).fit(X, background=Y, sample_weight=weights)
    assert np.isnan(model.ratio_).all()


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_smoothing_of_scaled_columns_does_not_depend_on_the_unit(rng, unit):
    X, Y = rng.normal(size=(2, 80, 9)) * np.linspace(1, 3, 9)
    plain, other = (
        DiscriminativePCA(1, shrinkage=0.1, scale="pooled", smooth="chain").fit(X * factor, background=Y * factor)
        for factor in (1.0, unit)
    )
    np.testing.assert_allclose(other.ratio_, plain.ratio_, rtol=1e-8)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_scaled_wide_rows_may_have_fewer_coordinates_without_a_fold():
    rng = np.random.default_rng(3)
    X, Y = np.clip(rng.normal(5, 1, size=(2, 20, 90)) * 10.0 ** rng.uniform(-3, 12, size=90), 0, 255).round()
    w = rng.poisson(1, size=(2, 20))
    model = DiscriminativePCA(1, scale="background")
    model.fit(X, background=Y, sample_weight=w[0], background_sample_weight=w[1])
    assert np.isfinite(model.components_).all()


def test_wide_rows_whose_squares_are_out_of_range_are_refused(rng):
    X, Y = 1e153 * (rng.normal(size=(2, 20, 90)) * 1e-7 + 1.0)
    with pytest.raises(ValueError, match="squares of the values are out of the range"):
        ContrastivePCA(1, alpha=1.0).fit(X, background=Y)


@pytest.mark.parametrize("form", ["array", "scan"])
@pytest.mark.filterwarnings("ignore:the means of target and background")
def test_a_background_of_condition_1e12_keeps_its_digits(form, rng, tmp_path):
    spectrum, ratios = np.logspace(0, -12, 8), np.r_[np.ones(7), 5.0]
    turn = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    white = rng.normal(size=(2, 400, 8))
    white -= white.mean(axis=1, keepdims=True)
    bases = [np.linalg.qr(part)[0] * 20.0 for part in white]
    # The means are apart: a large mean must not hide the small directions.
    X, Y = (bases[0] * np.sqrt(spectrum * ratios)) @ turn.T + 5.0, (bases[1] * np.sqrt(spectrum)) @ turn.T
    given = []
    for name, part in (("x", X), ("y", Y)):
        np.save(tmp_path / f"{name}.npy", part)
        given.append(part if form == "array" else scan(tmp_path / f"{name}.npy"))
    model = DiscriminativePCA(1, shrinkage=0.0).fit(given[0], background=given[1])
    np.testing.assert_allclose(model.eigenvalues_, 5.0, rtol=1e-7)
    # Sums are kept: more rows can be added.
    with pytest.warns(UserWarning, match="less than half of the digits"):
        assert model.partial_fit(X, background=Y).n_samples_ == 800


def test_folds_whose_background_has_too_few_rows_are_warned_of(rng):
    X, Y = rng.normal(size=(40, 30)), rng.normal(size=(35, 30))
    with pytest.warns(FindingWarning, match='without a fold, the background does not vary.*`shrinkage`="auto"'):
        DiscriminativePCA(1, shrinkage=None).fit(X, background=Y)
