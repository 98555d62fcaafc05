"""A private release: what one row can change, which noise is added, what an attacker can tell, what is refused."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse, stats

import standout
from standout.io import Table
from standout.moments import gather
from standout.private import PrivateMoments, Spent, release

pytest.importorskip("opendp", reason="OpenDP is not installed")

from standout.private import _release
from standout.private._grid import (
    BESIDE,
    LAST,
    LONGEST,
    ON_DIAGONAL,
    ROW_SENSITIVITY,
    Grid,
    noise_for,
    packed,
    sum_up,
    unpacked,
    with_noise,
)

BUDGET = {"epsilon": 1.0, "delta": 1e-6}


def bounds(n_features, radius=2.0):
    return {"centre": np.zeros(n_features), "scale": np.ones(n_features), "radius": radius}


@pytest.fixture
def without_noise(monkeypatch):
    """Have releases give the exact sums."""
    monkeypatch.setattr(_release, "with_noise", lambda exact, scale: exact)
    # Noise is computed from its scale, and is not there.
    monkeypatch.setattr(_release, "warn_if_few", lambda moments, delta: None)


@pytest.fixture
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def distance(first, second):
    """Give the Euclidean distance of two vectors of whole numbers, squared, without rounding."""
    return sum((int(a) - int(b)) ** 2 for a, b in zip(first, second, strict=True))


# --- sensitivity ------------------------------------------------------------------------------------------------------

ANY_NUMBER = st.floats(allow_nan=False, allow_infinity=False, width=64)
ROWS = st.tuples(st.integers(1, 5), st.integers(1, 5)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=ANY_NUMBER | st.floats(-3.0, 3.0))
)


@settings(max_examples=300)
@given(rows=ROWS, radius=st.floats(1e-3, 1e3), scale=st.floats(1e-3, 1e3))
def test_no_row_changes_what_is_released_by_more_than_the_sensitivity(rows, radius, scale):
    grid = Grid(np.full(rows.shape[1], 0.3), np.full(rows.shape[1], scale), radius)
    whole = packed(sum_up(rows, grid).products)
    for left_out in range(len(rows)):
        others = packed(sum_up(np.delete(rows, left_out, axis=0), grid).products)
        assert distance(whole, others) <= ROW_SENSITIVITY**2


@settings(max_examples=200)
@given(rows=ROWS, radius=st.floats(1e-3, 1e3))
def test_no_row_on_the_grid_is_longer_than_its_limit(rows, radius):
    placed = Grid(np.zeros(rows.shape[1]), np.ones(rows.shape[1]), radius).place(rows)
    assert np.all(placed == np.rint(placed))
    assert all(sum(int(cell) ** 2 for cell in row) <= LONGEST**2 for row in placed)


@pytest.mark.parametrize("n_features", [1, 2, 7, 400])
def test_rows_at_the_limit_of_the_grid_stay_within_it(n_features, rng):
    rows = np.r_[rng.normal(size=(200, n_features)) * 1e3, np.eye(n_features) * 1e308, np.full((1, n_features), -1e308)]
    grid = Grid(np.zeros(n_features), np.ones(n_features), 1.0)
    lengths = (grid.place(rows) ** 2).sum(axis=1)
    assert lengths.max() <= LONGEST**2
    # The grid is used to the full, but for half a cell in every dimension.
    assert np.sqrt(lengths.min()) > LONGEST - 2 - np.sqrt(n_features)


@settings(max_examples=100)
@given(
    rows=arrays(np.float64, (7, 5), elements=ANY_NUMBER | st.floats(-3.0, 3.0)),
    others=st.lists(st.integers(0, 6), min_size=1, max_size=20),
    whitened=st.booleans(),
)
def test_what_becomes_of_a_row_does_not_depend_on_the_rows_beside_it(rows, others, whitened):
    scale = np.random.default_rng(3).normal(size=(5, 5)) if whitened else np.arange(1.0, 6.0)
    grid = Grid(np.full(5, 0.1), scale, 2.0)
    alone = np.concatenate([grid.place(row[np.newaxis]) for row in rows])
    np.testing.assert_array_equal(grid.place(rows), alone)
    np.testing.assert_array_equal(grid.place(np.asfortranarray(rows[others])), alone[others])
    assert (alone**2).sum(axis=1).max() <= LONGEST**2


def test_the_sensitivity_is_not_larger_than_it_must_be():
    grid = Grid(np.zeros(1), np.ones(1), 1.0)
    change = packed(sum_up(np.array([[1e9]]), grid).products)
    assert 0.99 * ROW_SENSITIVITY < math.sqrt(distance(change, np.zeros_like(change))) <= ROW_SENSITIVITY


@settings(max_examples=60)
@given(
    rows=arrays(np.float64, (12, 2), elements=st.floats(-3.0, 3.0)),
    persons=st.lists(st.integers(0, 3), min_size=12, max_size=12),
    max_rows=st.integers(1, 4),
)
def test_no_person_changes_what_is_released_by_more_than_their_share(rows, persons, max_rows):
    persons = np.array(persons)
    grid = Grid(np.zeros(2), np.ones(2), 1.0)

    def exact(some):
        dataset = standout.sources.open_dataset(rows[some], "the data", min_rows=0)
        return packed(_release._summed(dataset, grid, persons[some], max_rows).products)

    everyone = exact(np.full(12, True))
    for person in set(persons.tolist()):
        if np.all(persons == person):
            continue
        assert distance(everyone, exact(persons != person)) <= (max_rows * ROW_SENSITIVITY) ** 2


def test_rows_of_a_person_beyond_the_first_are_left_out(without_noise, rng):
    rows, persons = rng.normal(size=(8, 3)), ["a", "b", "a", "a", "b", "c", "a", "c"]
    some = release(rows, **bounds(3), **BUDGET, groups=persons, max_rows=2)
    first = release(rows[[0, 1, 2, 4, 5, 7]], **bounds(3), **BUDGET)
    np.testing.assert_array_equal(some.released, first.released)
    assert some.spent == (Spent(1.0, 1e-6, some.spent[0].rho, "person", 2),)
    # Twice the rows, twice the noise.
    assert some.noise_variance == pytest.approx(4 * first.noise_variance)


# --- noise ------------------------------------------------------------------------------------------------------------


def test_noise_is_a_discrete_gaussian():
    drawn = with_noise(np.zeros(20_000, dtype=np.int64), 3.0)
    numbers = np.arange(-8, 9)
    weights = np.exp(-(np.arange(-60, 61) ** 2) / 18.0)
    chances = weights / weights.sum()
    inner = chances[52:69]
    counts = np.array([*(np.sum(drawn == number) for number in numbers), np.sum(np.abs(drawn) > 8)])
    expected = len(drawn) * np.array([*inner, 1.0 - inner.sum()])
    # OpenDP draws from the system's own randomness, which has no seed: one run in 100,000 fails.
    assert stats.chisquare(counts, expected).pvalue > 1e-5


def test_released_sums_have_the_noise_that_is_stated(rng, quiet):
    rows = rng.normal(size=(50, 40))
    grid = Grid(np.zeros(40), np.ones(40), 2.0)
    exact = packed(sum_up(rows, grid).products)
    errors = np.concatenate([(release(rows, **bounds(40), **BUDGET).released - exact) for _ in range(4)])
    scale, _ = noise_for(ROW_SENSITIVITY, 1.0, 1e-6)
    relative = errors / scale
    # 3,444 entries: six standard errors of the mean and of the variance.
    assert abs(relative.mean()) < 6 / math.sqrt(len(relative))
    assert abs(relative.var() - 1.0) < 6 * math.sqrt(2 / len(relative))
    assert stats.kstest(relative, "norm").pvalue > 1e-6


def test_the_largest_variance_that_noise_makes_is_as_stated(rng, quiet):
    n_features = 60
    sums = release(np.zeros((5000, n_features)), **bounds(n_features), **BUDGET)
    matrix = unpacked(sums.released, n_features + 1)[:-1, :-1] * sums.grid.step**2 / sums.count
    assert np.abs(np.linalg.eigvalsh(matrix)).max() == pytest.approx(sums.noise, rel=0.25)


def test_the_budget_is_that_of_opendp_and_stronger_budgets_have_less_noise():
    scales = [noise_for(ROW_SENSITIVITY, epsilon, 1e-6)[0] for epsilon in (0.1, 1.0, 10.0)]
    assert scales == sorted(scales, reverse=True)
    # ε = ρ + 2 √(ρ log 1/δ) is a bound that OpenDP's conversion improves on.
    _, rho = noise_for(ROW_SENSITIVITY, 1.0, 1e-6)
    assert rho + 2 * math.sqrt(rho * math.log(1e6)) >= 1.0
    assert noise_for(ROW_SENSITIVITY, 1.0, 1e-6)[0] == pytest.approx(ROW_SENSITIVITY / math.sqrt(2 * rho), rel=1e-6)


def audited_epsilon(noise_times, monkeypatch, n_releases=3000, delta=1e-3):
    """Tell a dataset from one with another row as an attacker would, and give ε that is certain at 99.9 %."""
    real = noise_for(ROW_SENSITIVITY, 1.0, delta)
    monkeypatch.setattr(_release, "noise_for", lambda *_: (real[0] * noise_times, real[1]))
    rows = np.array([[0.2], [-0.1], [0.0]])
    more = np.r_[rows, [[5.0]]]
    grid = Grid(np.zeros(1), np.ones(1), 1.0)
    exact, exact_more = (packed(sum_up(part, grid).products) for part in (rows, more))
    direction = (exact_more - exact).astype(float)
    direction /= np.linalg.norm(direction)

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
    assert audited_epsilon(1.0, monkeypatch) < 1.0


def test_the_audit_finds_a_release_with_too_little_noise(monkeypatch, quiet):
    assert audited_epsilon(0.2, monkeypatch, n_releases=800) > 1.0


# --- every form of data -----------------------------------------------------------------------------------------------


def exact_of(rows, **more):
    return release(rows, **bounds(3), **BUDGET, **more).released


def test_every_form_of_a_dataset_gives_the_same_sums(without_noise, rng, tmp_path):
    rows = rng.normal(size=(1000, 3)) * [1.0, 2.0, 0.5]
    expected = exact_of(rows)
    persons = rng.integers(0, 300, size=1000)
    by_person = exact_of(rows, groups=persons, max_rows=2)
    frame = pd.DataFrame(rows, columns=["a", "b", "c"])
    frame.assign(person=[f"p{number}" for number in persons]).to_parquet(tmp_path / "rows.parquet")
    forms = {
        "frame": lambda: frame,
        "sparse": lambda: sparse.csr_array(rows),
        "Fortran order": lambda: np.asfortranarray(rows),
        "table": lambda: Table(rows, ["a", "b", "c"]),
        "batches": lambda: iter(np.array_split(rows, 7)),
        "scan": lambda: standout.scan(tmp_path / "rows.parquet", columns=["a", "b", "c"]),
    }
    for name, form in forms.items():
        np.testing.assert_array_equal(exact_of(form()), expected, err_msg=name)
        np.testing.assert_array_equal(exact_of(form(), groups=persons, max_rows=2), by_person, err_msg=name)
    own = standout.scan(tmp_path / "rows.parquet", columns=["a", "b", "c"], group_column="person")
    np.testing.assert_array_equal(exact_of(own, groups=True, max_rows=2), by_person)
    assert release(frame, **bounds(3), **BUDGET).columns == ("a", "b", "c")


def test_numbers_of_every_type_are_summed_alike(without_noise, rng):
    whole = rng.integers(-3, 4, size=(200, 3))
    for dtype in (np.int8, np.int64, np.float32):
        np.testing.assert_array_equal(exact_of(whole.astype(dtype)), exact_of(whole.astype(float)))


def test_exact_sums_are_not_written_to_a_checkpoint(without_noise, rng, tmp_path):
    np.save(tmp_path / "rows.npy", rng.normal(size=(300, 3)))
    (tmp_path / "kept").mkdir()
    with pytest.warns(UserWarning, match="checkpoint"):
        exact_of(standout.scan(tmp_path / "rows.npy", checkpoint=tmp_path / "kept"))
    assert list((tmp_path / "kept").iterdir()) == []


def test_dask_gives_the_same_sums(without_noise, rng):
    da = pytest.importorskip("dask.array", reason="Dask is not installed")
    rows, persons = rng.normal(size=(1000, 3)), rng.integers(0, 300, size=1000)
    blocks = da.from_array(rows, chunks=(130, -1))
    np.testing.assert_array_equal(exact_of(blocks), exact_of(rows))
    np.testing.assert_array_equal(
        exact_of(blocks, groups=persons, max_rows=3), exact_of(rows, groups=persons, max_rows=3)
    )


@settings(max_examples=40)
@given(order=st.permutations(range(6)), cut=st.integers(1, 5))
def test_places_in_any_order_and_any_grouping_give_bit_equal_sums(order, cut):
    rows = np.random.default_rng(1).normal(size=(60, 3)) * 1e3
    grid = Grid(np.zeros(3), np.ones(3), 1e3)
    places = [sum_up(part, grid) for part in np.array_split(rows, 6)]
    whole = sum_up(rows, grid)
    first = sum((places[k] for k in order[1:cut]), start=places[order[0]])
    second = sum((places[k] for k in order[cut + 1 :]), start=places[order[cut]])
    np.testing.assert_array_equal((first + second).products, whole.products)
    assert (first + second).count == 60


def test_merged_releases_add_noise_and_keep_what_each_place_has_spent(rng, quiet):
    first = release(rng.normal(size=(500, 3)), **bounds(3), **BUDGET)
    second = release(rng.normal(size=(700, 3)), **bounds(3), epsilon=3.0, delta=1e-7)
    both, other = first + second, second + first
    np.testing.assert_array_equal(both.released, other.released)
    assert both.noise_variance == first.noise_variance + second.noise_variance
    assert [one.epsilon for one in both.spent] == [1.0, 3.0]
    np.testing.assert_array_equal(both.released, first.released + second.released)


# --- what the moments say ---------------------------------------------------------------------------------------------


def test_without_noise_private_moments_are_those_of_the_rows(without_noise, rng):
    rows = rng.normal(size=(3000, 4)) * [1, 5, 0.1, 2] + [3, 0, 9, -1]
    given = {"centre": [3, 0, 9, 0], "scale": [1, 5, 0.1, 2], "radius": 30.0}
    sums, exact = release(rows, **given, **BUDGET), gather(rows)
    assert sums.count == 3000
    # A step of the grid is a thousandth of the unit.
    np.testing.assert_allclose(sums.mean, exact.mean, atol=1e-3)
    np.testing.assert_allclose(sums.covariance(), exact.covariance(), rtol=1e-3, atol=1e-3)
    filters = rng.normal(size=(4, 2))
    np.testing.assert_allclose(sums.variance(filters), exact.variance(filters), rtol=1e-3)
    np.testing.assert_allclose(sums.root().T @ sums.root(), sums.covariance(), atol=1e-12)
    assert sums.total_variance == pytest.approx(np.trace(sums.covariance()))


def test_sums_drowned_in_noise_are_still_moments_that_rows_can_have(rng, quiet):
    sums = release(rng.normal(size=(5, 30)), **bounds(30), epsilon=0.1, delta=1e-6)
    values = np.linalg.eigvalsh(sums.covariance())
    assert values.min() > -1e-9 * values.max()
    assert sums.count >= 2


def test_rows_beyond_the_radius_keep_their_direction(without_noise):
    rows = np.array([[30.0, 40.0], [-30.0, -40.0], [1e300, 0.0], [-1e300, 0.0]])
    sums = release(rows, **bounds(2, 1.0), **BUDGET)
    expected = (np.outer([0.6, 0.8], [0.6, 0.8]) + np.diag([1.0, 0.0])) / 2
    np.testing.assert_allclose(sums.covariance(), expected, atol=1e-3)


# --- files ------------------------------------------------------------------------------------------------------------


def test_a_file_brings_back_the_sums_and_holds_no_rows(rng, tmp_path, quiet):
    frame = pd.DataFrame(rng.normal(size=(400, 2)), columns=["weight", "länge"])
    sums = release(frame, **bounds(2), **BUDGET) + release(frame, **bounds(2), **BUDGET)
    sums.save(tmp_path / "a.sums")
    again = PrivateMoments.load(tmp_path / "a.sums")
    np.testing.assert_array_equal(again.released, sums.released)
    np.testing.assert_array_equal(again.covariance(), sums.covariance())
    assert repr(again) == repr(sums)
    assert "epsilon 1, delta 1e-06 for each row" in repr(sums)
    assert (again.spent, again.noise, again.columns) == (sums.spent, sums.noise, ("weight", "länge"))
    with np.load(tmp_path / "a.sums") as stored:
        assert {name: stored[name].size for name in stored} == {"about": 1, "released": 6, "centre": 2, "scale": 2}


@pytest.mark.parametrize(
    "damage",
    [
        lambda whole: whole[: len(whole) // 2],
        lambda whole: b"",
        lambda whole: b"no archive",
        lambda whole: whole.replace("sums 1".encode("utf-32-le"), "sums 9".encode("utf-32-le")),
    ],
)
def test_a_damaged_file_is_refused(damage, rng, tmp_path, quiet):
    release(rng.normal(size=(50, 2)), **bounds(2), **BUDGET).save(tmp_path / "a.sums")
    (tmp_path / "a.sums").write_bytes(damage((tmp_path / "a.sums").read_bytes()))
    with pytest.raises(ValueError, match=r"a\.sums"):
        PrivateMoments.load(tmp_path / "a.sums")
    with pytest.raises(FileNotFoundError):
        PrivateMoments.load(tmp_path / "b.sums")


def test_forged_parts_of_a_file_are_refused(rng, tmp_path, quiet):
    release(rng.normal(size=(50, 2)), **bounds(2), **BUDGET).save(tmp_path / "a.sums")
    with np.load(tmp_path / "a.sums") as stored:
        parts = dict(stored)
    for name, wrong in (
        ("released", parts["released"][:-1]),
        ("released", parts["released"].astype(float)),
        ("scale", -parts["scale"]),
        ("centre", parts["centre"] * np.nan),
        ("about", np.array("{}")),
    ):
        with open(tmp_path / "b.sums", "wb") as file:
            np.savez(file, **{**parts, name: wrong})
        with pytest.raises(ValueError, match="damaged"):
            PrivateMoments.load(tmp_path / "b.sums")
    with open(tmp_path / "b.sums", "wb") as file:
        np.savez_compressed(file, **parts)
    with pytest.raises(ValueError, match="damaged"):
        PrivateMoments.load(tmp_path / "b.sums")


def test_the_constants_of_the_grid_fit_together():
    # The bound of the sensitivity, and room for a million rows in the 53 bits of float64.
    assert 2 * ON_DIAGONAL**2 > BESIDE**2
    assert 2**20 * LONGEST**2 <= 2**53
    assert ROW_SENSITIVITY == ON_DIAGONAL * (LONGEST**2 + LAST**2)
