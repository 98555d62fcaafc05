"""Table I, Figs. 1 and 2: digits over frogs. Do dPCA's components show the digits where PCA's show the frogs?"""

from __future__ import annotations

from sklearn.utils import Bunch

from experiments._claims import (
    Claim,
    at_every,
    below_up_to,
    improves,
    mixes,
    printed,
    printed_baseline,
    separates,
)
from experiments._figure import Panel, score_panel, some_images
from experiments._record import CLUSTER_SCATTER, ERROR, SCATTER, Choice, Experiment, Method, Results, Setting, Table
from experiments.data import Dataset, make_digits_over_frogs
from standout import ContrastivePCA, DiscriminativePCA

INTENSITIES = (0.25, 0.5, 0.65, 1.0)
AUTO = 'dPCA, shrinkage="auto"'

# d: clustering error of dPCA and PCA, scatter ratio of dPCA and PCA.
PRINTED = {
    1: (0.1660, 0.4900, 2.0368, 1.0247),
    2: (0.1650, 0.4905, 1.8233, 1.0209),
    3: (0.1660, 0.4895, 1.6719, 1.1327),
    4: (0.1685, 0.4885, 1.4557, 1.1190),
    5: (0.1660, 0.4890, 1.4182, 1.1085),
    10: (0.1680, 0.4885, 1.2696, 1.0865),
    50: (0.1700, 0.4880, 1.0730, 1.0568),
    100: (0.1655, 0.4905, 1.0411, 1.0508),
}

METHODS = (
    Method("PCA", DiscriminativePCA(), against=()),
    Method("dPCA", DiscriminativePCA(shrinkage=None)),
    Method("dPCA, Ledoit-Wolf", DiscriminativePCA(shrinkage="ledoit-wolf"), choice=Choice.LABEL_FREE),
    Method(AUTO, DiscriminativePCA(shrinkage="auto"), choice=Choice.LABEL_FREE),
    Method(
        "cPCA",
        ContrastivePCA(),
        choice=Choice.LABEL_FREE,
        parameters="α chosen automatically at d = 2 among 17 values, used for every d",
    ),
)

_UNREGULARISED = (
    "Not a matter of the intensity: at 0.65, 15 of PCA's 16 printed figures come out, and none of dPCA's. The ratio of "
    "variances is largest along fine detail, of which frogs have least, and not along the shapes of the digits; "
    "shrinkage puts that right. More background rows do not help (20,000 crops gave an error of 0.30), nor does a "
    "background of the target's own frogs. Digits, frogs, crops and any regularisation are not stated; with one "
    "component the scale of the vectors plays no part."
)
_SCATTER = (
    "As for the error. Beyond d = 1 the ratio also depends on the scale of the vectors, which the paper does not state."
)


def draw(setting: Setting, seed: int, mnist: Dataset, frogs: Dataset) -> Bunch:
    """Lay digits over frogs."""
    return make_digits_over_frogs(mnist, frogs, random_state=seed, **setting.values)


