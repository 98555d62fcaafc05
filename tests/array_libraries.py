"""Other array libraries for tests: PyTorch on the CPU, and array-api-strict on a device that NumPy cannot read."""

import numpy as np
import pytest

# Maximum size of an array that may be copied to the host: a few components, but not rows or covariance matrices.
HANDFUL = 128


class Torch:
    """PyTorch on the CPU."""

    name = "torch"

    def __init__(self):
        self.torch = pytest.importorskip("torch", reason="torch is not installed")

    def there(self, array):
        return self.torch.asarray(np.array(array))

    def back(self, array):
        assert isinstance(array, self.torch.Tensor)
        return array.numpy()

    def forbid_copies(self, monkeypatch, most=HANDFUL):
        """Make every copy of more than `most` numbers from a tensor to the host fail."""
        for way in ("cpu", "numpy", "tolist", "__array__"):
            monkeypatch.setattr(self.torch.Tensor, way, _only_a_few(getattr(self.torch.Tensor, way), most))


class Strict:
    """array-api-strict, which has the functions of the standard and no others."""

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
        monkeypatch.setattr(kind, "to_device", _only_a_few(kind.to_device, most))


def _only_a_few(way, most):
    def guarded(array, *args, **kwargs):
        assert np.prod(array.shape) <= most, f"{array.shape} numbers were copied to the host"
        return way(array, *args, **kwargs)

    return guarded


@pytest.fixture(params=[Torch, Strict], ids=lambda library: library.name)
def library(request):
    return request.param()
