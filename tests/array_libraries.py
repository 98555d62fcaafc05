"""What the tests of other array libraries share: the libraries, data, and what it is to equal NumPy."""

import numpy as np
import pytest
import sklearn

# Numbers that may come to the host in a fit: those of a component or two, and never rows or matrices of columns.
# The products of all components with each other, for up to eleven of them.
HANDFUL = 128


class Torch:
    """PyTorch on the CPU."""

    name = "torch"

    def __init__(self):
        self.torch = pytest.importorskip("torch", reason="torch is not installed")
        self.device = "cpu"

    def there(self, array):
        return self.torch.asarray(np.array(array))

    def back(self, array):
        assert isinstance(array, self.torch.Tensor)
        return array.numpy()

    def forbid_copies(self, monkeypatch, most=HANDFUL):
        """Let every way from a tensor to the host fail for more than a handful of numbers."""
        for way in ("cpu", "numpy", "tolist", "__array__"):
            monkeypatch.setattr(self.torch.Tensor, way, only_a_few(getattr(self.torch.Tensor, way), most))


class Strict:
    """array-api-strict, on a device of it that NumPy cannot read: it knows the standard and nothing else."""

    name = "array_api_strict"

    def __init__(self):
        self.xp = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")
        self.device = self.xp.Device("device1")

    def there(self, array):
        return self.xp.asarray(np.array(array), device=self.device)

    def back(self, array):
        assert array.device == self.device
        return np.asarray(array.to_device(self.xp.Device("CPU_DEVICE")))

    def forbid_copies(self, monkeypatch, most=HANDFUL):
        kind = type(self.there([1.0]))
        monkeypatch.setattr(kind, "to_device", only_a_few(kind.to_device, most))


def only_a_few(way, most):
    def guarded(array, *args, **kwargs):
        assert np.prod(array.shape) <= most, f"{array.shape} numbers were copied to the host"
        return way(array, *args, **kwargs)

    return guarded


@pytest.fixture(params=[Torch, Strict], ids=lambda library: library.name)
def library(request):
    return request.param()


@pytest.fixture(autouse=True)
def dispatch(monkeypatch):
    # SciPy itself is given no array of these, so it does not matter that it has been imported already.
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    with sklearn.config_context(array_api_dispatch=True):
        yield


@pytest.fixture
def linear_data(rng):
    mix = np.eye(12) + 0.1 * rng.normal(size=(12, 12))
    target = rng.normal(size=(300, 12)) * np.linspace(1, 3, 12)
    target[:, 3] *= 4
    return target, [rng.normal(size=(250, 12)) @ mix, rng.normal(size=(200, 12)) * np.linspace(2, 1, 12) + 0.3]


@pytest.fixture
def kernel_data(rng):
    target = rng.normal(size=(90, 4))
    target[:40] *= 0.3
    return target, [rng.normal(size=(70, 4)) * [1, 1, 2, 1], rng.normal(size=(50, 4)) * [2, 1, 1, 1]]


def assert_same(model, library, target, backgrounds, tol=1e-10, loose=()):
    """The fit of the other library has the attributes, scores and rows of NumPy's.

    Attributes in `loose` are known a thousand times less accurately.
    """
    ours = sklearn.clone(model).fit(target, background=backgrounds)
    moved = [library.there(background) for background in backgrounds] if backgrounds else None
    theirs = sklearn.clone(model).fit(library.there(target), background=moved)
    for name, expected in vars(ours).items():
        if isinstance(expected, np.ndarray):
            found = library.back(getattr(theirs, name))
            assert found.dtype == expected.dtype, name
            # The error of a ratio is rounded at the size of the ratio, which may be 1e12.
            like = ours.held_out_ratio_ if name == "held_out_ratio_error_" else expected
            close(found, expected, 1e3 * tol if name in loose else tol, name, like)
    scores = ours.transform(target)
    found = library.back(theirs.transform(library.there(target)))
    assert found.dtype == scores.dtype
    close(found, scores, tol, "transform")
    if hasattr(ours, "inverse_transform"):
        back = library.back(theirs.inverse_transform(library.there(scores)))
        close(back, ours.inverse_transform(scores), tol, "inverse_transform")
    return ours, theirs


def close(found, expected, tol, name, like=None):
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(np.isfinite(found), finite, err_msg=name)
    scale = max(np.max(np.abs((expected if like is None else like)[finite]), initial=0.0), 1e-12)
    np.testing.assert_allclose(found[finite], expected[finite], rtol=0, atol=tol * scale, err_msg=name)