def claims() -> tuple[Claim, ...]:
    """List what the paper says of these data, figure by figure."""
    said = [
        Claim("dPCA shows the digits 6 and 9 (Fig. 2)", "two groups", separates("dPCA"), _UNREGULARISED),
        Claim('the same with shrinkage="auto"', "two groups", improves(AUTO, over="dPCA"), beyond=True),
        Claim("PCA shows the frogs, not the digits (Fig. 2)", "no groups", mixes("PCA", 0.45)),
        Claim("dPCA has a lower error than PCA", "at every d", at_every("dPCA", "PCA", ERROR, tuple(PRINTED))),
        Claim(
            "dPCA has a higher scatter ratio than PCA",
            "at every d but 100",
            at_every("dPCA", "PCA", SCATTER, tuple(d for d in PRINTED if d < 100), higher=True),
            _SCATTER,
        ),
        Claim(
            'error with shrinkage="auto" beside the printed 0.1660, up to d = 10',
            "0.1650 to 0.1685",
            below_up_to(AUTO, 0.1660, "PCA", 0.45, tuple(d for d in PRINTED if d <= 10)),
            beyond=True,
        ),
    ]
    for d, (error, _, _, _) in PRINTED.items():
        said.append(Claim(f"error of dPCA, d = {d}", f"{error:.4f}", printed("dPCA", error, d=d), _UNREGULARISED))
        said.append(
            Claim(
                f'error with shrinkage="auto", d = {d}',
                f"{error:.4f}",
                printed(AUTO, error, d=d),
                beyond=True,
            )
        )
    for d, (_, error, _, _) in PRINTED.items():
        said.append(Claim(f"error of PCA, d = {d}", f"{error:.4f}", printed_baseline("PCA", error, d=d)))
    for d, (_, _, ratio, _) in PRINTED.items():
        said.append(
            Claim(f"scatter ratio of dPCA, d = {d}", f"{ratio:.4f}", printed("dPCA", ratio, SCATTER, d), _SCATTER)
        )
        said.append(
            Claim(
                f'scatter ratio with shrinkage="auto", d = {d}',
                f"{ratio:.4f}",
                printed(AUTO, ratio, SCATTER, d),
                _SCATTER,
                beyond=True,
            )
        )
    for d, (_, _, _, ratio) in PRINTED.items():
        rule = printed_baseline("PCA", ratio, SCATTER, d)
        said.append(Claim(f"scatter ratio of PCA, d = {d}", f"{ratio:.4f}", rule))
    return tuple(said)


def tables(results: Results) -> list[Table]:
    """Return Table I, once for each intensity."""
    ours = ("dPCA", "PCA", "cPCA", "cPCA, best α", AUTO)
    header = ("d", "printed dPCA", "printed PCA", *(f"ours {name}" for name in ours))
    found = []
    for quantity, places in ((ERROR, (0, 1)), (SCATTER, (2, 3)), (CLUSTER_SCATTER, (2, 3))):
        for setting in results.judged:
            rows = [
                [
                    str(d),
                    *(f"{PRINTED[d][place]:.4f}" for place in places),
                    *(results.run(name, setting).in_words(quantity, d) for name in ours),
                ]
                for d in PRINTED
            ]
            found.append(Table(f"Table I, {quantity}, {setting}", header, rows))
    return found


def figure(results: Results) -> list[list[Panel]]:
    """Show the images (Fig. 1), then PCA and dPCA (Fig. 2), then what the paper does not show."""
    return [
        [
            some_images(results, f"some of the target\n{setting}", setting),
            *(score_panel(results, name, setting) for name in ("PCA", "dPCA", AUTO, "cPCA")),
        ]
        for setting in results.judged
    ]


EXPERIMENT = Experiment(
    name="table1",
    title="Digits over frogs",
    paper="Table I, Figs. 1 and 2",
    data=(
        "Target: 1,000 digits 6 and 1,000 digits 9 (MNIST), each over a frog (CIFAR-10), 28 x 28 pixels. Background: "
        "3,000 other frogs."
    ),
    files=("mnist.npz", "cifar10_frogs.npz"),
    n_rows=(1000, 1000, 3000),
    draw=draw,
    methods=METHODS,
    reference="dPCA",
    claims=claims(),
    figure=figure,
    groups={6: "digit 6", 9: "digit 9"},
    choices=(
        (
            "Intensity of the digits: not stated; run at 0.25, 0.5 and 1 of the brightness of white. A claim holds if "
            "it holds at one of them, and the intensities are named. 0.65 was added afterwards, with a look at the "
            "labels: it is where PCA's scatter ratios come out as printed, with their jump at d = 3."
        ),
        "Digits, frogs and crops: not stated; drawn anew for each seed.",
        "The paper does not run cPCA on these data; it is here for comparison.",
        (
            "Scatter ratio: the paper's text can be read as that of the K-means clusters. A printed 1.0247 for PCA at "
            "d = 1 rules that out (the two halves of any score with one peak have a ratio near 2.7), and an error of "
            "0.166 goes with a printed ratio near 2 if the groups are the true digits. So claims are judged with the "
            "true digits; both are tabulated."
        ),
    ),
    settings=tuple(Setting(f"intensity {value:g}", {"intensity": value}) for value in INTENSITIES),
    dimensions=tuple(PRINTED),
    tables=tables,
)
