"""The answers of an exploration are those of a fit on the same rows, from sums that are kept."""

import numpy as np
import pytest

from standout import ContrastivePCA, DiscriminativePCA, KernelDiscriminativePCA, scan
from standout.explorer import Engine, Explored, Groups, History, RowSet
from standout.explorer._kept import ChosenRows, KeptSums
from standout.sources import InMemory, Source, Table

ALIKE = {"rtol": 1e-10, "atol": 1e-10}


def made(n_rows, n_columns, seed=0):
    """Rows of three groups far from zero; the first varies along a direction of its own."""
    rng = np.random.default_rng(seed)
    mixing = rng.normal(size=(n_columns, n_columns))
    X = rng.normal(size=(n_rows, n_columns)) @ mixing + 7.0
    X[: n_rows // 3] += 4.0 * rng.normal(size=(n_rows // 3, 1)) * rng.normal(size=n_columns)
    codes = np.minimum(np.arange(n_rows) * 3 // n_rows, 2)
    return X, Groups(("a", "b", "c"), codes)


def explored(X, groups, **known):
    return Engine(Explored([f"x{column}" for column in range(X.shape[1])], groups, X, **known))


def question(groups, *steps):
    return History(groups, steps).state.question


CHOSEN = [
    {"do": "choose", "side": "target", "groups": ["a"]},
    {"do": "choose", "side": "background", "groups": ["b", "c"]},
]
METHODS = {
    "dpca": (DiscriminativePCA, {"shrinkage": 0.3}),
    "auto": (DiscriminativePCA, {"shrinkage": "auto"}),
    "held-out": (DiscriminativePCA, {"shrinkage": "held-out"}),
    "clusters": (DiscriminativePCA, {"shrinkage": "clusters"}),
    "weights": (DiscriminativePCA, {"background_weights": (1.0, 3.0)}),
    "both ends": (DiscriminativePCA, {"side": "both"}),
    "few columns": (DiscriminativePCA, {"n_columns": 4}),
    "robust": (DiscriminativePCA, {"robust": "rows"}),
    "blocks": (DiscriminativePCA, {"blocks": 5}),
    "cpca": (ContrastivePCA, {"alpha": 2.0}),
    "cpca-auto": (ContrastivePCA, {"alpha": "auto"}),
    "kdpca": (KernelDiscriminativePCA, {"epsilon": 0.1, "gamma": 0.01}),
    "pca": (DiscriminativePCA, {}),
}


@pytest.mark.filterwarnings("ignore::standout._messages.FindingWarning")
@pytest.mark.parametrize("shape", [(360, 6), (120, 60), (60, 150)], ids=str)
@pytest.mark.parametrize("name", METHODS)
def test_answers_are_those_of_fit_on_the_same_rows(name, shape):
    X, groups = made(*shape)
    kind, parameters = METHODS[name]
    chosen = np.random.default_rng(1).random(len(X)) < 0.25
    steps = [*CHOSEN, {"do": "rows", "side": "target", "how": "add", "rows": RowSet.of(chosen)}]
    steps += [{"do": "leave", "rows": [0, len(X) - 1]}, {"do": "method", "method": name.split("-")[0]}]
    steps = [step for step in steps if step.get("method", "dpca") in ("dpca", "cpca", "kdpca", "pca")]
    steps += [{"do": "set", "name": key, "value": value} for key, value in parameters.items()]
    asked = question(groups, *steps)
    engine = explored(X, groups)
    answer = engine.answer(asked)
    target, *backgrounds = (X[rows.mask] for rows in asked.rows(groups))
    assert len(backgrounds) == (0 if name == "pca" else 2)
    fitted = kind(**parameters).fit(target, background=backgrounds or None)
    np.testing.assert_allclose(answer.model.eigenvalues_, fitted.eigenvalues_, **ALIKE)
    scale = np.abs(fitted.transform(X)).max()
    np.testing.assert_allclose(engine.scores(asked, np.arange(len(X))) / scale, fitted.transform(X) / scale, **ALIKE)
    if backgrounds:
        np.testing.assert_allclose(answer.ratios, fitted.held_out_ratio_, **ALIKE)
        np.testing.assert_allclose(answer.errors, fitted.held_out_ratio_error_, **ALIKE)
    if name in ("robust", "both ends"):
        # Correlations are those of weighted rows; and of a score that hardly varies, of rounding.
        return
    own = fitted.transform(target)
    expected = np.corrcoef(own.T, target.T)[:2, 2:]
    np.testing.assert_allclose(answer.correlations, expected, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_chunks_in_threads_give_the_sums_of_all_rows(dtype, monkeypatch):
    monkeypatch.setattr("standout.explorer._kept.CHUNK_BYTES", 4000)
    X, _ = made(700, 5)
    X = X.astype(dtype)
    numbers = np.flatnonzero(np.random.default_rng(0).random(700) < 0.8)
    kept = KeptSums(ChosenRows(X, numbers))
    against = KeptSums(ChosenRows(X, np.setdiff1d(np.arange(700), numbers)))
    model = DiscriminativePCA(2).fit(kept, background=against)
    expected = DiscriminativePCA(2).fit(X[numbers], background=np.delete(X, numbers, axis=0))
    tolerance = 1e-10 if dtype == np.float64 else 1e-5
    np.testing.assert_allclose(model.held_out_ratio_, expected.held_out_ratio_, rtol=tolerance)
    np.testing.assert_allclose(model.shrinkage_, expected.shrinkage_, rtol=tolerance)


class Counted(InMemory):
    """Counts how often its rows are summed up."""

    times = 0

    def summed(self, part):
        type(self).times += 1
        return super().summed(part)


def test_another_parameter_reads_nothing_again():
    X, _ = made(300, 5)
    Counted.times = 0
    target, background = KeptSums(Counted(X[:100])), KeptSums(Counted(X[100:]))
    for model in (
        DiscriminativePCA(2),
        DiscriminativePCA(2, shrinkage=0.2),
        DiscriminativePCA(1, held_out=None),
        ContrastivePCA(2, alpha=3.0),
    ):
        model.fit(target, background=background)
    assert Counted.times == 2


def test_what_was_asked_before_is_known():
    X, groups = made(300, 5)
    engine = explored(X, groups)
    asked = question(groups, *CHOSEN)
    first = engine.answer(asked, held_out=False)
    assert first.errors is None
    assert first.ratios is not None
    whole = engine.answer(asked)
    assert whole.errors is not None
    assert engine.answer(asked, held_out=False) is whole, "what is known in full is given in full"


def test_a_lasso_takes_rows_that_are_not_drawn(monkeypatch):
    monkeypatch.setattr("standout.explorer._engine.MOST_DRAWN", 50)
    X, groups = made(900, 5)
    engine = explored(X, groups)
    assert len(engine.drawn) == 50
    asked = question(groups, *CHOSEN)
    scores = engine.scores(asked, np.arange(900))
    low = np.median(scores[:, 0])
    box = [(low, -1e9), (1e9, -1e9), (1e9, 1e9), (low, 1e9)]
    assert np.array_equal(engine.lassoed(asked, (0, 1), box).mask, scores[:, 0] > low)


def test_data_larger_than_memory_are_compared_by_groups_after_one_reading(tmp_path):
    X, groups = made(600, 5)
    names = ("a", "b", "c")
    sources = []
    for number, name in enumerate(names):
        np.save(tmp_path / f"{name}.npy", X[groups.codes == number])
        sources.append(scan(tmp_path / f"{name}.npy"))
    data = Explored.of(sources, names, [f"x{column}" for column in range(5)])
    assert not data.in_memory
    engine = Engine(data)
    steps = [{"do": "choose", "side": "target", "groups": ["a"]}, {"do": "rest"}]
    engine.answer(question(data.groups, *steps))
    for name in names:
        (tmp_path / f"{name}.npy").unlink()
    # Every other contrast of the groups follows from the sums.
    asked = question(data.groups, *CHOSEN, {"do": "choose", "side": "target", "groups": ["a", "b"]})
    answer = engine.answer(asked)
    fitted = DiscriminativePCA(2).fit(X[groups.codes < 2], background=X[groups.codes == 2])
    np.testing.assert_allclose(answer.model.eigenvalues_, fitted.eigenvalues_, **ALIKE)
    assert answer.counts == [400, 200]
    single = engine.answer(question(data.groups, *CHOSEN))
    fitted = DiscriminativePCA(2).fit(X[groups.codes == 0], background=[X[groups.codes == 1], X[groups.codes == 2]])
    np.testing.assert_allclose(single.ratios, fitted.held_out_ratio_, **ALIKE)
    with pytest.raises(ValueError, match="only whole groups"):
        engine.answer(question(data.groups, *CHOSEN, {"do": "leave", "rows": [1]}))


def test_outlying_rows_are_found_and_few_rows_are_refused():
    X, groups = made(300, 5)
    X[17] += 500.0
    engine = explored(X, groups)
    asked = question(groups, *CHOSEN)
    assert engine.outlying(asked)[0][0] == 17
    assert 17 not in [row for row, _ in engine.outlying(question(groups, *CHOSEN, {"do": "leave", "rows": [17]}))]
    one = {"do": "rows", "side": "target", "how": "set", "rows": RowSet.numbered([5], 300)}
    with pytest.raises(ValueError, match="the target has 1 row"):
        engine.answer(question(groups, *CHOSEN, one))


def test_distributions_are_those_of_all_rows():
    X, groups = made(300, 5)
    found = explored(X, groups).distribution(question(groups, *CHOSEN), 2)
    assert np.allclose(np.sum(found["shares"], axis=1), 1.0)
    assert found["means"][0] == pytest.approx(X[:100, 2].mean())


def test_a_verdict_can_be_followed_and_ended():
    X, groups = made(120, 4)
    engine = explored(X, groups)
    asked = question(groups, *CHOSEN)
    told = []
    test = engine.verdict(asked, lambda *facts: told.append(facts))
    assert len(test.p_values) == 2
    assert test.p_values[0] <= 0.05
    assert told
    assert told[-1][1] <= told[-1][2]

    class EndedError(Exception):
        pass

    def end(*facts):
        raise EndedError

    with pytest.raises(EndedError):
        engine.verdict(asked, end)


def test_kernels_of_many_rows_have_landmarks_and_very_many_are_refused(monkeypatch):
    monkeypatch.setattr("standout.explorer._recipe.FEW_KERNEL_ROWS", 100)
    monkeypatch.setattr("standout.explorer._recipe.LANDMARKS", 50)
    X, groups = made(300, 4)
    engine = explored(X, groups)
    asked = question(
        groups, *CHOSEN, {"do": "method", "method": "kdpca"}, {"do": "set", "name": "gamma", "value": 0.01}
    )
    assert engine.answer(asked).model.approximation_ == "pivoted"
    monkeypatch.setattr("standout.explorer._engine.MOST_KERNEL_ROWS", 200)
    with pytest.raises(ValueError, match="300 rows"):
        engine.estimator(asked)


def test_tables_become_groups_with_their_ids_and_labels():
    first = Table(np.ones((3, 2)), ["a", "b"], ids=np.array(["u", "v", "w"], dtype=object))
    second = Table(np.zeros((2, 2)), ["a", "b"])
    data = Explored.of([first, second], ["one", "two"], ["a", "b"])
    assert data.groups.codes.tolist() == [0, 0, 0, 1, 1]
    assert data.ids.tolist() == ["u", "v", "w", "", ""]
    assert data.labels is None
    assert isinstance(KeptSums(InMemory(first.values)), Source)
