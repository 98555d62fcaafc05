"""Saving keeps packages from being loaded while skops is, and at no other time."""

import sys

import numpy as np
import pytest

from standout import DiscriminativePCA, persistence

pytest.importorskip("skops", reason="skops is not installed")


def test_once_skops_is_loaded_no_package_is_kept_from_other_threads(tmp_path, monkeypatch):
    model = DiscriminativePCA(1).fit(np.eye(3))
    persistence.save(model, tmp_path / "first.skops")
    during = []

    def watched(name):
        during.extend(name for name in persistence._WITHOUT_ESTIMATORS if sys.modules.get(name, "absent") is None)
        return sys.modules[name]

    monkeypatch.setattr(persistence, "import_module", watched)
    persistence.save(model, tmp_path / "second.skops")
    persistence.load(tmp_path / "second.skops")
    assert during == []
