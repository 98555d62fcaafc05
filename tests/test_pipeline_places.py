"""Pipelines over data of which some lie on a device: all datasets must be in one place."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.preprocessing import StandardScaler

from array_libraries import dispatch
from standout import DiscriminativePCA, make_pipeline
from standout.io import on_device, scan

# A fixture, which pytest finds by its name.
__all__ = ["dispatch"]

torch = pytest.importorskip("torch", reason="torch is not installed")

SPREAD = [5.0, 1.0, 1.0, 3.0]


@pytest.fixture
def data(rng, tmp_path):
    """A target and a background, each on the device and on the host, in all the ways in which data are given."""

    def forms(rows, name):
        np.save(tmp_path / f"{name}.npy", rows)
        return {
            "on a device": lambda: on_device(rows, "cpu", library="torch", batch_rows=40),
            "tensor": lambda: torch.asarray(rows),
            "batches of tensors": lambda: iter(torch.asarray(rows).split(40)),
            "scan": lambda: scan(tmp_path / f"{name}.npy"),
            "batches": lambda: iter(np.array_split(rows, 3)),
            "array": lambda: rows,
            "frame": lambda: pd.DataFrame(rows),
        }

    return forms(rng.normal(size=(90, 4)) * SPREAD, "target"), forms(rng.normal(size=(80, 4)), "background")


def scaled():
    return make_pipeline(StandardScaler(), DiscriminativePCA(1))


@pytest.mark.parametrize(
    ("form", "other", "places"),
    [
        ("on a device", "scan", ("torch", "numpy")),
        ("on a device", "batches", ("torch", "numpy")),
        ("on a device", "array", ("torch", "numpy")),
        ("on a device", "frame", ("torch", "numpy")),
        ("tensor", "scan", ("torch", "numpy")),
        ("tensor", "batches", ("torch", "numpy")),
        ("scan", "on a device", ("numpy", "torch")),
        ("scan", "tensor", ("numpy", "torch")),
        ("scan", "batches of tensors", ("numpy", "torch")),
        ("frame", "on a device", ("numpy", "torch")),
        ("array", "batches of tensors", ("numpy", "torch")),
    ],
)
def test_a_background_elsewhere_is_refused_before_any_step(data, form, other, places):
    target, background = data
    message = "the target is of {} on cpu, but background 1 is of {} on cpu. Give all datasets as arrays of one library"
    with pytest.raises(TypeError, match=message.format(*places)):
        scaled().fit(target[form](), background=background[other]())


@pytest.mark.parametrize("form", ["on a device", "batches of tensors"])
def test_one_place_gives_what_the_host_gives(data, form):
    target, background = data
    model = scaled().fit(target["on a device"](), background=background[form]())
    whole = scaled().fit(target["array"](), background=background["array"]())
    # Rounding of sums in another order.
    np.testing.assert_allclose(model[-1].eigenvalues_.numpy(), whole[-1].eigenvalues_, rtol=1e-10)


@pytest.mark.parametrize("make", [scaled, lambda: DiscriminativePCA(1)], ids=["pipeline", "alone"])
def test_a_fitted_model_names_the_place_that_a_scan_is_not_in(data, make):
    target, background = data
    model = make().fit(target["on a device"](), background=background["on a device"]())
    message = r"\.{}\(\) must use the same .* The fit was of torch on cpu, the data are of numpy on cpu"
    with pytest.raises(TypeError, match=message.format("transform")):
        model.transform(target["scan"]())
    with pytest.raises(TypeError, match=message.format("score")):
        model.score(target["on a device"](), background=background["scan"]())


def test_without_dispatch_a_tensor_is_an_array_of_the_host(data):
    target, background = data
    with sklearn.config_context(array_api_dispatch=False):
        model = scaled().fit(target["scan"](), background=background["tensor"]())
        whole = scaled().fit(target["scan"](), background=background["array"]())
    np.testing.assert_array_equal(model[-1].components_, whole[-1].components_)
