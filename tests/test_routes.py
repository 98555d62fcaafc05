"""Every case by every route: all forms of rows have the same answer and choice as arrays."""

import numpy as np
import pytest
from scipy import sparse

from standout import ContrastivePCA, DiscriminativePCA, KernelDiscriminativePCA, scan

pytestmark = pytest.mark.filterwarnings("ignore:the chosen shrinkage", "ignore:the means of target")
COLUMNS = [f"c{i}" for i in range(6)]


def _frame(rows):
    return pytest.importorskip("pandas").DataFrame(rows, columns=COLUMNS[: rows.shape[1]])


def _shuffled_frame(rows):
    # Columns are found by name. The first dataset sets their order.
    frame = _frame(rows)
    return frame if len(rows) == 130 else frame[frame.columns[::-1]]


def _polars(rows):
    return pytest.importorskip("polars").DataFrame(rows, schema=COLUMNS[: rows.shape[1]])


def _arrow(rows):
    return pytest.importorskip("pyarrow").Table.from_pandas(_frame(rows))


def _xarray(rows):
    names = COLUMNS[: rows.shape[1]]
    return pytest.importorskip("xarray").DataArray(rows, dims=("row", "column"), coords={"column": names})


def _dask(rows):
    return pytest.importorskip("dask.array").from_array(rows, chunks=(37, 3))


def _dask_frame(rows):
    return pytest.importorskip("dask.dataframe").from_pandas(_frame(rows), npartitions=3)


def _torch(rows):
    return pytest.importorskip("torch").tensor(rows)


def _batches(rows):
    return (rows[start : start + 23] for start in range(0, len(rows), 23))


ROUTES = {
    "fortran": np.asfortranarray,
    "list": lambda rows: rows.tolist(),
    "frame": _frame,
    "frame in another order": _shuffled_frame,
    "polars": _polars,
    "arrow": _arrow,
    "xarray": _xarray,
    "sparse": sparse.csr_array,
    "sparse columns": sparse.csc_matrix,
    "iterator": _batches,
    "dask": _dask,
    "dask frame": _dask_frame,
    "torch": _torch,
    "csv": "csv",
    "parquet": "parquet",
    "partial_fit": None,
}
CASES = {
    "dpca": DiscriminativePCA(),
    "two backgrounds": DiscriminativePCA(background_weights=[1, 2]),
    "ledoit-wolf": DiscriminativePCA(shrinkage="ledoit-wolf"),
    "scaled": DiscriminativePCA(scale="pooled", center="background"),
    "few columns": DiscriminativePCA(1, n_columns=3),
    "smooth": DiscriminativePCA(smooth="chain"),
    "cpca": ContrastivePCA(),
    "pca": DiscriminativePCA(),
}


def datasets(case):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(130, 6)) * [5, 1, 1, 1, 1, 3] + [0, 0, 0, 0, 9, 0]
    Y = rng.normal(size=(101, 6)) * [5, 1, 1, 1, 1, 1] + [0, 0, 0, 0, 9, 0]
    X[rng.random(X.shape) < 0.2] = 0.0
    Y[rng.random(Y.shape) < 0.2] = 0.0
    others = {"two backgrounds": [Y, Y[::-1] * [1, 2, 1, 1, 1, 1]], "pca": None}
    return X, others.get(case, [Y])


def in_files(rows, name, kind, folder):
    path = folder / f"{name}{len(list(folder.iterdir()))}.{kind}"
    if kind == "csv":
        _frame(rows).to_csv(path, index=False)
    else:
        _frame(rows).to_parquet(path, row_group_size=29)
    return scan(path)


def fitted(model, route, X, background, folder):
    if route == "partial_fit":
        for start in range(0, 130, 33):
            others = None if background is None else [part[start : start + 33] for part in background]
            model.partial_fit(X[start : start + 33], background=others)
        return model
    if route in ("csv", "parquet"):
        parts = None if background is None else [in_files(p, f"b{k}", route, folder) for k, p in enumerate(background)]
        return model.fit(in_files(X, "x", route, folder), background=parts)
    make = ROUTES[route]
    return model.fit(make(X), background=None if background is None else [make(part) for part in background])


def on_host(array):
    return np.asarray(array.cpu() if hasattr(array, "cpu") else array)


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("case", CASES)
def test_every_route_equals_the_array_fit(case, route, tmp_path):
    from sklearn.base import clone

    X, background = datasets(case)
    plain = clone(CASES[case]).fit(X, background=background)
    model = fitted(clone(CASES[case]), route, X, background, tmp_path)
    for name in ("ratio_", "ratio_error_", "eigenvalues_", "components_", "mean_", "patterns_", "correlations_"):
        np.testing.assert_allclose(on_host(getattr(model, name)), getattr(plain, name), rtol=1e-8, atol=1e-8)
    if plain.path_ is not None:
        assert model.path_.chosen == plain.path_.chosen
    assert model.n_samples_ == 130
    if route in ("frame", "frame in another order", "polars", "arrow", "dask frame", "csv", "parquet", "xarray"):
        assert model.feature_names_in_.tolist() == COLUMNS
    else:
        assert not hasattr(model, "feature_names_in_")


