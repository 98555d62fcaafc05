"""How many rows does a private fit need? R² against ε and the number of columns, places, bounds, digits over frogs.

Run as ``python benchmarks/private_sums.py [--cases table,places]``; needs standout[private]. The digits need the real
datasets (the folder in STANDOUT_DATA), and the root of the repository on PYTHONPATH.
"""

from __future__ import annotations

import argparse
import os
import platform
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np

from standout import DiscriminativePCA
from standout._messages import CautionWarning
from standout.metrics import clustering_error
from standout.private import from_ranges, release, required_rows

DELTA = 1e-6
EPSILONS = (0.5, 1.0, 2.0, 5.0, 10.0)
# The smallest number of rows with R² >= 0.90 that was found before, for each number of columns and each ε.
ROWS = {
    10: (3000, 3000, 1000, 1000, 1000),
    50: (10000, 10000, 3000, 3000, 1000),
    100: (30000, 10000, 10000, 3000, 1000),
    200: (100000, 30000, 10000, 10000, 3000),
}
SEEDS = range(3)


class Factors:
    """Shared factors of variance 100 (120 in the target), two factors of the target only of variance 16, unit noise."""

    def __init__(self, n_features: int, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.n_shared = min(10, n_features // 2)
        directions = np.linalg.qr(self.rng.standard_normal((n_features, self.n_shared + 2))).Q.T
        self.shared, self.specific = directions[:-2], directions[-2:]
        self.n_features = n_features

    @property
    def typical(self) -> float:
        """Typical length of a background row."""
        return float(np.sqrt(100.0 * self.n_shared + self.n_features))

    def background(self, n_rows: int) -> np.ndarray:
        """Draw rows of the background."""
        rows = 10.0 * self.rng.standard_normal((n_rows, self.n_shared)) @ self.shared
        return rows + self.rng.standard_normal((n_rows, self.n_features))

    def target(self, n_rows: int) -> np.ndarray:
        """Draw rows of the target."""
        rows = np.sqrt(120.0) * self.rng.standard_normal((n_rows, self.n_shared)) @ self.shared
        rows += 4.0 * self.rng.standard_normal((n_rows, 2)) @ self.specific
        return rows + self.rng.standard_normal((n_rows, self.n_features))

    def r2(self, model: DiscriminativePCA) -> float:
        """R² of the two factors given the scores of new rows, from the true covariance."""
        truth = 120.0 * self.shared.T @ self.shared + 16.0 * self.specific.T @ self.specific + np.eye(self.n_features)
        filters = model.components_.T
        both = 16.0 * filters.T @ self.specific.T
        return float(np.trace(both.T @ np.linalg.solve(filters.T @ truth @ filters, both)) / 32.0)


def private_fit(target, background, bounds, epsilon):
    """Release both datasets and fit; also tell whether the fit warned that noise drowns it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", CautionWarning)
        sums = [release(rows, **bounds, epsilon=epsilon, delta=DELTA) for rows in (target, background)]
        del caught[:]
        model = DiscriminativePCA.from_moments(*sums)
    return model, any("drowns" in str(one.message) for one in caught)


def bounds_of(data: Factors, times: float = 0.7) -> dict:
    size = data.n_features
    return {"centre": np.zeros(size), "scale": np.ones(size), "radius": times * data.typical}


def table() -> None:
    print("\n| D | ε | rows | R² private (3 seeds) | worst | R² exact | warned | rows that the planner asks for |")
    print("|---|---|---|---|---|---|---|---|")
    for n_features, rows in ROWS.items():
        for epsilon, n_rows in zip(EPSILONS, rows, strict=True):
            found, exact, warned = [], [], 0
            for seed in SEEDS:
                data = Factors(n_features, seed)
                target, background = data.target(n_rows), data.background(n_rows)
                model, told = private_fit(target, background, bounds_of(data), epsilon)
                found.append(data.r2(model))
                exact.append(data.r2(DiscriminativePCA().fit(target, background=background)))
                warned += told
            asked = required_rows(n_features, epsilon, DELTA)
            print(
                f"| {n_features} | {epsilon:g} | {n_rows} | {np.mean(found):.3f} | {min(found):.3f} "
                f"| {np.mean(exact):.3f} | {warned}/3 | {asked} |",
                flush=True,
            )


def few() -> None:
    print("\nFewer rows than the table: is the warning right? D = 50, ε = 1\n")
    print("| rows | R² private (3 seeds) | warned |\n|---|---|---|")
    for n_rows in (500, 1000, 2000, 3000, 5000, 10000, 20000):
        found, warned = [], 0
        for seed in SEEDS:
            data = Factors(50, seed)
            model, told = private_fit(data.target(n_rows), data.background(n_rows), bounds_of(data), 1.0)
            found.append(data.r2(model))
            warned += told
        print(f"| {n_rows} | {', '.join(f'{one:.3f}' for one in found)} | {warned}/3 |", flush=True)


def white() -> None:
    print("\nThe target in bounds of a released background of 30,000 rows; D = 50, ε = 1\n")
    print("| rows of the target | R² in its own bounds | R² whitened |\n|---|---|---|")
    for n_rows in (300, 1000, 3000):
        plain, whitened = [], []
        for seed in SEEDS:
            data = Factors(50, seed)
            target, background = data.target(n_rows), data.background(30000)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                against = release(background, **bounds_of(data), epsilon=1.0, delta=DELTA)
                for found, limits in ((plain, bounds_of(data)), (whitened, against.whitening())):
                    sums = release(target, **limits, epsilon=1.0, delta=DELTA)
                    found.append(data.r2(DiscriminativePCA.from_moments(sums, against)))
        print(f"| {n_rows} | {np.mean(plain):.3f} | {np.mean(whitened):.3f} |", flush=True)


def places() -> None:
    print("\nTen places with noise of their own, 30,000 rows in all, D = 50, ε = 1\n")
    print("| places | R² (3 seeds) | noise, one place = 1 |\n|---|---|---|")
    reference = None
    for n_places in (1, 2, 5, 10):
        found, noise = [], []
        for seed in SEEDS:
            data = Factors(50, seed)
            sums = []
            for rows in (data.target(30000), data.background(30000)):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    parts = [
                        release(part, **bounds_of(data), epsilon=1.0, delta=DELTA)
                        for part in np.array_split(rows, n_places)
                    ]
                sums.append(sum(parts[1:], start=parts[0]))
            found.append(data.r2(DiscriminativePCA.from_moments(*sums)))
            noise.append(sums[0].noise)
        reference = np.mean(noise) if reference is None else reference
        print(f"| {n_places} | {np.mean(found):.3f} | {np.mean(noise) / reference:.2f} |", flush=True)


def bounds() -> None:
    print("\nRadius over the typical length of a row; D = 50, 3,000 rows, ε = 2\n")
    print("| radius | R² (3 seeds) |\n|---|---|")
    for times in (0.1, 0.3, 0.5, 0.7, 1.0, 1.3, 2.0):
        found = []
        for seed in SEEDS:
            data = Factors(50, seed)
            model, _ = private_fit(data.target(3000), data.background(3000), bounds_of(data, times), 2.0)
            found.append(data.r2(model))
        print(f"| {times:g} | {np.mean(found):.3f} |", flush=True)


def digits() -> None:
    """All sixes and nines of MNIST over crops of half of the frogs, against crops of the other half; 14 x 14 pixels."""
    from experiments.data import load

    folder = Path(os.environ.get("STANDOUT_DATA", "../shared/data"))
    mnist, frogs = load("mnist.npz", folder), load("cifar10_frogs.npz", folder)
    print("\nDigits over frogs, 14 x 14 pixels, intensity 0.5: clustering error of two components\n")
    print("| ε | rows (target, background) | exact | exact, same shrinkage | private | private, whitened | seed |")
    print("|---|---|---|---|---|---|---|")
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        chosen = np.flatnonzero(np.isin(mnist.labels, (6, 9)))
        labels = mnist.labels[chosen]
        order = rng.permutation(len(frogs.X))
        over, apart = order[:3000], order[3000:]
        ink = _pooled(mnist.X[chosen] / 255.0)
        target = _crops(frogs.X[rng.choice(over, len(chosen))], rng) + 0.5 * ink
        background = _crops(frogs.X[np.repeat(apart, 10)], rng)
        limits = from_ranges(np.tile([0.0, 1.5], (196, 1)))
        exact = clustering_error(DiscriminativePCA().fit(target, background=background).transform(target), labels)
        for epsilon in (1.0, 2.0, 5.0):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                against = release(background, **limits, epsilon=epsilon, delta=DELTA)
                errors = []
                for own in (limits, against.whitening()):
                    model = DiscriminativePCA.from_moments(
                        release(target, **own, epsilon=epsilon, delta=DELTA), against
                    )
                    errors.append(clustering_error(model.transform(target), labels))
            alike = DiscriminativePCA(shrinkage=float(model.shrinkage_[0])).fit(target, background=background)
            errors = [exact, clustering_error(alike.transform(target), labels), *errors]
            shown = " | ".join(f"{error:.3f}" for error in errors)
            print(f"| {epsilon:g} | {len(target)}, {len(background)} | {shown} | {seed} |", flush=True)


def _crops(images, rng):
    """Crop each image to 28 x 28 pixels at a random place, mirror half of them, and halve the resolution."""
    top, left = rng.integers(0, 5, size=(2, len(images)))
    cut = np.stack([image[i : i + 28, j : j + 28] for image, i, j in zip(images, top, left, strict=True)]) / 255.0
    mirrored = rng.random(len(cut)) < 0.5
    cut[mirrored] = cut[mirrored, :, ::-1]
    return _pooled(cut)


def _pooled(images):
    return images.reshape(len(images), 14, 2, 14, 2).mean(axis=(2, 4)).reshape(len(images), 196)


CASES = {"table": table, "few": few, "white": white, "places": places, "bounds": bounds, "digits": digits}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", default=",".join(CASES), help="some of: %(default)s")
    names = parser.parse_args().cases.split(",")
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "opendp"))
    print(f"{platform.machine()}, {os.cpu_count()} cores; {packages}; δ = {DELTA:g}")
    for name in names:
        CASES[name]()
