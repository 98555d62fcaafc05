"""Make the two small tables of *Start here*: blood proteins of made-up patients and of made-up healthy people.

Run ``python docs/data/make.py`` in a clone. In both tables most of the variance comes from three things that everybody
has (think of age, weight and the day of the measurement). The patients fall into two subtypes, in which six of the
twenty proteins are raised or lowered by little beside that.
"""

from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent
PROTEINS = [f"protein_{number:02d}" for number in range(1, 21)]


def make() -> dict[str, list[str]]:
    """Return the lines of each file."""
    rng = np.random.default_rng(4)
    everybody = rng.normal(size=(3, 20)) * [[2.0], [1.5], [1.2]]
    subtype = rng.permutation(np.repeat([-1.0, 1.0], 100))
    raised = np.zeros(20)
    raised[[2, 6, 9, 12, 15, 18]] = [0.9, -0.8, 0.8, 0.9, -0.7, 0.8]
    healthy = (
        10.0 + rng.normal(size=(200, 3)) @ everybody + 0.6 * rng.normal(size=(200, 20))
    )
    patients = (
        10.2 + rng.normal(size=(200, 3)) @ everybody + 0.6 * rng.normal(size=(200, 20))
    )
    patients += subtype[:, np.newaxis] * raised
    names = np.where(subtype > 0, "B", "A")
    return {
        "healthy.csv": [
            ",".join(["id", *PROTEINS]),
            *(
                ",".join([f"H{i:03d}", *(f"{x:.2f}" for x in row)])
                for i, row in enumerate(healthy, 1)
            ),
        ],
        "patients.csv": [
            ",".join(["id", "subtype", *PROTEINS]),
            *(
                ",".join([f"P{i:03d}", name, *(f"{x:.2f}" for x in row)])
                for i, (name, row) in enumerate(zip(names, patients, strict=True), 1)
            ),
        ],
    }


if __name__ == "__main__":
    for file, lines in make().items():
        (FOLDER / file).write_text("\n".join(lines) + "\n")
