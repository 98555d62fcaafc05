"""A private release: the effect of one row, the noise, attacks, and refused input."""

import json
import math
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import linalg, sparse, stats

from standout import DiscriminativePCA
from standout.datasets import make_factor_model
from standout.moments import gather
from standout.private import PrivateMoments, Spent, from_ranges, release, required_rows, total_epsilon

pytest.importorskip("opendp", reason="OpenDP is not installed")

from standout.private import _release
from standout.private._release import noise_for, with_noise
from standout.private._sums import BESIDE, LAST, LONGEST, ON_DIAGONAL, ROW_SENSITIVITY, Grid, packed, sum_up, unpacked

BUDGET = {"epsilon": 1.0, "delta": 1e-6}
ROWS_20 = np.random.default_rng(0).normal(size=(20, 2))


def bounds(n_features, radius=2.0):
    return {"centre": np.zeros(n_features), "scale": np.ones(n_features), "radius": radius}


@pytest.fixture
def without_noise(monkeypatch):
    """Make releases return the exact sums."""
    monkeypatch.setattr(_release, "with_noise", lambda exact, scale: exact)
    monkeypatch.setattr(_release, "warn_if_few", lambda moments, delta: None)


@pytest.fixture
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def squared_distance(first, second):
    """Return the squared distance of two vectors of whole numbers, without rounding."""
    return sum((int(a) - int(b)) ** 2 for a, b in zip(first, second, strict=True))


# --- sensitivity ---

ANY_NUMBER = st.floats(allow_nan=False, allow_infinity=False, width=64)
ROWS = st.tuples(st.integers(1, 5), st.integers(1, 5)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=ANY_NUMBER | st.floats(-3.0, 3.0))
)


@settings(max_examples=200, derandomize=True, deadline=None)
@given(rows=ROWS, radius=st.floats(1e-3, 1e3), scale=st.floats(1e-3, 1e3))
def test_no_row_changes_the_released_sums_by_more_than_the_sensitivity(rows, radius, scale):
    grid = Grid(np.full(rows.shape[1], 0.3), np.full(rows.shape[1], scale), radius)
    assert all(sum(int(cell) ** 2 for cell in row) <= LONGEST**2 for row in grid.place(rows))
    whole = packed(sum_up(rows, grid))
    for left_out in range(len(rows)):
        others = packed(sum_up(np.delete(rows, left_out, axis=0), grid))
        assert squared_distance(whole, others) <= ROW_SENSITIVITY**2


@pytest.mark.parametrize("n_features", [1, 7, 400])
def test_rows_at_the_limit_of_the_grid_use_it_to_the_full_and_stay_within(n_features, rng):
    rows = np.r_[rng.normal(size=(200, n_features)) * 1e3, np.eye(n_features) * 1e308, np.full((1, n_features), -1e308)]
    lengths = (Grid(np.zeros(n_features), np.ones(n_features), 1.0).place(rows) ** 2).sum(axis=1)
    assert lengths.max() <= LONGEST**2
    assert np.sqrt(lengths.min()) > LONGEST - 2 - np.sqrt(n_features)


@settings(max_examples=60, derandomize=True, deadline=None)
@given(
    rows=arrays(np.float64, (7, 5), elements=ANY_NUMBER | st.floats(-3.0, 3.0)),
    others=st.lists(st.integers(0, 6), min_size=1, max_size=20),
    whitened=st.booleans(),
)
def test_the_place_of_a_row_does_not_depend_on_the_rows_beside_it(rows, others, whitened):
    scale = np.random.default_rng(3).normal(size=(5, 5)) if whitened else np.arange(1.0, 6.0)
    grid = Grid(np.full(5, 0.1), scale, 2.0)
    alone = np.concatenate([grid.place(row[np.newaxis]) for row in rows])
    np.testing.assert_array_equal(grid.place(np.asfortranarray(rows[others])), alone[others])


def test_the_constants_fit_together_and_the_sensitivity_is_reached():
    assert 2 * ON_DIAGONAL**2 > BESIDE**2
    assert 2**20 * LONGEST**2 <= 2**53
    assert ROW_SENSITIVITY == ON_DIAGONAL * (LONGEST**2 + LAST**2)
    change = packed(sum_up(np.array([[1e9]]), Grid(np.zeros(1), np.ones(1), 1.0)))
    assert 0.99 * ROW_SENSITIVITY < math.sqrt(squared_distance(change, 0 * change)) <= ROW_SENSITIVITY


