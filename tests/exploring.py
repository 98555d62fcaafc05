"""A table to explore."""

from dataclasses import replace

import numpy as np

from standout.explorer import begun

N_ROWS = 240
CONDITIONS = np.repeat(["ill", "well", "odd"], [80, 100, 60])
MICE = np.array([f"mouse {k // 8}" for k in range(N_ROWS)])


def rows(width=6):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, width))
    X[CONDITIONS == "ill", 3] *= 5
    X[CONDITIONS == "ill", 1] += 2
    return X


def asked(table, target="ill", **settings):
    return replace(begun(table, "dpca", [target], by=next(iter(table.words))), **settings)
