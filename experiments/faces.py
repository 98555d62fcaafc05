"""Fig. 8: faces. Do kernel methods tell two people apart when the light changes more than the person does?"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import Bunch

from experiments._claims import Claim, lowest, printed, printed_baseline
from experiments._figure import Panel, score_panel
from experiments._record import Choice, Experiment, Method, Results, Setting
from experiments.data import Dataset, faces_contrast
from standout import KernelContrastivePCA, KernelDiscriminativePCA

MAIN = "people 1, 2 | 3"
KERNEL: dict[str, Any] = {"kernel": "gaussian", "kernel_params": {"bandwidth": 150.0}}
# The printed errors of KcPCA and KPCA. With clusters matched to people, 0.7 and 0.525 are 0.3 and 0.475.
PRINTED = {
    "KcPCA, α = 1": 0.7,
    "KcPCA, α = 10": 0.525,
    "KcPCA, α = 50": 0.275,
    "KcPCA, α = 100": 0.2833,
    "KPCA": 0.4167,
}

METHODS = (
    Method("KdPCA", KernelDiscriminativePCA(epsilon=1e-4, **KERNEL), choice=Choice.WITH_LABELS),
    Method("KdPCA, ε = 1e-3", KernelDiscriminativePCA(epsilon=1e-3, **KERNEL), choice=Choice.OPEN),
    *(
        Method(f"KcPCA, α = {alpha:g}", KernelContrastivePCA(alpha=alpha, **KERNEL))
        for alpha in (1.0, 10.0, 50.0, 100.0)
    ),
    Method("KPCA", KernelDiscriminativePCA(epsilon=1.0, **KERNEL), against=()),
    Method('KdPCA, epsilon="auto"', KernelDiscriminativePCA(epsilon="auto", **KERNEL), choice=Choice.LABEL_FREE),
)

_BASELINE = (
    "People, images and the scale of the vectors are not stated, and the figures of the baselines depend on all of "
    "them; three ways to scale the vectors of KcPCA were tried, and none gives the printed figures."
)

CLAIMS = (
    Claim("error of KdPCA", "0.1417", printed("KdPCA", 0.1417)),
    Claim(
        "error of KdPCA with ε = 1e-3, the value stated for the circles",
        "0.1417",
        printed("KdPCA, ε = 1e-3", 0.1417),
        (
            "ε is not stated for the faces; of the two that the paper uses elsewhere, 1e-4 gives the printed error and "
            "1e-3 does not."
        ),
        beyond=True,
    ),
    Claim(
        'error of KdPCA with epsilon="auto"',
        "0.1417",
        printed('KdPCA, epsilon="auto"', 0.1417),
        beyond=True,
    ),
    *(
        Claim(
            f"error of {name}",
            f"{error:.4f}" + (f", matched {1 - error:.4f}" if error > 0.5 else ""),
            printed_baseline(name, min(error, 1 - error)),
            _BASELINE,
        )
        for name, error in PRINTED.items()
    ),
    Claim(
        "KdPCA tells the two people apart better than the other methods",
        "lowest error",
        lowest("KdPCA", tuple(PRINTED)),
    ),
)


def draw(setting: Setting, seed: int, faces: Dataset) -> Bunch:
    """Take the first images of three people."""
    people = setting.values.get("people")
    if people is None:
        people = np.random.default_rng(seed).permutation(np.unique(faces.labels))[:3].tolist()
    contrast = faces_contrast(faces, target=people[:2], background=people[2:])
    # The same names for any people, so that the legend holds in every setting.
    return Bunch(**(contrast | {"labels": np.where(contrast.labels == people[0], 1, 2)}))


def figure(results: Results) -> list[list[Panel]]:
    """Show KdPCA and KPCA beside KcPCA with each α."""
    return [
        [score_panel(results, name, MAIN) for name in names]
        for names in (
            ("KdPCA", "KcPCA, α = 1", "KcPCA, α = 10"),
            ("KPCA", "KcPCA, α = 50", "KcPCA, α = 100"),
        )
    ]


EXPERIMENT = Experiment(
    name="faces",
    title="Faces of two people",
    paper="Fig. 8",
    data=(
        "Target: 60 images of 192 x 168 pixels of each of two people under different lights (Extended Yale B). "
        "Background: 60 images of a third one."
    ),
    files=("yaleb.npz",),
    n_rows=(60, 60, 60),
    draw=draw,
    methods=METHODS,
    reference="KdPCA",
    claims=CLAIMS,
    figure=figure,
    groups={1: "first person", 2: "second person"},
    choices=(
        (
            "People and images: not stated; people 1 and 2 against 3, the first 60 images of each. Three people drawn "
            "at random for each seed are run for comparison."
        ),
        "Pixels: not stated; 0 to 1. The bandwidth of 150 is read as σ in exp(-|x - z|²/(2σ²)).",
        (
            "ε: not stated for this test. 1e-4, as in the paper's KMdPCA test, was taken because it gives the printed "
            "error: this choice was made with the labels. 1e-3, as in its first KdPCA test, and a label-free choice "
            "are beside it."
        ),
        "Scale of the vectors: not stated; scores are in units of the background's spread.",
        "A printed error above 0.5 means that clusters were not matched to people; it is compared after matching.",
        (
            "Only the random people differ from seed to seed: in the main setting nothing is random but the seed of "
            "K-means."
        ),
    ),
    settings=(Setting(MAIN, {"people": (1, 2, 3)}), Setting("three random people", judged=False)),
)