def test_only_the_first_rows_of_a_person_are_used_and_noise_grows_with_their_number(without_noise, rng):
    rows, persons = rng.normal(size=(8, 3)), ["a", "b", "a", "a", "b", "c", "a", "c"]
    some = release(rows, **bounds(3), **BUDGET, groups=persons, max_rows=2)
    first = release(rows[[0, 1, 2, 4, 5, 7]], **bounds(3), **BUDGET)
    np.testing.assert_array_equal(some.released, first.released)
    assert some.spent == (Spent(1.0, 1e-6, some.spent[0].rho, "person", 2),)
    assert some.noise_variance == pytest.approx(4 * first.noise_variance)


# --- noise ---


def test_noise_is_a_discrete_gaussian():
    drawn = with_noise(np.zeros(20_000, dtype=np.int64), 3.0)
    weights = np.exp(-(np.arange(-60, 61) ** 2) / 18.0)
    inner = (weights / weights.sum())[52:69]
    counts = np.array([*(np.sum(drawn == number) for number in range(-8, 9)), np.sum(np.abs(drawn) > 8)])
    # OpenDP draws from the system's randomness, which has no seed: one run in 100,000 fails.
    assert stats.chisquare(counts, len(drawn) * np.array([*inner, 1.0 - inner.sum()])).pvalue > 1e-5


def test_released_sums_have_the_stated_noise(rng, quiet):
    rows = rng.normal(size=(50, 40))
    exact = packed(sum_up(rows, Grid(np.zeros(40), np.ones(40), 2.0)))
    errors = np.concatenate([(release(rows, **bounds(40), **BUDGET).released - exact) for _ in range(4)])
    relative = errors / noise_for(ROW_SENSITIVITY, 1.0, 1e-6)[0]
    # The tolerances are six standard errors of the mean and of the variance of 3,444 entries.
    assert abs(relative.mean()) < 6 / math.sqrt(len(relative))
    assert abs(relative.var() - 1.0) < 6 * math.sqrt(2 / len(relative))
    sums = release(np.zeros((5000, 60)), **bounds(60), **BUDGET)
    matrix = unpacked(sums.released, 61)[:-1, :-1] * sums.grid.step**2 / sums.count
    assert np.abs(np.linalg.eigvalsh(matrix)).max() == pytest.approx(sums.noise, rel=0.25)


def audited_epsilon(noise_times, monkeypatch, n_releases, delta=1e-3):
    """Distinguish a dataset from one with another row, as an attacker would. Return a lower bound of ε (99.9 %)."""
    real = noise_for(ROW_SENSITIVITY, 1.0, delta)
    monkeypatch.setattr(_release, "noise_for", lambda *_: (real[0] * noise_times, real[1]))
    rows = np.array([[0.2], [-0.1], [0.0]])
    more = np.r_[rows, [[5.0]]]
    grid = Grid(np.zeros(1), np.ones(1), 1.0)
    exact, exact_more = (packed(sum_up(part, grid)) for part in (rows, more))
    direction = (exact_more - exact) / np.linalg.norm(exact_more - exact)

    def scores(part):
        released = (release(part, **bounds(1, 1.0), epsilon=1.0, delta=delta).released for _ in range(n_releases))
        return np.array([(one - exact) @ direction for one in released])

    without, with_row = scores(rows), scores(more)
    best = 0.0
    for threshold in np.quantile(np.r_[without, with_row], np.linspace(0.05, 0.95, 19)):
        hits, false = np.sum(with_row > threshold), np.sum(without > threshold)
        least = stats.beta.ppf(0.0005, hits, n_releases - hits + 1) if hits else 0.0
        most = stats.beta.ppf(0.9995, false + 1, n_releases - false)
        if least > delta:
            best = max(best, math.log((least - delta) / most))
    return best


def test_an_attacker_cannot_tell_neighbouring_datasets_apart_beyond_epsilon(monkeypatch, quiet):
    assert audited_epsilon(1.0, monkeypatch, 2000) < 1.0


