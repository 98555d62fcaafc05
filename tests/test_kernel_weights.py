"""Learned weights of several kernels: which rows, which backgrounds and which units count."""

import numpy as np

from standout import KernelDiscriminativePCA


def of_column(number):
    """A kernel that sees one column alone: the learned weights then tell which column was chosen."""
    return lambda x, z: x[number] * z[number]


def learned(target, backgrounds, n_columns=2, **options):
    kernels = [of_column(number) for number in range(n_columns)]
    model = KernelDiscriminativePCA(1, kernel=kernels, kernel_weights="learn", **options)
    return model.fit(target, background=backgrounds).kernel_weights_


def test_a_few_far_rows_do_not_make_a_kernel_win(rng):
    target, background = rng.normal(size=(100, 2)) * [2, 1], rng.normal(size=(100, 2))
    # Two rows at either end are fewer than the share that is clipped there, in any half of the rows.
    target[:4, 1] = [30.0, 30.0, -30.0, -30.0]
    np.testing.assert_allclose(learned(target, background), [1.0, 0.0])
