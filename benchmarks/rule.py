"""How good is the rule that chooses the regularisation? Regret on labelled tasks and on simulated factors.

Each task has a target with two or more known classes and a background without their difference. The worth of a view is
the accuracy of 5 nearest neighbours on two scores of the target (cross-validated). The worth on simulated factors is
R² of the target's own factors on new rows. Regret is the difference to the best value of the path, chosen by labels.
Nothing of the library was tuned on these tasks, but for `KEPT` of the rule, which comes from earlier ones.

    python benchmarks/rule.py [--tasks 60] [--simulations 200] [--method dpca|cpca|kdpca]
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier

from standout import ContrastivePCA, DiscriminativePCA

DATA = Path(os.environ.get("STANDOUT_DATA", Path(__file__).parents[2] / "shared" / "data"))
Task = tuple[str, np.ndarray, np.ndarray, np.ndarray]


def standard(X: np.ndarray, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return both datasets in units of the pooled standard deviation."""
    spread = np.sqrt(0.5 * (X.var(axis=0) + Y.var(axis=0)))
    spread[spread == 0] = 1.0
    return X / spread, Y / spread


def tasks(seed: int) -> Iterator[Task]:
    """Return name, target, its labels, and background of each task."""
    rng = np.random.default_rng(seed)
    digits = load_digits()
    for _ in range(14):
        a, b, c, d = rng.permutation(10)[:4]
        chosen = np.isin(digits.target, [a, b])
        yield (
            f"digits {a}{b}|{c}{d}",
            digits.data[chosen],
            digits.target[chosen],
            digits.data[np.isin(digits.target, [c, d])],
        )
    for loader, name in ((load_wine, "wine"), (load_iris, "iris")):
        table = loader()
        for label in range(3):
            own = table.target != label
            X, Y = standard(table.data[own], table.data[~own])
            yield f"{name} without {label}", X, table.target[own], Y
    if not DATA.exists():
        return
    images, frogs = np.load(DATA / "mnist.npz"), np.load(DATA / "cifar10_frogs.npz")["images"]
    for a, b, strength in ((0, 1, 0.3), (3, 8, 0.5), (4, 9, 0.5), (2, 7, 0.3), (5, 6, 0.4)):
        numbers = np.concatenate([rng.permutation(np.flatnonzero(images["labels"] == digit))[:200] for digit in (a, b)])
        photos = frogs[rng.permutation(len(frogs))[:900], 2:30, 2:30].reshape(900, 784) / 255.0
        target = photos[:400] + strength * images["images"][numbers].reshape(400, 784) / 255.0
        small = [part.reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4)).reshape(-1, 196) for part in (target, photos[400:])]
        yield f"digits {a}{b} over frogs", small[0], images["labels"][numbers], small[1]
    import pandas as pd

    mice = pd.read_csv(DATA / "mice_protein.csv")
    columns = mice.columns[1:78]
    numbers = mice[columns].fillna(mice[columns].mean()).to_numpy()
    classes = sorted(mice["class"].unique())
    for _ in range(12):
        a, b, c = rng.permutation(classes)[:3]
        own = mice["class"].isin([a, b]).to_numpy()
        X, Y = standard(numbers[own], numbers[(mice["class"] == c).to_numpy()])
        yield f"mice {a} {b}|{c}", X, mice["class"][own].to_numpy(), Y
    health = np.load(DATA / "mhealth.npz")
    for _ in range(8):
        a, b, c = rng.permutation([1, 3, 6, 7, 9])[:3]
        subject = rng.integers(1, 5)
        rows = [
            rng.permutation(np.flatnonzero((health["label"] == k) & (health["subject"] == subject)))[:300]
            for k in (a, b, c)
        ]
        X, Y = standard(health["X"][np.concatenate(rows[:2])].astype(float), health["X"][rows[2]].astype(float))
        yield f"activities {a}{b}|{c} of {subject}", X, np.repeat([a, b], 300), Y
    import anndata

    cells = anndata.read_h5ad(DATA / "kang_ifnb.h5ad")
    counts = cells.X.toarray()
    logs = np.log1p(counts / counts.sum(axis=1, keepdims=True) * np.median(counts.sum(axis=1)))
    logs = logs[:, np.argsort(-logs.var(axis=0))[:300]]
    kinds, stim = cells.obs["cluster_id"].astype(str).to_numpy(), (cells.obs["group_id"] == "stim").to_numpy()
    names = [name for name in np.unique(kinds) if min((kinds[stim] == name).sum(), (kinds[~stim] == name).sum()) >= 60]
    for name in names:
        own = kinds == name
        other = (kinds != name) & ~stim
        yield f"stimulated {name}", logs[own], stim[own], logs[other]


def worth(scores: np.ndarray, labels: np.ndarray) -> float:
    """Return the accuracy of nearest neighbours on scores."""
    scores = scores / np.where(scores.std(axis=0) > 0, scores.std(axis=0), 1.0)
    return float(cross_val_score(KNeighborsClassifier(5), scores, labels, cv=5).mean())