@pytest.mark.parametrize("route", [route for route in ROUTES if route != "partial_fit"])
def test_scores_of_every_route_equal_those_of_arrays(route, tmp_path):
    X, background = datasets("dpca")
    plain = DiscriminativePCA().fit(X, background=background)
    model = fitted(DiscriminativePCA(), route, X, background, tmp_path)
    make = (lambda rows: in_files(rows, "new", route, tmp_path)) if route in ("csv", "parquet") else ROUTES[route]
    scores = model.transform(make(X))
    if route.startswith("dask"):
        assert type(scores).__module__.startswith("dask")
        assert np.isnan(scores.shape[0]) or scores.shape == (130, 2)
        scores = scores.compute()
    np.testing.assert_allclose(on_host(scores), plain.transform(X), atol=1e-8)
    if route != "torch":
        held_out = model.held_out_scores(make(X), background=[make(part) for part in background])
        np.testing.assert_allclose(held_out[0], plain.held_out_scores(X, background=background)[0], atol=1e-8)


@pytest.mark.parametrize("route", ["frame", "sparse", "torch", "csv", "dask"])
def test_wide_rows_by_every_route(route, tmp_path):
    rng = np.random.default_rng(1)
    X, Y = rng.normal(size=(30, 200)), rng.normal(size=(25, 200))
    X[:, 7] *= 8
    model = DiscriminativePCA(1)
    plain = DiscriminativePCA(1).fit(X, background=Y)
    if route in ("frame", "csv"):
        pandas = pytest.importorskip("pandas")
        X, Y = (pandas.DataFrame(rows, columns=[f"g{i}" for i in range(200)]) for rows in (X, Y))
    if route == "csv":
        for name, rows in (("x", X), ("y", Y)):
            rows.to_csv(tmp_path / f"{name}.csv", index=False)
        model.fit(scan(tmp_path / "x.csv"), background=scan(tmp_path / "y.csv"))
    else:
        make = (lambda rows: rows) if route == "frame" else ROUTES[route]
        model.fit(make(X), background=make(Y))
    np.testing.assert_allclose(model.ratio_, plain.ratio_, rtol=1e-8)
    np.testing.assert_allclose(on_host(model.components_), plain.components_, atol=1e-8)
    assert model.path_.chosen == plain.path_.chosen


def test_single_precision_agrees_to_its_digits():
    X, background = datasets("dpca")
    plain = DiscriminativePCA().fit(X, background=background)
    model = DiscriminativePCA().fit(X.astype(np.float32), background=[part.astype(np.float32) for part in background])
    np.testing.assert_allclose(model.ratio_, plain.ratio_, rtol=1e-5)
    assert model.path_.chosen == plain.path_.chosen


@pytest.mark.parametrize("route", ["frame", "csv", "dask"])
def test_facts_of_rows_by_every_route(route, tmp_path):
    X, (Y,) = datasets("dpca")
    rng = np.random.default_rng(2)
    facts = {
        "sample_weight": rng.uniform(0.5, 2, 130),
        "background_sample_weight": rng.uniform(0.5, 2, 101),
        "groups": np.arange(130) // 10,
        "background_groups": np.arange(101) // 10,
        "adjust": rng.normal(size=(130, 1)),
        "background_adjust": rng.normal(size=(101, 1)),
    }
    plain = DiscriminativePCA().fit(X, background=Y, **facts)
    if route == "csv":
        given = [in_files(rows, name, "csv", tmp_path) for rows, name in ((X, "x"), (Y, "y"))]
    else:
        given = [ROUTES[route](rows) for rows in (X, Y)]
    model = DiscriminativePCA().fit(given[0], background=given[1], **facts)
    np.testing.assert_allclose(model.ratio_, plain.ratio_, rtol=1e-8)
    np.testing.assert_allclose(model.components_, plain.components_, atol=1e-8)


@pytest.mark.parametrize("route", ["frame", "sparse", "dask", "torch", "csv"])
def test_kernel_scores_by_every_route(route, tmp_path):
    X, background = datasets("dpca")
    plain = KernelDiscriminativePCA(1, gamma=0.01).fit(X, background=background)
    model = fitted(KernelDiscriminativePCA(1, gamma=0.01), route, X, background, tmp_path)
    np.testing.assert_allclose(model.ratio_, plain.ratio_, rtol=1e-6)
    scores = model.transform(in_files(X, "new", "csv", tmp_path) if route == "csv" else ROUTES[route](X))
    np.testing.assert_allclose(on_host(scores.compute() if route == "dask" else scores), plain.transform(X), atol=1e-6)


@pytest.mark.parametrize("scale", ["pooled", "background"])
def test_covariates_leave_the_same_scale_in_wide_rows(rng, scale):
    # Columns of zeros make the same rows wide.
    X, Y = rng.normal(size=(2, 20, 6)) * [5, 1, 1, 1, 1, 3]
    ages = rng.normal(size=(2, 20, 2))
    X, Y = (rows + 3 * own @ rng.normal(size=(2, 6)) for rows, own in zip((X, Y), ages, strict=True))
    model = ContrastivePCA(1, alpha=1.0, scale=scale)
    given = {"adjust": ages[0], "background_adjust": ages[1]}
    plain = model.fit(X, background=Y, **given).eigenvalues_
    wide = [np.hstack([rows, np.zeros((20, 90))]) for rows in (X, Y)]
    np.testing.assert_allclose(model.fit(wide[0], background=wide[1], **given).eigenvalues_, plain, rtol=1e-10)
