"""Fits with reports, each made once per session, that the tests of the report share."""

import warnings
from functools import cache

import numpy as np

from standout import ContrastivePCA, DiscriminativePCA, KernelDiscriminativePCA, permutation_test
from standout._messages import FindingWarning
from standout.report import report

HOSTILE = ("<script>alert(1)</script>", "</script><b>", "{{ 7 * 7 }}", "%(p)s {p.__class__}", "\u202eevil", "${1}", "")
COLUMNS = ["ISG15", "IFIT1", "MX1", *(f"gene {k}" for k in range(3, 12))]


def frame(rows, columns):
    import pandas as pd

    return pd.DataFrame(rows, columns=columns)


def mixed(seed, n, d=12, shared=3):
    """Return rows with factors that all datasets share and that PCA finds first."""
    loadings = 4.0 * np.random.default_rng(99).normal(size=(shared, d))
    draw = np.random.default_rng(seed)
    return draw.normal(size=(n, shared)) @ loadings + draw.normal(size=(n, d))


def cells(n=240):
    target, background = mixed(1, n), mixed(2, 300)
    labels = np.arange(n) % 3
    target[:, :3] += 3.0 * (labels - 1)[:, None] * [1.0, 0.8, -0.9]
    return target, background, np.array(["guide A", "guide B", "guide C"])[labels]


def fitted(model, X, **given):
    """Fit without the warnings that the report repeats as cautions."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FindingWarning)
        return model.fit(X, **given)


def quick_test(model, X, **given):
    return permutation_test(model, X, n_draws=39, random_state=0, **given)


@cache
def made(case):
    """Return a report by the name of its case."""
    return CASES[case]()


def _cells():
    target, background, labels = cells()
    target, background = frame(target, COLUMNS), frame(background, COLUMNS)
    model = fitted(DiscriminativePCA(2), target, background=background)
    test = quick_test(model, target, background=background)
    ids = [f"AAAC{k:03d}" for k in range(len(target))]
    return report(model, target, background=background, labels=labels, ids=ids, test=test, label_name="guide")


def _nothing():
    target, background = mixed(3, 120), mixed(4, 120)
    model = fitted(DiscriminativePCA(2, random_state=0), target, background=background)
    return report(model, target, background=background, test=quick_test(model, target, background=background))


def _shift():
    target, background = np.random.default_rng(5).normal(size=(2, 200, 6))
    target[:, 4] += 1.2
    model = fitted(DiscriminativePCA(2), target, background=background)
    return report(model, target, background=background, test=quick_test(model, target, background=background))


def _contrastive():
    target, background, labels = cells()
    model = fitted(ContrastivePCA(3), target, background=background)
    return report(model, target, background=background, labels=np.linspace(0.0, 9.0, len(target)), test=None)


def _kernel():
    draw = np.random.default_rng(6)
    target, background = draw.normal(size=(80, 3)), draw.normal(size=(90, 3))
    target *= np.where(np.arange(80) % 2, 3.0, 0.3)[:, None]
    model = fitted(KernelDiscriminativePCA(2, kernel="rbf"), target, background=background)
    return report(model, target, background=background, labels=np.arange(80) % 2, test=None)


def _wide():
    draw = np.random.default_rng(7)
    target, background = draw.normal(size=(40, 300)), draw.normal(size=(50, 300))
    target[:, :30] += 3.0 * draw.normal(size=(40, 1))
    model = fitted(DiscriminativePCA(2), target, background=background)
    return report(model, target, background=background, test=None)


def _robust():
    target, background, _ = cells()
    target[:4] += 400.0 * np.random.default_rng(8).normal(size=(4, 12))
    model = fitted(DiscriminativePCA(2, robust="rows"), target, background=background)
    return report(model, target, background=background, test=None)


def _subjects():
    target, background = (mixed(seed, 120) + np.repeat(mixed(seed + 10, 12), 10, axis=0) for seed in (11, 12))
    target[:, 0] += np.repeat(6.0 * np.random.default_rng(13).normal(size=12), 10)
    groups = np.repeat([f"mouse {k}" for k in range(12)], 10)
    others = np.repeat([f"mouse {k}" for k in range(20, 32)], 10)
    given = {"background": background, "groups": groups, "background_groups": others}
    model = fitted(DiscriminativePCA(1), target, **given)
    return report(model, target, test=quick_test(model, target, **given), **given)


def _images():
    draw = np.random.default_rng(14)
    target, background = draw.normal(size=(2, 150, 64))
    stamp = np.zeros((8, 8))
    stamp[2:6, 3:5] = 1.0
    target += 2.0 * draw.normal(size=(150, 1)) * stamp.ravel()
    model = fitted(DiscriminativePCA(1), target, background=background)
    return report(model, target, background=background, image_shape=(8, 8), test=None)


def _hostile():
    target, background, _ = cells(140)
    names = [*HOSTILE, *(f"{word}{k}" for k, word in enumerate(HOSTILE[:5]))]
    target, background = frame(target, names), frame(background, names)
    model = fitted(DiscriminativePCA(2), target, background=background)
    labels = np.array(HOSTILE, dtype=object)[np.arange(140) % 7]
    ids = [f"{HOSTILE[k % 7]}{k}" for k in range(140)]
    return report(model, target, background=background, labels=labels, ids=ids, label_name=HOSTILE[1], test=None)


CASES = {
    "cells": _cells, "nothing": _nothing, "shift": _shift, "contrastive": _contrastive, "kernel": _kernel,
    "wide": _wide, "robust": _robust, "subjects": _subjects, "images": _images, "hostile": _hostile,
}  # fmt: skip