def factors(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Simulate a target with two factors of its own, a background, and new rows with their factors."""
    rng = np.random.default_rng(seed)
    width = int(rng.choice([20, 50, 100, 300, 600]))
    n, m = int(rng.choice([60, 150, 400, 1000])), int(rng.choice([60, 150, 400, 1000]))
    n_shared, strength = int(rng.choice([2, 5, 10])), float(rng.choice([4.0, 8.0, 16.0, 30.0]))
    shared = np.linalg.qr(rng.normal(size=(width, n_shared)))[0].T * np.sqrt(rng.uniform(20, 200, size=(n_shared, 1)))
    own = np.linalg.qr(rng.normal(size=(width, 2)))[0].T * np.sqrt(strength)
    heavy = rng.random() < 0.3
    noise = (
        (lambda size: rng.standard_t(5, size=size) / np.sqrt(5 / 3)) if heavy else (lambda size: rng.normal(size=size))
    )
    more = float(rng.choice([1.0, 1.2]))

    def rows(count: int, with_own: bool) -> tuple[np.ndarray, np.ndarray]:
        z = rng.normal(size=(count, 2))
        found = np.sqrt(more if with_own else 1.0) * rng.normal(size=(count, n_shared)) @ shared + noise((count, width))
        return (found + z @ own if with_own else found), z

    (X, _), (Y, _), (new, z) = rows(n, True), rows(m, False), rows(2000, True)
    return X, Y, new, z


def explained(scores: np.ndarray, z: np.ndarray) -> float:
    """Return the mean R² of the factors by the scores."""
    design = np.column_stack([scores, np.ones(len(scores))])
    left = z - design @ np.linalg.lstsq(design, z, rcond=None)[0]
    return float(1.0 - (left.var(axis=0) / z.var(axis=0)).mean())


def compare(method: str, X: np.ndarray, Y: np.ndarray, judge: Callable[..., float]) -> dict[str, float]:
    """Return the worth of the rule's view and of the others."""
    make = {"dpca": DiscriminativePCA, "cpca": ContrastivePCA}
    name = {"dpca": "shrinkage", "cpca": "alpha"}
    if method == "kdpca":
        from standout import KernelDiscriminativePCA

        make["kdpca"], name["kdpca"] = KernelDiscriminativePCA, "epsilon"
    cls, parameter = make[method], name[method]
    auto = cls(2).fit(X, background=Y)
    path = auto.path_
    along = [judge(cls(2, cv=None, **{parameter: float(value)}).fit(X, background=Y)) for value in path.values]
    from standout.selection import _choose

    found = {"best by labels": max(along), "rule": along[path.chosen], "best held out": along[path.best]}
    for kept in (0.6, 0.8):
        before, _choose.KEPT = _choose.KEPT, kept
        found[f"keeps {kept:.0%}"] = along[_choose.rule(path.log_ratios)[1]]
        _choose.KEPT = before
    if method == "dpca":
        found["Ledoit-Wolf"] = judge(cls(2, shrinkage="ledoit-wolf", cv=None).fit(X, background=Y))
        found["PCA"] = judge(cls(2, shrinkage=1.0, cv=None).fit(X, background=Y))
    return found


def show(title: str, rows: list[dict[str, float]]) -> None:
    """Print mean worth, mean regret and worst regret of each rule."""
    print(f"\n{title} ({len(rows)})\n{'':16s} worth  regret  worst")
    best = np.array([row["best by labels"] for row in rows])
    for name in rows[0]:
        own = np.array([row[name] for row in rows])
        print(f"{name:16s} {own.mean():.3f}  {(best - own).mean():.3f}   {(best - own).max():.2f}")


def main() -> None:
    """Run and print both tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tasks", type=int, default=60)
    parser.add_argument("--simulations", type=int, default=200)
    parser.add_argument("--method", default="dpca", choices=["dpca", "cpca", "kdpca"])
    parser.add_argument("--seed", type=int, default=11)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for _, (name, X, labels, Y) in zip(range(given.tasks), tasks(given.seed), strict=False):
        if given.method == "kdpca":
            keep = np.random.default_rng(0)
            pick = keep.permutation(len(X))[:300]
            X, labels, Y = X[pick], labels[pick], Y[keep.permutation(len(Y))[:300]]
        rows.append(compare(given.method, X, Y, lambda model, X=X, labels=labels: worth(model.transform(X), labels)))
        print(f"{name:32s} " + " ".join(f"{value:.3f}" for value in rows[-1].values()), flush=True)
    show("Tasks with labels", rows)
    rows = []
    for seed in range(given.simulations if given.method != "kdpca" else 0):
        X, Y, new, z = factors(1000 * given.seed + seed)
        rows.append(compare(given.method, X, Y, lambda model, new=new, z=z: explained(model.transform(new), z)))
    if rows:
        show("Simulated factors", rows)


if __name__ == "__main__":
    main()
