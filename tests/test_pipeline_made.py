"""What the steps of a pipeline make of data that are read in parts, where it is odd."""

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from standout import DiscriminativePCA, make_pipeline
from standout._arrays import BLOCK_BYTES
from standout.sources import Batch, Source


@pytest.fixture
def batches(rng):
    rows = rng.integers(0, 3, size=(120, 3)).astype(float)
    return lambda: iter(np.array_split(rows, 4))


@pytest.mark.parametrize(
    ("function", "shape"),
    [(lambda rows: rows[:, 0], "got 1D array instead"), (lambda rows: None, "got scalar array instead")],
    ids=["one column as a vector", "nothing"],
)
def test_what_is_no_table_is_refused(batches, function, shape):
    model = make_pipeline(FunctionTransformer(function), DiscriminativePCA(1))
    message = f"the target after the steps before the last cannot be used: Expected 2D array, {shape}"
    with pytest.raises(ValueError, match=message):
        model.fit(batches(), background=batches())


def test_words_between_two_steps_are_taken_on(batches):
    words = FunctionTransformer(lambda rows: np.array(["a", "b", "c"])[rows.astype(int)])
    rows = np.concatenate(list(batches()))
    encoder = FrozenEstimator(OneHotEncoder(drop="first").fit(words.transform(rows)))
    model = make_pipeline(words, encoder, DiscriminativePCA(2)).fit(batches(), background=batches())
    assert model[-1].n_features_in_ == 6


class Held(Source):
    """Rows that stay in memory and are given as they are each time, as by blocks of Dask that were persisted."""

    def __init__(self, rows):
        self.given, self.width = rows, rows.shape[1]

    def batches(self):
        yield Batch(self.given)


@pytest.mark.parametrize(
    "step",
    [
        StandardScaler(copy=False),
        Pipeline([("scaler", StandardScaler(copy=False))]),
        FeatureUnion([("inner", Pipeline([("scaler", StandardScaler(copy=False))]))]),
    ],
    ids=["itself", "in a pipeline", "in a pipeline in a union"],
)
def test_a_step_that_need_not_copy_leaves_the_rows_alone(rng, step):
    # As many rows as are worked on without being held back for others, which makes a copy.
    rows = rng.normal(size=(BLOCK_BYTES // 16, 2)) * 5.0 + 1.0
    before = rows.copy()
    frozen = FrozenEstimator(step.fit(rows.copy()))
    make_pipeline(frozen, DiscriminativePCA(1)).fit(Held(rows), background=rng.normal(size=(50, 2)))
    np.testing.assert_array_equal(rows, before)
