"""Learned weights of several kernels: which rows, which backgrounds and which units count."""

import numpy as np
import pytest

from standout import KernelDiscriminativePCA


def of_column(number, unit=1.0):
    """A kernel that sees one column alone: the learned weights then tell which column was chosen."""
    return lambda x, z: unit * x[number] * z[number]


def learned(target, backgrounds, units=(1.0, 1.0), **options):
    kernels = [of_column(number, unit) for number, unit in enumerate(units)]
    model = KernelDiscriminativePCA(1, kernel=kernels, kernel_weights="learn", **options)
    return model.fit(target, background=backgrounds).kernel_weights_


def test_a_few_far_rows_do_not_make_a_kernel_win(rng):
    target, background = rng.normal(size=(100, 2)) * [2, 1], rng.normal(size=(100, 2))
    # Two rows at either end are fewer than the share that is clipped there, in any half of the rows.
    target[:4, 1] = [30.0, 30.0, -30.0, -30.0]
    np.testing.assert_allclose(learned(target, background), [1.0, 0.0])


def along_both(rng):
    """Two columns, of which the target shows most along a direction between them."""
    turn = np.array([[1.0, 1.0], [-1.0, 1.0]]) / np.sqrt(2)
    return (rng.normal(size=(60, 2)) * [3, 1]) @ turn, rng.normal(size=(60, 2)) @ turn


def test_the_learned_mixture_does_not_depend_on_the_units_of_the_kernels(rng):
    target, background = along_both(rng)
    plain = learned(target, background)
    assert plain.min() > 0.2
    assert plain.sum() == pytest.approx(1.0)
    # What counts is the kernel, the weight times the unit, up to a common factor.
    scaled = learned(target, background, units=(1e4, 1.0)) * [1e4, 1.0]
    np.testing.assert_allclose(scaled / scaled.sum(), plain, rtol=1e-9)


def test_the_learned_mixture_does_not_depend_on_where_the_datasets_lie(rng):
    target, background = along_both(rng)
    moved = learned(target + np.array([50.0, -3.0]), background - 20.0)
    np.testing.assert_allclose(moved, learned(target, background), rtol=1e-9)


@pytest.mark.parametrize("weights", [(0.98, 0.02), (0.02, 0.98)])
def test_a_kernel_is_judged_against_the_backgrounds_by_their_weights(weights, rng):
    # Against the first background the target stands out along column 1, against the second along column 0.
    target = rng.normal(size=(60, 2)) * 3
    backgrounds = [rng.normal(size=(60, 2)) * spread for spread in ([3, 1], [1, 3])]
    found = learned(target, backgrounds, background_weights=weights)
    assert np.argmax(found) == np.argmax(weights[::-1])
    assert found.max() > 0.9


def test_a_background_of_little_weight_does_not_turn_the_component_that_a_kernel_is_judged_by(rng):
    target, background = along_both(rng)
    # Of equal weight, this one would hide the direction that only both kernels together show.
    loud = (rng.normal(size=(60, 2)) * [30**0.5, 1]) @ np.array([[1.0, 1.0], [-1.0, 1.0]]) / np.sqrt(2)
    assert learned(target, [background, loud], background_weights=[0.98, 0.02]).min() > 0.2


def test_a_small_dataset_beside_large_ones_is_learned_from_too(rng):
    # Learning looks at 800 rows: in proportion, one of these five.
    target, background = rng.normal(size=(3000, 2)), rng.normal(size=(5, 2))
    model = KernelDiscriminativePCA(
        1, kernel=["linear", "rbf"], kernel_weights="learn", approximation="pivoted", rank=10
    ).fit(target, background=background)
    assert model.kernel_weights_.sum() == pytest.approx(1.0)