def test_the_audit_finds_a_release_with_too_little_noise(monkeypatch, quiet):
    assert audited_epsilon(0.2, monkeypatch, 800) > 1.0


# --- forms of data, places, files ---


def test_every_form_of_a_dataset_has_the_same_sums(without_noise, rng):
    rows, persons = rng.normal(size=(1000, 3)) * [1.0, 2.0, 0.5], rng.integers(0, 300, size=1000)
    frame = pd.DataFrame(rows, columns=["a", "b", "c"])
    forms = [lambda: frame, lambda: sparse.csr_array(rows), lambda: np.asfortranarray(rows)]
    forms += [lambda: iter(np.array_split(rows, 7))]
    for more in ({}, {"groups": persons, "max_rows": 2}):
        expected = release(rows, **bounds(3), **BUDGET, **more).released
        for form in forms:
            np.testing.assert_array_equal(release(form(), **bounds(3), **BUDGET, **more).released, expected)
    assert release(frame, **bounds(3), **BUDGET).columns == ("a", "b", "c")


def test_merged_places_add_sums_and_noise_and_keep_every_budget(rng, quiet):
    first = release(rng.normal(size=(500, 3)), **bounds(3), **BUDGET)
    second = release(rng.normal(size=(700, 3)), **bounds(3), epsilon=3.0, delta=1e-7)
    both = first + second
    np.testing.assert_array_equal(both.released, first.released + second.released)
    assert both.noise_variance == first.noise_variance + second.noise_variance
    assert [one.epsilon for one in both.spent] == [1.0, 3.0]
    assert 1.0 < total_epsilon((first + first).spent, delta=1e-6) < 2.0


def test_places_with_other_bounds_or_columns_and_exact_sums_are_not_added(quiet):
    sums = release(ROWS_20, **bounds(2), **BUDGET)
    for other in (
        release(ROWS_20, **bounds(2, 3.0), **BUDGET),
        release(pd.DataFrame(ROWS_20, columns=["a", "b"]), **bounds(2), **BUDGET),
    ):
        with pytest.raises(ValueError, match="different (radius|columns)"):
            sums + other
    for first, second in ((sums, gather(ROWS_20)), (gather(ROWS_20), sums)):
        with pytest.raises(TypeError, match="exact sums and private sums"):
            first + second


