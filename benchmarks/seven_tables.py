"""Does a new user get from a file to a right page? Seven kinds of tables, the real command, at most one option each.

    python benchmarks/seven_tables.py [--keep FOLDER]

Prints for each table the CPU seconds, whether the headline is right, and the headline. With ``--keep`` the tables and
the pages stay in a folder, to be looked at in a browser. Needs ``standout[cli]``, pandas and anndata.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

Draw = np.random.Generator


def expression(rng: Draw) -> list[str]:
    """47 + 25 samples of 7,129 genes with shared factors; 400 genes follow a subtype of the target."""
    shared = 2.0 * rng.normal(size=(4, 7129))
    for name, n in (("leukemia", 47), ("healthy", 25)):
        rows = rng.normal(size=(n, 4)) @ shared + rng.normal(size=(n, 7129))
        if name == "leukemia":
            rows[:, :400] += 3.0 * np.where(np.arange(n) % 3 == 0, 1.0, -0.5)[:, None]
        names = [f"SUB{k}" if k < 400 else f"G{k}" for k in range(7129)]
        pd.DataFrame(rows.round(3), [f"{name}-{k}" for k in range(n)], names).to_csv(
            f"{name}.csv", index_label="sample"
        )
    return ["leukemia.csv", "-b", "healthy.csv"]


def _counts(rng: Draw) -> tuple[Any, Any, list[str]]:
    """Return counts of 600 cells x 300 genes, their condition, and names: half of the stimulated cells respond."""
    kind, treated, responds = rng.integers(0, 3, 600), np.arange(600) < 300, rng.random(600) < 0.5
    rates = np.exp(rng.normal(size=(3, 300)) * 0.8)[kind]
    rates[:, :8] *= np.where(treated & responds, 9.0, 1.0)[:, None]
    genes = [f"ISG{k}" if k < 8 else f"GENE{k}" for k in range(300)]
    return rng.poisson(rates), np.where(treated, "stimulated", "control"), genes


def cells_csv(rng: Draw) -> list[str]:
    """Two CSV files of counts."""
    counts, condition, genes = _counts(rng)
    for name in ("stimulated", "control"):
        own = condition == name
        ids = [f"{name[:4].upper()}{k:05d}-1" for k in range(own.sum())]
        pd.DataFrame(counts[own], ids, genes).to_csv(f"{name}.csv", index_label="barcode")
    return ["stimulated.csv", "-b", "control.csv", "--log1p"]


def cells_h5ad(rng: Draw) -> list[str]:
    """The same counts, logarithmised, as two AnnData files."""
    import anndata
    import scipy.sparse

    counts, condition, genes = _counts(rng)
    for name in ("stimulated", "control"):
        own = condition == name
        kept = scipy.sparse.csr_matrix(np.log1p(counts[own]).astype(np.float32))
        frame = pd.DataFrame(index=[f"{name}{k}" for k in range(own.sum())])
        anndata.AnnData(kept, frame, pd.DataFrame(index=genes)).write_h5ad(f"{name}.h5ad")
    return ["stimulated.h5ad", "-b", "control.h5ad"]


def sensors(rng: Draw) -> list[str]:
    """20 + 20 persons with 60 moments of 12 sensors each: persons who walk differ in two axes of the wrist."""
    axes = [f"{place}_{axis}" for place in ("chest", "wrist", "ankle", "hip") for axis in "xyz"]
    for name in ("walking", "resting"):
        level = np.repeat(rng.normal(size=(20, 12)), 60, axis=0)
        rows = 0.7 * level + rng.normal(size=(1200, 12))
        if name == "walking":
            rows[:, 3:5] += (
                3.0 * np.sin(np.arange(1200) / 3.0)[:, None] * np.repeat(rng.uniform(0.7, 1.3, 20), 60)[:, None]
            )
        frame = pd.DataFrame(rows.round(4), columns=axes)
        frame.insert(0, "person", np.repeat([f"{name[0]}{k:02d}" for k in range(20)], 60))
        frame.to_csv(f"{name}.csv", index=False)
    return ["walking.csv", "-b", "resting.csv", "--subject-column", "person"]


def images(rng: Draw) -> list[str]:
    """400 + 400 images of 16 x 16 pixels: smooth textures, over half of the target a cross."""
    cross = np.zeros((16, 16))
    cross[7:9, 3:13] = cross[3:13, 7:9] = 1.0
    across = np.arange(16)
    smooth = np.exp(-(np.subtract.outer(across, across) ** 2) / 18.0)
    for name in ("crosses", "textures"):
        rows = (smooth @ rng.normal(size=(400, 16, 16)) @ smooth).reshape(400, -1) + 0.3 * rng.normal(size=(400, 256))
        if name == "crosses":
            rows += 1.5 * (np.arange(400) % 2)[:, None] * cross.ravel()
        np.save(f"{name}.npy", rows)
    return ["crosses.npy", "-b", "textures.npy", "--image-shape", "16x16"]


def conditions(rng: Draw) -> list[str]:
    """One file of 160 animals in two conditions with missing values: the dose acts on two proteins."""
    rows = rng.normal(size=(160, 20)) @ np.linalg.qr(rng.normal(size=(20, 20)))[0]
    treated = np.arange(160) % 2 == 0
    rows[treated, 4:6] += 2.5 * rng.normal(size=(80, 1))
    rows[rng.random(rows.shape) < 0.03] = np.nan
    frame = pd.DataFrame(rows.round(4), columns=[f"protein_{k}" for k in range(20)])
    frame.insert(0, "treatment", np.where(treated, "memantine", "saline"))
    frame.to_csv("animals.csv", index=False)
    return ["animals.csv", "--condition-column", "treatment", "--target", "memantine", "--missing", "median"]


def business(rng: Draw) -> list[str]:
    """Orders of two quarters as an office exports them: ids, dates, currency, codes, a constant, very unequal units."""
    for name, n, spread in (("q2", 300, 4.0), ("q1", 280, 1.0)):
        amount = rng.lognormal(6.0, 0.6, n)
        days = pd.to_datetime("2026-01-02") + pd.to_timedelta(rng.integers(0, 90, n), unit="D")
        pd.DataFrame(
            {
                "order_id": [f"ORD-{name}-{k:05d}" for k in range(n)],
                "date": days.strftime("%d.%m.%Y"),
                "amount": [f"€{value:,.2f}" for value in amount],
                "store_code": rng.choice(["N01", "S02", "W03"], n),
                "currency": "EUR",
                "is_online": rng.integers(0, 2, n),
                "items": rng.poisson(4, n),
                "weight_g": (amount * rng.uniform(2, 4, n)).round(1),
                "discount": rng.beta(2, 20, n).round(4),
                "delivery_days": (5 + spread * rng.normal(size=n)).round(1),
                "delay_days": (1 + spread * rng.normal(size=n)).round(1),
                "warehouse": 7,
            }
        ).to_csv(f"{name}.csv", index=False)
    return ["q2.csv", "-b", "q1.csv", "--scale", "pooled"]


def nothing(rng: Draw) -> list[str]:
    """Two samples of one population of 15 columns."""
    mixing = rng.normal(size=(15, 15))
    for name in ("after", "before"):
        frame = pd.DataFrame(rng.normal(size=(150, 15)) @ mixing, columns=[f"marker {k}" for k in range(15)])
        frame.to_csv(f"{name}.csv", index=False)
    return ["after.csv", "-b", "before.csv"]


# The table, and what the first sentence of its page has to say.
TABLES = {
    "wide expression": (expression, r"leukemia is [\d.]+ times that of healthy.*SUB"),
    "cells, CSV": (cells_csv, r"stimulated is [\d.]+ times that of control.*ISG"),
    "cells, h5ad": (cells_h5ad, r"stimulated is [\d.]+ times that of control.*ISG"),
    "sensors": (sensors, r"walking is [\d.]+ times that of resting.*wrist_[xy]"),
    "images": (images, r"crosses is [\d.]+ times that of textures"),
    "conditions": (conditions, r"memantine is [\d.]+ times that of saline.*protein_[45]"),
    "business": (business, r"q2 is [\d.]+ times that of q1.*(delivery_days|delay_days)"),
    "nothing to find": (nothing, r"^Nothing stands out"),
}


def main() -> None:
    """Make the tables, run the command, and print one line for each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--keep", type=Path, help="folder for the tables and their pages")
    parser.add_argument("--only", help="the name of one table")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (given.keep or Path(temporary)).resolve()
        for number, (name, (make, expected)) in enumerate(TABLES.items()):
            if given.only not in (None, name):
                continue
            place = folder / re.sub(r"\W+", "-", name)
            place.mkdir(parents=True, exist_ok=True)
            os.chdir(place)
            words = [*make(np.random.default_rng([20261118, number])), "-o", "result", "--overwrite"]
            process = subprocess.Popen(
                [sys.executable, "-m", "standout", "fit", *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
            )
            said = process.stderr.read().decode() if process.stderr else ""
            _, status, usage = os.wait4(process.pid, 0)
            headline = said if status else json.loads(Path("result/summary.json").read_text())["headline"]
            verdict = "right" if re.search(expected, headline) else "WRONG"
            print(f"{name:16s} {usage.ru_utime + usage.ru_stime:5.1f} s  {verdict}  {headline.strip()}", flush=True)


if __name__ == "__main__":
    main()
