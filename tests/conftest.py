"""What all tests share: the folder of the real data, and random numbers."""

import os
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def data_dir():
    """The folder of the real datasets; tests that need it are skipped where it is absent."""
    folder = Path(os.environ.get("STANDOUT_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"the real datasets are not here: no folder {folder.name!r}; name it in STANDOUT_DATA")
    return folder