def test_without_noise_private_moments_are_those_of_the_rows(without_noise, rng):
    rows = rng.normal(size=(3000, 4)) * [1, 5, 0.1, 2] + [3, 0, 9, -1]
    sums = release(rows, centre=[3, 0, 9, 0], scale=[1, 5, 0.1, 2], radius=30.0, **BUDGET)
    exact, chosen = gather(rows), np.array([2, 0])
    assert sums.count == 3000
    # A step of the grid is a thousandth of the unit.
    np.testing.assert_allclose(sums.mean, exact.mean, atol=1e-3)
    np.testing.assert_allclose(sums.covariance(), exact.covariance(), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(sums.taken(chosen).covariance(), sums.covariance()[np.ix_(chosen, chosen)])
    sphere = np.diag([1, 25, 0.01, 4]) * np.mean(sums.variances / [1, 25, 0.01, 4])
    np.testing.assert_allclose(sums.spherical.covariance(), sphere, rtol=1e-9)


def test_sums_drowned_in_noise_are_still_moments_that_rows_can_have(rng, quiet):
    sums = release(rng.normal(size=(5, 30)), **bounds(30), epsilon=0.1, delta=1e-6)
    values = np.linalg.eigvalsh(sums.covariance())
    assert values.min() > -1e-9 * values.max()
    assert sums.count >= 2


def test_a_file_brings_back_the_sums(rng, tmp_path, quiet):
    frame = pd.DataFrame(rng.normal(size=(400, 2)), columns=["weight", "länge"])
    sums = release(frame, **bounds(2), **BUDGET) + release(frame, **bounds(2), **BUDGET)
    sums.save(tmp_path / "a.sums")
    again = PrivateMoments.load(tmp_path / "a.sums")
    np.testing.assert_array_equal(again.covariance(), sums.covariance())
    assert repr(again) == repr(sums)
    assert (again.spent, again.noise, again.columns) == (sums.spent, sums.noise, ("weight", "länge"))
    sizes = {name: np.size(part) for name, part in json.loads((tmp_path / "a.sums").read_bytes()).items()}
    numbers = {"released": 6, "centre": 2, "scale": 2, "radius": 1, "noise_variance": 1}
    assert sizes == {**numbers, "format": 1, "grid": 2, "columns": 2, "spent": 2}


def test_forged_and_damaged_files_are_refused_with_one_error(rng, tmp_path, quiet):
    release(rng.normal(size=(50, 2)), **bounds(2), **BUDGET).save(tmp_path / "a.sums")
    whole = (tmp_path / "a.sums").read_bytes()
    about = json.loads(whole)
    spent = about["spent"][0]
    forged = [{"released": about["released"][:-1]}, {"released": [float(one) for one in about["released"]]}]
    forged += [{"released": [10**30] * 6}, {"released": None}, {"scale": [-1.0, 1.0]}, {"centre": [np.nan, 0.0]}]
    forged += [{"radius": 1e308}, {"radius": None}, {"columns": [1, 2]}, {"noise_variance": -1.0}, {"format": "other"}]
    forged += [{"spent": []}, {"spent": [{**spent, "max_rows": math.inf}]}]
    forged += [{"spent": [{**spent, "epsilon": "{x.__class__}"}]}]
    contents = [json.dumps({**about, **change}).encode() for change in forged]
    contents += [whole[: len(whole) // 2], b"", b"no sums", b"{}", b"[" * 10**6]
    for content in contents:
        (tmp_path / "b.sums").write_bytes(content)
        with pytest.raises(ValueError, match="has no private sums, or is damaged"):
            PrivateMoments.load(tmp_path / "b.sums")
    with pytest.raises(FileNotFoundError):
        PrivateMoments.load(tmp_path / "c.sums")


# --- bad input and plans ---

WRONG = [
    ({"centre": ["a", "b"]}, "from_ranges"),
    *(({"epsilon": value}, "epsilon") for value in (None, 0.0, -1.0, 1e9, "1", np.nan, True)),
    *(({"delta": value}, "delta") for value in (0.0, 1.0, 0.5)),
    *(({"radius": value}, "radius") for value in (0.0, np.inf, 1e308, 1e-308, 10**400, "1")),
    *(({"scale": value}, "scale") for value in ([1.0, 0.0], [1.0], ["a", "b"], np.ones((2, 2)), [1e308, 1.0])),
    *(({"scale": value}, "scale") for value in (np.full((2, 2), np.nan), [np.nan, 1.0], [])),
    *(({"centre": value}, "centre") for value in ([0.0, np.nan], [0.0, 1e300])),
    ({"centre": [0.0] * 3, "scale": [1.0] * 3}, "columns"),
    ({"max_rows": 0}, "max_rows"),
    ({"max_rows": 3}, "groups"),
    *(({"groups": value}, "groups") for value in (["a"], [None] * 20, True)),
    ({"rows": np.full((3, 2), np.nan)}, "NaN"),
    ({"rows": np.zeros((0, 2))}, "row|sample"),
    ({"rows": lambda: iter([np.ones((3, 2)), np.ones((3, 3))])}, "columns|features"),
    ({"rows": lambda: iter([np.ones((3, 2)), np.full((3, 2), np.nan)])}, "NaN"),
    ({"rows": lambda: iter([np.ones((3, 2)), np.ones((3, 2))]), "groups": list("abcde")}, "groups"),
]


@pytest.mark.parametrize(("change", "words"), WRONG)
def test_bad_input_is_refused_before_noise_is_drawn(change, words, monkeypatch):
    def spent(*_):
        raise AssertionError("noise was drawn")

    monkeypatch.setattr(_release, "with_noise", spent)
    given = {"rows": ROWS_20, **bounds(2), **BUDGET, **change}
    rows = given.pop("rows")
    with pytest.raises((ValueError, TypeError), match=words) as caught:
        release(rows() if callable(rows) else rows, **given)
    assert type(caught.value).__module__ == "standout._messages"


@pytest.mark.parametrize(
    ("ranges", "columns", "words"),
    [
        ({"age": (0, 1)}, ["age", "iron"], "iron"),
        ([(1, 0)], None, "lower"),
        ([(0, np.inf)], None, "finite"),
        ([(0, 1, 2)], None, "shape"),
        ([], None, "shape"),
        ([("a", "b")], None, "numbers"),
        ({"age": (0, 0)}, ["age"], "age"),
    ],
)
def test_ranges_that_bound_nothing_are_refused(ranges, columns, words):
    with pytest.raises((ValueError, TypeError), match=words):
        from_ranges(ranges, columns=columns)


def test_more_columns_a_smaller_share_and_less_budget_need_more_rows():
    def rows(n_features=50, epsilon=1.0, **more):
        return required_rows(n_features, epsilon, 1e-6, **more)

    assert rows() < rows(n_features=200) < rows(n_features=800)
    assert rows(epsilon=10.0) < rows(epsilon=1.0) < rows(epsilon=0.1)
    assert rows(share=0.1) < rows(share=0.01)
    assert rows(max_rows=10) == pytest.approx(10 * rows(), rel=0.1)


def test_a_release_of_few_rows_warns_and_one_of_enough_rows_does_not(rng):
    with pytest.warns(UserWarning, match="noise drowns every signal"):
        release(rng.normal(size=(100, 20)), **bounds(20), **BUDGET)
    release(rng.normal(size=(2 * required_rows(20, **BUDGET, share=0.1), 20)), **bounds(20), **BUDGET)
    with pytest.warns(UserWarning, match="delta"):
        release(rng.normal(size=(20_000, 2)), **bounds(2), epsilon=1.0, delta=1e-3)


# --- fits ---


def test_a_fit_of_private_sums_finds_the_components_of_the_rows_and_warns_if_noise_drowns_them(quiet):
    data = make_factor_model(20_000, 20_000, 20, n_shared=5, n_specific=2)
    limits = {"centre": np.zeros(20), "scale": np.full(20, 10.0), "radius": 2.0}
    sums = [release(rows, **limits, epsilon=2.0, delta=1e-6) for rows in (data.target, *data.backgrounds)]
    model = DiscriminativePCA.from_moments(sums[0], sums[1:], n_components=2)
    assert np.degrees(linalg.subspace_angles(model.components_.T, data.directions.T)).max() < 20
    few = [release(rows[:200], **limits, **BUDGET) for rows in (data.target, *data.backgrounds)]
    with pytest.warns(UserWarning, match="noise of the private sums drowns"):
        DiscriminativePCA.from_moments(few[0], few[1:], n_components=2)


def test_units_of_the_columns_do_not_matter_if_the_scale_follows_them(without_noise):
    data = make_factor_model(4000, 4000, 8, n_shared=3)
    units = np.geomspace(1e-3, 1e3, 8)
    found = []
    for factors in (np.ones(8), units):
        limits = {"centre": np.zeros(8), "scale": 10.0 * factors, "radius": 3.0}
        sums = [release(rows * factors, **limits, **BUDGET) for rows in (data.target, *data.backgrounds)]
        found.append(DiscriminativePCA.from_moments(sums[0], sums[1:]).eigenvalues_)
        assert sums[1].shrinkage > 0.0
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6)


@pytest.mark.parametrize("shrinkage", [0.0, 0.3, 1.0])
def test_a_given_shrinkage_of_private_sums_is_that_of_the_rows(without_noise, quiet, shrinkage):
    data = make_factor_model(4000, 4000, 8, n_shared=3)
    limits = {"centre": np.zeros(8), "scale": np.full(8, 20.0), "radius": 3.0}
    sums = [release(rows, **limits, **BUDGET) for rows in (data.target, *data.backgrounds)]
    model = DiscriminativePCA.from_moments(sums[0], sums[1:], shrinkage=shrinkage)
    rows = DiscriminativePCA(shrinkage=shrinkage, cv=None).fit(data.target, background=data.backgrounds)
    np.testing.assert_allclose(model.eigenvalues_, rows.eigenvalues_, rtol=1e-3)


def test_bounds_of_a_private_background_make_its_variances_similar(rng, quiet):
    rows = rng.normal(size=(20_000, 10)) * np.geomspace(0.1, 1.0, 10)
    limits = release(rows, **bounds(10, 3.0), epsilon=4.0, delta=1e-6).whitening()
    white = np.linalg.solve(limits["scale"], (rows - limits["centre"]).T)
    values = np.linalg.eigvalsh(np.cov(white))
    assert values.max() / values.min() < 5
