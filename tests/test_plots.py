"""Pictures of scores: outliers do not squeeze the rest, nothing is lost, and the legend covers no point."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from standout.plots import FAR, plot_scores


@pytest.fixture
def ax():
    figure, made = plt.subplots(figsize=(5, 4))
    yield made
    plt.close(figure)


def drawn(ax):
    return np.vstack([part.get_offsets().filled() for part in ax.collections])


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_far_points_are_drawn_at_the_edge_and_the_axes_end_near_the_others(ax):
    scores = np.random.default_rng(0).normal(size=(300, 2))
    scores[:2] = [[50.0, 0.0], [0.0, -80.0]]
    plot_scores(scores, np.repeat(["a", "b"], 150), ax=ax)
    points = drawn(ax)
    assert len(points) == 300
    assert np.abs(points).max() == np.abs(scores[2:]).max()
    assert max(np.abs(ax.get_xlim()).max(), -ax.get_ylim()[0]) < 5
    assert legend(ax) == ["a", "b", FAR]


@pytest.mark.parametrize("n_rows", [1, 2, 10, 1000])
def test_ordinary_scores_are_drawn_where_they_are(ax, n_rows):
    scores = np.random.default_rng(1).normal(size=(n_rows, 2))
    plot_scores(scores, ax=ax)
    np.testing.assert_array_equal(drawn(ax), scores)
    assert ax.get_legend() is None


@pytest.mark.parametrize("n_groups", [2, 7, 20])
def test_the_legend_lies_above_all_points(ax, n_groups):
    rng = np.random.default_rng(2)
    plot_scores(rng.uniform(size=(400, 2)), [f"group {i}" for i in rng.integers(n_groups, size=400)], ax=ax)
    ax.figure.canvas.draw()
    box = ax.get_legend().get_window_extent().transformed(ax.transData.inverted())
    assert box.y0 > drawn(ax)[:, 1].max()
    inside = ax.get_window_extent()
    assert ax.get_legend().get_window_extent().x1 <= inside.x1
