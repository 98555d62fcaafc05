"""Held-out rows of the linear methods: the ratio, the path and the whole default fit, written out."""

from itertools import permutations

import numpy as np
import pytest

from linear_data import NEARLY_PCA, covariance, leading, shrunken
from standout import ContrastivePCA, DiscriminativePCA, KernelDiscriminativePCA, scan
from standout.moments import FoldPattern, gather
from standout.pencil._path import fold_vectors
from standout.problem import Problem, Sums, mixed, pose
from standout.selection import rule


@pytest.fixture
def data(rng):
    mix = rng.normal(size=(6, 6))
    X = rng.normal(size=(120, 6)) * [4, 1, 1, 1, 1, 2] @ mix + 3
    Y = rng.normal(size=(90, 6)) * [4, 1, 1, 1, 1, 0.7] @ mix + 3
    Z = rng.normal(size=(70, 6)) * [1, 3, 1, 1, 1, 0.7] @ mix + 3
    return X, Y, Z


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
        # All folds together have more components than are multiplied at a time.
        {"n_components": 6, "cv": 4},
    ],
    ids=str,
)
def test_the_variances_of_held_out_scores_are_the_ratio(data, given):
    X, Y, Z = data
    model = DiscriminativePCA(**given).fit(X, background=[Y, Z])
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
    """Return a fit by the definitions: path, rule, components and held-out ratio, all computed in the columns.

    If `folds` are given, they keep subjects whole, and held-out rows are centred by the mean of the other folds.
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
        """Return mean squares, mean scores and weights of the held-out rows, and the step between the means."""
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
    """Check that subjects are whole, and that five folds are similar in each kind of subject and in rows."""
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


@pytest.mark.filterwarnings("ignore:the means of target and background")
@pytest.mark.parametrize("kind", [DiscriminativePCA, KernelDiscriminativePCA])
def test_a_target_too_small_for_its_folds_is_told(kind, data):
    """Without a subject, the target has one row or two: the direction of a second component is arbitrary."""
    X, Y, _ = data
    with pytest.warns(UserWarning, match="without a fold, the target does not vary along a component"):
        kind(2).fit(X[:3], background=Y, groups=[0, 1, 0], background_groups=np.arange(90) % 2)


@pytest.mark.parametrize("size", [1e-300, 1e-90, 1e200])
def test_the_size_of_all_weights_does_not_matter(size, data):
    """Products of tiny weights and variances would underflow to zero."""
    X, Y, _ = data
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 120)
    plain, tiny = (
        DiscriminativePCA(1, shrinkage=0.1).fit(
            unit * X, background=unit * Y, sample_weight=by * weights, background_sample_weight=by * weights[:90]
        )
        for unit, by in ((1.0, 1.0), (1e-117, size))
    )
    np.testing.assert_allclose(tiny.eigenvalues_, plain.eigenvalues_, rtol=1e-6)
    np.testing.assert_allclose(tiny.ratio_, plain.ratio_, rtol=1e-6)


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
    # The mean of held-out scores is the mean of the rows, centred and projected by the fit, as in a picture.
    every = model.held_out_scores(parts[0], background=parts[1:])
    for scores, rows, own in zip(every[1:], parts[1:], weights[1:], strict=True):
        middle = (np.average(rows, axis=0, weights=own) - expected["mean_"]) @ model.components_.T
        np.testing.assert_allclose(np.average(scores, axis=0, weights=own), middle, atol=1e-8)


@pytest.mark.parametrize("n_components", [4, 5])
def test_batches_without_rows_of_a_fold_have_held_out_scores(data, n_components, tmp_path):
    X, Y, _ = data
    groups = [np.repeat(np.arange(6), len(part) // 6) for part in (X, Y)]
    beside = {"groups": groups[0], "background_groups": 10 + groups[1]}
    model = DiscriminativePCA(n_components, shrinkage=0.1).fit(X, background=Y, **beside)
    whole = model.held_out_scores(X, background=Y)
    # Write one file for each subject.
    for name, part in (("target", X), ("background", Y)):
        for number, rows in enumerate(np.split(part, 6)):
            np.save(tmp_path / f"{name}{number}.npy", rows)
    target, background = (scan(tmp_path / f"{name}*.npy") for name in ("target", "background"))
    for one, other in zip(model.held_out_scores(target, background=background), whole, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)


@pytest.mark.filterwarnings("ignore:the background does not vary")
@pytest.mark.parametrize("weight", [0.0, 1e-8, 1e-3])
@pytest.mark.parametrize("place", [0, 3])
def test_a_wide_row_of_little_weight_is_as_if_it_were_not_there(weight, place, rng):
    X, Y = rng.normal(size=(30, 100)), rng.normal(size=(25, 100))
    X[:, 0] *= 5
    weights = np.ones(30)
    weights[place] = weight
    kept = np.arange(30) != place
    fits = [({"cv": None, "shrinkage": share}, share) for share in (0.0, 1e-3)]
    for options, share in fits:
        found = DiscriminativePCA(1, **options).fit(X, background=Y, sample_weight=weights)
        left = DiscriminativePCA(1, **options).fit(X[kept], background=Y)
        along = [np.abs(np.corrcoef(model.transform(X[kept])[:, 0], X[kept, 0])[0, 1]) for model in (found, left)]
        assert along[0] == pytest.approx(along[1], abs=0.02 + 5 * weight), share


@pytest.mark.filterwarnings("ignore:the background does not vary", "ignore:without a fold")
@pytest.mark.parametrize(("n", "width", "shrinkage"), [((60, 300), 500, 0.0), ((40, 40), 3000, 1e-4)])
def test_wide_rows_in_single_precision_have_the_ratio_of_double_precision(n, width, shrinkage, rng):
    X, Y = (rng.normal(size=(count, width)) for count in n)
    X[:, :3] *= 8.0
    double, single = (
        DiscriminativePCA(1, shrinkage=shrinkage).fit(X.astype(kind), background=Y.astype(kind)).ratio_
        for kind in (np.float64, np.float32)
    )
    np.testing.assert_allclose(single, double, rtol=1e-3)


def test_components_of_a_target_with_few_rows_are_those_of_scipy(rng):
    # The iterations have more vectors than the target has directions.
    X, Y = rng.normal(size=(58, 300)), rng.normal(size=(400, 300))
    values, _ = fold_vectors([pose(Sums.of([gather(X), gather(Y)]), [Problem(2, shrinkage=0.3)])], 2)[0]
    np.testing.assert_allclose(values, leading(covariance(X), shrunken(covariance(Y), 0.3), 2)[0], rtol=1e-7)


def test_a_large_background_without_weight_takes_no_digits():
    assert mixed([0.0, 1.0], [np.array([1e20]), np.array([1.0])]) == 1.0
