"""The paper's tables and figures, one file each; ``python -m experiments`` runs them and writes a report.

Each file declares data, methods, parameters and the paper's claims, with a rule to judge each by. They share `data`
(the real datasets), `_record` (what an experiment is and what it returns), `_claims` (the rules), `_run` (load, fit,
time, judge), `_figure` (the pictures), `_report` and `_blocks` (what is written). Methods come from the public names of
`standout` only.
"""

from experiments import (
    faces,
    kdpca_circles,
    kmdpca_circles,
    mdpca_gaussians,
    mdpca_girls,
    mhealth,
    mice,
    table1,
)
from experiments._record import Experiment

# In the order of the paper.
EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        table1.EXPERIMENT,
        mice.EXPERIMENT,
        kdpca_circles.EXPERIMENT,
        mhealth.FIRST,
        mhealth.SECOND,
        faces.EXPERIMENT,
        mdpca_gaussians.EXPERIMENT,
        mdpca_girls.EXPERIMENT,
        kmdpca_circles.EXPERIMENT,
    )
}

__all__ = ["EXPERIMENTS"]
