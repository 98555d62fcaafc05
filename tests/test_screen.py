"""A screen of many labels against shared controls: what it measures, its level, its power, and bad input."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.stats import chi2, false_discovery_control, gamma, kstest, pearson3

import standout
from standout._messages import CautionWarning, InvalidTypeError, InvalidValueError
from standout.screening import plot_screen, screen
from standout.screening._null import Null, Side, combined, moments_of_sum

rng_of = np.random.default_rng


def labelled(n_controls, *sizes):
    return np.repeat(["control", *(f"L{number}" for number in range(len(sizes)))], [n_controls, *sizes])


def null_rows(kind, n_rows, n_columns, rng):
    rows = rng.standard_normal((n_rows, 3)) @ rng_of(1).standard_normal((3, n_columns))
    if kind == "counts":
        return np.log1p(rng.poisson(np.exp(0.4 * rows)))
    rows += rng.standard_normal((n_rows, n_columns))
    if kind == "lognormal":
        return np.exp(0.5 * rows)
    return rows / (np.sqrt(rng.chisquare(5, (n_rows, 1)) / 5) if kind == "t5" else 1)


def null_p_values(n_screens, make):
    tables = []
    for seed in range(n_screens):
        rows, labels, groups = make(rng_of(seed))
        tables.append(screen(rows, labels, control="control", groups=groups, n_draws=80, random_state=seed).table)
    return tables


def share_of_screens(tables):
    return np.mean([(table["q_value"] < 0.05).any() for table in tables])


# --- what is measured -------------------------------------------------------------------------------------------------


def test_shift_and_spread_are_those_of_the_population():
    rng, labels = rng_of(0), labelled(4000, 2000, 2000, 2000)
    rows = rng.standard_normal((len(labels), 8))
    rows[labels == "L0", 2] += 0.8
    rows[labels == "L1", 5] *= 2
    table = screen(rows, labels, control="control").table
    moved = rows[labels == "L0"].mean(0) - rows[labels == "control"].mean(0)
    # Columns are independent with variance 1. Standard errors: 0.003 of a shift of 0, 4 % of a variance ratio.
    assert table["shift"]["L0"] == pytest.approx(moved @ moved - 8 * (1 / 2000 + 1 / 4000), rel=0.03)
    assert table["shift"][["L1", "L2"]].to_numpy() == pytest.approx(0, abs=0.015)
    assert table["spread"]["L1"] == pytest.approx(4, rel=0.12)
    assert table["spread"][["L0", "L2"]].to_numpy() == pytest.approx(1, rel=0.12)
    assert table["ratio"].to_dict() == pytest.approx({"L0": 1 + moved @ moved, "L1": 4, "L2": 1}, rel=0.12)
    expected = table["spread"].where(table.index == "L1", 1 + table["shift"])
    assert (abs(table["ratio"] - expected) < 4 * table["ratio_error"]).all()
    assert table["verdict"].to_dict() == {"L0": "stands out", "L1": "stands out", "L2": "no evidence"}


def test_shift_is_zero_on_average_for_few_rows_and_many_columns():
    labels = labelled(60, *[5] * 40)
    shifts = screen(rng_of(3).standard_normal((len(labels), 100)), labels, control="control").table["shift"]
    # All labels share the squared error of the control mean: 100 / 60 before it is subtracted, +- 0.3.
    assert abs(shifts.mean()) < 1


def test_columns_that_lead_have_their_sign():
    rng, labels = rng_of(0), labelled(400, 100, 100)
    rows = pd.DataFrame(rng.standard_normal((len(labels), 6)), columns=list("abcdef"))
    rows.loc[labels == "L0", "b"] -= 2
    rows.loc[labels == "L0", "e"] += 1
    rows.loc[labels == "L1", ["c", "d"]] += 3 * rng.standard_normal((100, 1)) * [1, -1]
    table = screen(rows, labels, control="control", n_columns=2).table
    assert table["shift_columns"]["L0"] == "-b +e"
    assert table["spread_columns"]["L1"] in ("+c -d", "+d -c")


def test_whitening_in_the_span_of_few_rows_is_that_of_the_full_covariance():
    rows = rng_of(0).standard_normal((12, 30)) * np.linspace(1, 3, 30)
    centred = rows - rows.mean(0)
    covariance = 0.7 * np.cov(centred.T) + 0.3 * np.trace(np.cov(centred.T)) / 30 * np.eye(30)
    new = rng_of(1).standard_normal((4, 30))
    whitened = Side(rows, rows, np.arange(12), False, 0.3).whitened(new)
    np.testing.assert_allclose(whitened @ whitened.T, new @ np.linalg.solve(covariance, new.T), rtol=1e-9)


def test_agreement_is_the_share_of_groups_that_point_the_same_way():
    rng, labels = rng_of(0), labelled(400, 200, 200)
    rows = rng.standard_normal((len(labels), 5))
    places = np.arange(len(labels)) % np.where(labels == "control", 20, 4)
    groups = np.array([f"{label}{place}" for label, place in zip(labels, places, strict=True)])
    rows[labels == "L0", 0] += 2
    rows[labels == "L1", 0] += 2
    rows[groups == "L13", 0] -= 4
    agreement = screen(rows, labels, control="control", groups=groups).table["agreement"]
    assert agreement.to_dict() == {"L0": 1.0, "L1": 0.75}


# --- level and power --------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("kind", ["gauss", "t5", "counts", "lognormal"])
@pytest.mark.parametrize(("n_controls", "n_columns"), [(300, 10), (80, 60)])
def test_p_values_are_uniform_for_any_kind_of_rows(kind, n_controls, n_columns):
    check_null(kind, n_controls, n_columns, 40)


@pytest.mark.parametrize(("kind", "n_controls", "n_columns"), [("t5", 300, 10), ("counts", 80, 60)])
def test_p_values_are_uniform_without_an_effect(kind, n_controls, n_columns):
    check_null(kind, n_controls, n_columns, 15)


def check_null(kind, n_controls, n_columns, n_screens):
    labels = labelled(n_controls, 20, 20, 150)
    tables = null_p_values(n_screens, lambda rng: (null_rows(kind, len(labels), n_columns, rng), labels, None))
    p = np.concatenate([table["p_value"] for table in tables])
    assert kstest(p, "uniform").pvalue > 0.005
    # The expected share of screens is at most 7 %. Add three standard errors.
    assert share_of_screens(tables) <= 0.07 + 3 * np.sqrt(0.07 * 0.93 / n_screens)


def subjects_of(labels, level, named=True):
    """Return a function that draws rows of subjects. Each subject has 20 rows, and its own level in every column."""
    groups = np.array([f"{label}{number // 20}" for number, label in enumerate(labels)])
    codes = np.unique(groups, return_inverse=True)[1]

    def make(rng):
        rows = rng.standard_normal((len(labels), 15)) + level * rng.standard_normal((codes.max() + 1, 15))[codes]
        return rows, labels, groups if named else None

    return make


@pytest.mark.long
def test_differences_between_subjects_are_not_effects():
    labels = labelled(600, 60, 60, 60, 60)
    assert share_of_screens(null_p_values(25, subjects_of(labels, 0.6))) <= 0.2
    assert share_of_screens(null_p_values(4, subjects_of(labels, 0.6, named=False))) == 1


def test_eight_control_subjects_are_enough_to_hold_the_level():
    assert share_of_screens(null_p_values(12, subjects_of(labelled(160, 80, 80), 0.4))) <= 0.3


def test_rows_are_compared_with_the_controls_of_their_group():
    rng, labels = rng_of(0), labelled(400, 100, 100)
    batch = np.where(labels == "control", rng.integers(0, 2, 600), rng.random(600) < 0.9).astype(int)
    rows = rng.standard_normal((600, 8)) + 2.0 * batch[:, None]
    rows[labels == "L1", 3] += 1
    found = screen(rows, labels, control="control", groups=batch)
    assert found.units == "within"
    assert found.table["verdict"].to_dict() == {"L1": "stands out", "L0": "no evidence"}
    assert screen(rows, labels, control="control").table["verdict"]["L0"] == "stands out"


def test_one_outlying_row_does_not_make_a_label_stand_out():
    rng, labels = rng_of(1), labelled(300, 60)
    rows = rng.standard_normal((360, 10))
    rows[-1] = 100
    assert screen(rows, labels, control="control").table["p_value"].iloc[0] > 0.05


def test_tail_beyond_the_draws_is_that_of_the_exact_law():
    rng = rng_of(0)
    rows = rng.standard_normal((4000, 20))
    side = Side(rows[:2000], rows[2000:], np.arange(2000), False, 1.0)
    sizes = np.array([50, 100])
    null = Null(sizes, [side.draws(sizes, 2000, rng)])
    for p in (1e-4, 1e-6, 1e-9):
        # The scaled shift of independent normal columns is chi-squared, minus its mean. Other statistics are missing.
        scaled = np.array([chi2.isf(p, 20) - 20, *[np.nan] * 3])
        found = np.exp(3 - null.logarithms(70, scaled)[1].sum())
        assert abs(np.log(found / p)) < 0.12 * abs(np.log(p))


def test_the_law_of_the_sum_is_that_of_dependent_statistics():
    rng = rng_of(0)
    rows = rng.standard_normal((1200, 20)) * np.linspace(1, 3, 20)
    side = Side(rows[:600], rows[600:], np.arange(600), False, 0.5)
    sizes = np.array([60])
    null = Null(sizes, [side.draws(sizes, 400, rng)])
    p = [null.test(60, scaled)[1] for scaled in side.draws(sizes, 400, rng)[0][::2]]
    # 200 other draws of the same rows: three standard errors of a share of 5 % are 4.6 %.
    assert kstest(p, "uniform").pvalue > 0.005
    assert np.mean(np.array(p) < 0.05) < 0.1


def test_the_tail_of_the_sum_is_not_too_short_for_statistics_some_of_which_are_equal():
    # The sum has one exponential variable twice, and two others. A gamma law with its moments has a shorter tail.
    draws = rng_of(0).exponential(size=(4000, 3))[:, [0, 0, 1, 2]]
    mean, deviation, skewness = moments_of_sum(draws)
    assert skewness == pytest.approx(20 / 6**1.5, rel=0.05)
    for total in (12, 20):
        exact = 4 * np.exp(-total / 2) - (total + 3) * np.exp(-total)
        assert abs(np.log(pearson3.sf((total - mean) / deviation, skewness) / exact)) < 0.25
    assert gamma.sf(20, (mean / deviation) ** 2, scale=deviation**2 / mean) < 0.6 * exact


def test_detectable_shift_is_found_four_times_in_five():
    labels = labelled(800, *[60] * 40)
    rows = rng_of(0).standard_normal((len(labels), 20))
    limit = screen(rows, labels, control="control").table["detectable"].iloc[0]
    rows[labels != "control", 0] += np.sqrt(limit)
    table = screen(rows, labels, control="control", level=0.05 / 40).table
    # The p-value merges the shift with the spread and the shift without whitening, which costs or adds some power.
    assert 0.5 <= (table["p_value"] < 0.05 / 40).mean() <= 0.98


def test_few_rows_are_too_few_to_say_and_many_are_no_evidence():
    labels = labelled(1000, 6, 400, 1)
    table = screen(rng_of(0).standard_normal((len(labels), 30)), labels, control="control").table
    assert table["verdict"].to_dict() == {"L0": "too few rows to say", "L1": "no evidence", "L2": "too few rows to say"}
    assert table["note"]["L2"] == "one row"
    assert np.isnan(table["p_value"]["L2"])


def test_cauchy_combination():
    assert combined(np.array([0.03, 0.03])) == pytest.approx(0.03)
    assert combined(np.array([1e-200, 0.5])) == pytest.approx(2e-200)
    p = rng_of(0).random((4000, 2))
    assert kstest([combined(pair) for pair in p], "uniform").statistic < 0.03


# --- data -------------------------------------------------------------------------------------------------------------


def test_frames_sparse_rows_files_and_dask_give_the_table_of_the_array(tmp_path):
    dask = pytest.importorskip("dask.array")
    rng, labels = rng_of(0), labelled(200, 50, 20)
    rows = rng.poisson(1.0, (len(labels), 6)).astype(float)
    table = screen(rows, labels, control="control").table
    frame = pd.DataFrame(rows, columns=[f"column {number}" for number in range(6)])
    frame.to_parquet(tmp_path / "rows.parquet")
    split = iter([rows[:100], rows[100:]])
    scanned = standout.scan(tmp_path / "rows.parquet")
    for data in (frame, sparse.csr_array(rows), dask.from_array(rows, chunks=(64, 6)), split, scanned):
        pd.testing.assert_frame_equal(screen(data, labels, control="control").table, table, rtol=1e-8)


def test_controls_in_another_dataset_are_those_of_a_label():
    rng, labels = rng_of(0), labelled(200, 50, 20)
    rows, own = rng.standard_normal((len(labels), 6)), labels == "control"
    groups = rng.integers(0, 3, len(labels))
    table = screen(rows, labels, control="control", groups=groups).table
    options = {"background": rows[own], "groups": groups[~own], "background_groups": groups[own]}
    pd.testing.assert_frame_equal(screen(rows[~own], labels[~own], **options).table, table)


def test_labels_may_be_whole_numbers_and_missing():
    rng = rng_of(0)
    rows, labels = rng.standard_normal((200, 3)), np.repeat([0.0, 1.0, 2.0, np.nan], 50)
    assert set(screen(rows, labels, control="0.0").table.index) == {1, 2}
    words = pd.Series(labels).map({0: "a", 1: "b", 2: ""}).astype("category")
    assert list(screen(rows, words, control="a").table.index) == ["b"]


def test_a_large_label_is_sampled_and_labels_are_read_in_blocks(monkeypatch):
    monkeypatch.setattr("standout.screening._screen.MOST_ROWS", 80)
    monkeypatch.setattr("standout.screening._screen.BLOCK_NUMBERS", 100)
    rng, labels = rng_of(0), labelled(60, 100, 30, 30)
    rows = rng.standard_normal((len(labels), 3))
    rows[labels == "L2"] += 3
    table = screen(rows, labels, control="control").table
    assert table["rows"].to_dict() == {"L0": 100, "L1": 30, "L2": 30}
    assert table["note"]["L0"] == "a random sample of 80 rows"
    assert table.index[0] == "L2"


BAD = {
    "unknown control": ({"control": "none"}, InvalidValueError, "control='none' is not among the labels"),
    "no controls": ({"control": None}, InvalidValueError, "There are no controls"),
    "controls twice": ({"background": np.ones((30, 3))}, InvalidValueError, "Controls are given twice"),
    "few controls": ({"control": "few"}, InvalidValueError, "There are 10 control rows"),
    "numbers": ({"labels": np.linspace(0, 1, 110)}, InvalidTypeError, "labels has fractions, which cannot be names"),
    "few labels": ({"labels": ["a"] * 9}, InvalidValueError, "labels has shape"),
    "one label": ({"labels": ["control"] * 110}, InvalidValueError, "labels has no label but the controls"),
    "missing group": ({"groups": [None] + ["a"] * 109}, InvalidValueError, "groups names no subject for row 0"),
    "shrinkage": ({"shrinkage": 0}, InvalidValueError, "shrinkage=0 is not in"),
    "draws": ({"n_draws": 3}, InvalidValueError, "n_draws=3 is not in"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_an_error_that_names_the_parameter(case):
    options, error, text = BAD[case]
    labels = np.repeat(["control", "A", "few"], [50, 50, 10])
    rows = rng_of(0).standard_normal((110, 3))
    with pytest.raises(error) as found:
        screen(rows, **{"labels": labels, "control": "control", **options})
    assert str(found.value).startswith(text)


def test_subjects_confounded_with_labels_are_said():
    rng, labels = rng_of(0), labelled(200, 50, 50)
    rows = rng.standard_normal((len(labels), 3))
    said = "1 of the groups have controls, and no other label: rows are treated as independent"
    with pytest.warns(CautionWarning, match=said):
        screen(rows, labels, control="control", groups=labels)
    groups = np.where(labels == "control", [f"c{number % 10}" for number in range(300)], labels)
    table = screen(rows, labels, control="control", groups=groups).table
    assert set(table["note"]) == {"all rows are in one group"}
    assert set(table["verdict"]) == {"too few rows to say"}
    batch = np.where(labels == "L1", "new", "old")
    table = screen(rows, labels, control="control", groups=batch).table
    assert table["note"]["L1"] == "50 rows are in groups without controls"
    assert table["verdict"]["L1"] == "too few rows to say"


# --- surfaces ---------------------------------------------------------------------------------------------------------


def test_the_table_is_written_shown_and_drawn(tmp_path):
    labels = np.repeat(["control", "<b>", "B"], [100, 50, 50])
    rows = rng_of(0).standard_normal((200, 4))
    rows[100:150] += 1
    found = standout.screen(rows, labels, control="control")
    found.table.to_csv(tmp_path / "screen.csv")
    assert list(pd.read_csv(tmp_path / "screen.csv", index_col="label").index) == ["<b>", "B"]
    assert str(found).startswith("1 of 2 labels stand out against 100 control rows (no evidence: 1).")
    ax = plot_screen(found)
    assert [text.get_text() for text in ax.get_yticklabels()] == ["<b>", "B"]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["stands out", "no evidence"]
    heat = ax.figure.axes[1]
    columns = [f"column {number}" for number in range(4)]
    assert {text.get_text() for text in heat.get_xticklabels()} == set(columns)
    moved = (rows[100:150].mean(0) - rows[:100].mean(0)) / rows[:100].std(0, ddof=1)
    assert found.effects.loc["<b>", columns].to_numpy() == pytest.approx(moved, rel=0.02)
    assert plot_screen(found.table, ax=ax.figure.subplots()) is not ax


# --- real data --------------------------------------------------------------------------------------------------------


def expression(path):
    anndata = pytest.importorskip("anndata")
    cells = anndata.read_h5ad(path)
    counts = cells.X.toarray().astype(float)
    totals = counts.sum(1, keepdims=True)
    rows = pd.DataFrame(np.log1p(counts * np.median(totals) / totals), columns=list(cells.var_names))
    return rows, cells.obs.astype(str)


def test_known_knock_outs_lead_a_crispr_screen(data_dir):
    rows, cells = expression(data_dir / "eccite_seq.h5ad")
    for groups in (None, cells["grna"]):
        table = screen(rows, cells["target"], control="non-targeting", groups=groups).table
        assert {"STAT1", "JAK2", "IFNGR1", "IFNGR2", "IRF1", "SMAD4"} <= set(table.index[:8])
        assert "no evidence" not in set(table["verdict"][["MYC", "SPI1"]])
        for name in ("STAT3", "NFKBIA", "UBE2L6", "CMTM6"):
            assert table["shift_columns"][name].startswith(f"-{name}")


def test_control_guides_do_not_stand_out_within_replicates(data_dir):
    rows, cells = expression(data_dir / "eccite_seq.h5ad")
    own = (cells["target"] == "non-targeting").to_numpy()
    rows, guides, replicates = rows[own], cells["grna"][own].to_numpy(), cells["bio_rep"][own]
    # Guides have between 9 and 60 % of their cells in the first replicate. Without `groups`, this is a difference.
    tables = [screen(rows, guides == guide, control=False, groups=replicates).table for guide in np.unique(guides)]
    p = [table["p_value"].iloc[0] for table in tables]
    assert len(p) == 9
    assert (false_discovery_control(p) < 0.05).sum() <= 1


def test_interferon_genes_lead_the_shift_of_stimulated_cells(data_dir):
    rows, cells = expression(data_dir / "kang_ifnb.h5ad")
    known = {"ISG15", "IFIT1", "IFIT2", "IFIT3", "IFI6", "MX1", "LY6E"}
    for kind in cells["cluster_id"].unique():
        chosen = (cells["cluster_id"] == kind).to_numpy()
        row = screen(rows[chosen], cells["group_id"][chosen], control="ctrl").table.iloc[0]
        leaders = [name[1:] for name in row["shift_columns"].split()]
        assert leaders[0] in known
        assert len(known.intersection(leaders)) >= 2
        assert row["verdict"] == "stands out"


def test_the_columns_that_are_shown_are_those_of_the_larger_difference(rng):
    rows, labels = rng.normal(size=(300, 8)), np.repeat(["control", "moved", "spread"], [200, 50, 50])
    rows[200:250, 2] += 2.0
    rows[250:, 5] *= 5.0
    shown = str(standout.screen(rows, labels, control="control"))
    leaders = dict(re.findall(r"^(\w+) .* stands out +[+-]column (\d)", shown, re.MULTILINE))
    assert leaders == {"moved": "2", "spread": "5"}


def test_columns_of_very_different_size_are_said(rng):
    X, labels = rng.normal(size=(120, 4)) * [1, 1, 1, 1000], np.repeat(["control", "A"], 60)
    with pytest.warns(UserWarning, match="columns differ much in size.*column 3"):
        screen(X, labels, control="control", n_draws=40)
