"""Pipelines over data that are read in parts: what they refuse, before or where it shows."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from pipelines_in_parts import NAMES, InParts, batches, datasets, in_dask, scanned, small_blocks
from standout import DiscriminativePCA, make_pipeline, scan

# Fixtures, which pytest finds by their names.
__all__ = ["datasets", "small_blocks"]


def test_steps_that_need_all_rows_are_refused_before_anything_is_read(datasets):
    target = InParts(datasets[0])
    with pytest.raises(
        TypeError,
        match=r"step 'pca' \(PCA\) has no partial_fit, .* but the target is read in parts\. Use .*FrozenEstimator",
    ):
        make_pipeline(StandardScaler(), PCA(), DiscriminativePCA()).fit(target, background=datasets[1])
    # A background of parts is transformed, and nothing is fitted to it.
    make_pipeline(PCA(), DiscriminativePCA()).fit(datasets[0], background=InParts(datasets[1]))
    with pytest.raises(TypeError, match=r"step 'standardscaler' .* iterator of batches can be read only once\. Give"):
        make_pipeline(StandardScaler(), DiscriminativePCA()).fit(batches(datasets[0]), background=datasets[1])
    with pytest.raises(TypeError, match=r"fit with target_label tells rows apart by their labels, but the target is"):
        make_pipeline(StandardScaler(), DiscriminativePCA(target_label=1)).fit(target, np.ones(530))
    with pytest.raises(TypeError, match=r"step 'pca' \(PCA\) is the last step, and cannot take data that are read in"):
        make_pipeline(StandardScaler(), PCA()).fit(target)
    with pytest.raises(TypeError, match="fit of a pipeline got parameter 'sample_size' for its steps"):
        make_pipeline(StandardScaler(), DiscriminativePCA()).fit(target, sample_size=np.ones(530))
    assert target.passes == 0


def test_fitted_pipelines_refuse_what_cannot_be_read_again(datasets):
    model = make_pipeline(StandardScaler(), DiscriminativePCA()).fit(datasets[0], background=datasets[1])
    with pytest.raises(TypeError, match="transform cannot take an iterator"):
        model.transform(batches(datasets[0]))
    with pytest.raises(TypeError, match="score cannot take an iterator"):
        model.score(datasets[0], background=batches(datasets[1]))
    with pytest.raises(TypeError, match="fit_transform cannot take an iterator"):
        model.fit_transform(batches(datasets[0]), background=datasets[1])
    with pytest.raises(NotFittedError):
        clone(model).transform(InParts(datasets[0]))
    with pytest.raises(TypeError, match="is the last step, and cannot take data that are read in parts"):
        model[:-1].transform(InParts(datasets[0]))


def test_other_columns_are_refused(datasets, tmp_path):
    data = scanned(datasets, tmp_path)
    model = make_pipeline(StandardScaler(), DiscriminativePCA())
    with pytest.raises(ValueError, match="background 1 has 5 features, but the target has 6; background 1 lacks"):
        model.fit(data[0], background=scan(tmp_path / "dataset-1", columns=NAMES[:5]))
    model.fit(data[0], background=data[1])
    reordered = scan(tmp_path / "dataset-1", columns=NAMES[::-1])
    for use in (lambda: model.transform(reordered), lambda: model.score(data[0], background=reordered)):
        with pytest.raises(ValueError, match="has the columns of the fitted target in another order"):
            use()
    with pytest.raises(ValueError, match="the data has 4 features, but the fitted target has 6"):
        model.transform(in_dask([datasets[1][:, :4]])[0])


def test_steps_that_do_not_work_row_by_row_are_refused_where_it_shows(datasets):
    target, background = map(InParts, datasets[:2])
    dropping = FunctionTransformer(lambda rows: rows[1:] if len(rows) > 1 else rows)
    with pytest.raises(ValueError, match=r"there are \d+ row\(s\) in the target after the steps .* for \d+ before"):
        make_pipeline(dropping, DiscriminativePCA()).fit(target, background=background)
    by_part = FunctionTransformer(lambda rows: rows[:, np.ptp(rows, axis=0) > 0] if len(rows) < 50 else rows[:, :3])
    with pytest.raises(ValueError, match=r"has 3 features, but its first row has 0.*work row by row|cannot be used"):
        make_pipeline(by_part, DiscriminativePCA()).fit(target, background=background)
    logarithm = FunctionTransformer(lambda rows: np.log(np.maximum(rows, 0.0)))
    with np.errstate(divide="ignore"), pytest.raises(ValueError, match="NaN or infinity in the target after the steps"):
        make_pipeline(logarithm, DiscriminativePCA()).fit(target, background=background)
