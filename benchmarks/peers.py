"""How do other packages for this question compare, with their defaults, in one run?

Each package is fitted in a fresh process, to two datasets with ten shared factors and two of the target alone. The
table has wall seconds of one fit with scores, and R² of the two factors by the scores of the fitted rows. A package
that is not installed is named. Install them into an environment of your choice: contrastive, ccpca, pcpca, mne,
generalized-contrastive-PCA, and rhopca with anndata and seaborn.

    python benchmarks/peers.py [--python OTHER_PYTHON] [--timeout 300] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

SHAPES = ((20_000, 500), (2_000, 2_000), (300, 20_000), (200_000, 100))
SIDES = {
    "standout": "from standout import DiscriminativePCA\n"
    "fit = lambda: DiscriminativePCA(2).fit(X, background=Y).transform(X)",
    "scikit-learn PCA": "from sklearn.decomposition import PCA\nfit = lambda: PCA(2).fit_transform(X)",
    "scikit-learn LDA": "from sklearn.discriminant_analysis import LinearDiscriminantAnalysis as L\n"
    "both = np.vstack([X, Y]); labels = np.repeat([1, 0], [len(X), len(Y)])\n"
    "fit = lambda: L().fit(both, labels).transform(X)",
    "contrastive, one α": "from contrastive import CPCA\n"
    "fit = lambda: CPCA(2).fit_transform(X, Y, alpha_selection='manual', alpha_value=2.0)",
    "contrastive, automatic": "from contrastive import CPCA\nfit = lambda: CPCA(2).fit_transform(X, Y)[1]",
    "gcPCA": "from generalized_contrastive_PCA import gcPCA\n"
    "model = gcPCA(method='v2')\nfit = lambda: (model.fit(X, Y), X @ model.loadings_[:, :2])[1]",
    "rhopca": "from anndata import AnnData\nfrom rhopca.core import rhoPCA\nfrom scipy.sparse import csr_matrix\n"
    "both = AnnData(csr_matrix(np.vstack([X, Y]))); both.obs['set'] = np.repeat(['X', 'Y'], [len(X), len(Y)])\n"
    "model = rhoPCA(both, 'set', 'X', 'Y', 2)\nfit = lambda: (model.fit(), model.target_proj)[1]",
    "ccpca": "from ccpca import CCPCA\nmodel = CCPCA(n_components=2)\n"
    "fit = lambda: (model.fit(X, Y), model.transform(X))[1]",
    "pcpca": "from pcpca import PCPCA\nmodel = PCPCA(n_components=2, gamma=0.7)\n"
    "fit = lambda: (model.fit(X.T - X.T.mean(1, keepdims=True), Y.T - Y.T.mean(1, keepdims=True)), "
    "model.transform(X.T, Y.T)[0].T)[1]",
    "mne CSP": "from mne.decoding import CSP\nimport mne; mne.set_log_level('ERROR')\n"
    "cut = lambda A: A[: len(A) // 100 * 100].reshape(-1, 100, A.shape[1]).transpose(0, 2, 1)\n"
    "epochs = np.concatenate([cut(X), cut(Y)]); y = np.repeat([1, 0], [len(X) // 100, len(Y) // 100])\n"
    "fit = lambda: X @ CSP(2).fit(epochs, y).filters_[:2].T",
}
PROGRAM = """
import sys, time, warnings
import numpy as np
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
n, D = {n}, {D}
growth = np.sqrt(max(D / n, 1.0))
shared = np.sqrt(30) * growth * np.linalg.qr(rng.normal(size=(D, 12)))[0].T
X = 1.1 * rng.normal(size=(n, 10)) @ shared[:10] + rng.normal(size=(n, D))
Y = rng.normal(size=(n, 10)) @ shared[:10] + rng.normal(size=(n, D))
z = rng.normal(size=(n, 2))
X += z @ shared[10:] * 0.7
{side}
start = time.perf_counter()
scores = np.asarray(fit())[:, :2]
seconds = time.perf_counter() - start
design = np.column_stack([scores, np.ones(len(scores))])
left = z[: len(scores)] - design @ np.linalg.lstsq(design, z[: len(scores)], rcond=None)[0]
print(f"{{seconds:.2f}} s, R² {{1 - (left.var(axis=0) / z.var(axis=0)).mean():.2f}}")
"""


def main() -> None:
    """Print one row per package, one column per shape."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--timeout", type=float, default=300.0)
    parser.add_argument("--json", type=Path, help="write the seconds and R² of every tool that ended")
    given = parser.parse_args()
    found: dict[str, dict[str, list[float]]] = {}
    for name, side in SIDES.items():
        for n, width in SHAPES:
            program = PROGRAM.format(n=n, D=width, side=side)
            try:
                done = subprocess.run(
                    [given.python, "-c", program], capture_output=True, text=True, timeout=given.timeout, check=False
                )
                lines = (done.stdout if done.returncode == 0 else done.stderr).strip().splitlines() or ["killed"]
                answer = lines[-1][:70]
            except subprocess.TimeoutExpired:
                answer = f"longer than {given.timeout:g} s"
            shape = f"{n:,} + {n:,} x {width:,}"
            print(f"{name:24s} {shape}: {answer}", flush=True)
            if answer.count(" s, R² "):
                found.setdefault(shape, {})[name] = [float(number) for number in answer.split(" s, R² ")]
    if given.json:
        given.json.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
