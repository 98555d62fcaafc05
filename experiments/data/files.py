"""The files of real data: what each holds, and where it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Form:
    """What an array in a file must look like.

    Attributes
    ----------
    kind : type
        Type of the values, such as ``np.integer``.
    shape : tuple of int or None
        None stands for the number of rows, which all arrays of a file share.
    limits : tuple of two ints or None
        Smallest and largest value.
    """

    kind: Any
    shape: tuple[int | None, ...] = (None,)
    limits: tuple[int, int] | None = None

    def __str__(self) -> str:
        return f"{self.kind.__name__.rstrip('_')} of shape {self.shape}".replace("None", "n")


@dataclass(frozen=True)
class DataFile:
    """One file of real data.

    Attributes
    ----------
    title : str
        Name of the dataset.
    n_rows : int
        Rows of the whole dataset; a file may hold fewer.
    rows, labels : str
        Names of the arrays with the rows or images, and with the label of each.
    arrays : mapping of str to Form
        The arrays of an .npz file. Empty for a table.
    layout : str
        What someone who makes the file needs to know beside the arrays.
    source : str
        Where the file can be downloaded from, and how much that is. Empty if it cannot be downloaded.
    """

    title: str
    n_rows: int
    rows: str
    labels: str
    layout: str
    source: str = ""
    arrays: Mapping[str, Form] = field(default_factory=dict)


# fmt: off
_PROTEINS = (
    "DYRK1A", "ITSN1", "BDNF", "NR1", "NR2A", "pAKT", "pBRAF", "pCAMKII", "pCREB", "pELK", "pERK", "pJNK", "PKCA",
    "pMEK", "pNR1", "pNR2A", "pNR2B", "pPKCAB", "pRSK", "AKT", "BRAF", "CAMKII", "CREB", "ELK", "ERK", "GSK3B",
    "JNK", "MEK", "TRKA", "RSK", "APP", "Bcatenin", "SOD1", "MTOR", "P38", "pMTOR", "DSCR1", "AMPKA", "NR2B",
    "pNUMB", "RAPTOR", "TIAM1", "pP70S6", "NUMB", "P70S6", "pGSK3B", "pPKCG", "CDK5", "S6", "ADARB1", "AcetylH3K9",
    "RRP1", "BAX", "ARC", "ERBB4", "nNOS", "Tau", "GFAP", "GluR3", "GluR4", "IL1B", "P3525", "pCASP9", "PSD95",
    "SNCA", "Ubiquitin", "pGSK3B_Tyr216", "SHH", "BAD", "BCL2", "pS6", "pCFOS", "SYP", "H3AcK18", "EGR1", "H3MeK4",
    "CaNA",
)
# fmt: on
PROTEINS = tuple(f"{protein}_N" for protein in _PROTEINS)
# Rows of each class. The name joins genotype (control, trisomic), behaviour (context-shock, shock-context) and
# treatment (memantine, saline).
MICE_CLASSES = {
    "c-CS-m": 150,
    "c-CS-s": 135,
    "c-SC-m": 150,
    "c-SC-s": 135,
    "t-CS-m": 135,
    "t-CS-s": 105,
    "t-SC-m": 135,
    "t-SC-s": 135,
}
SIGNALS = tuple(
    [f"acc_chest_{axis}" for axis in "xyz"]
    + ["ecg_1", "ecg_2"]
    + [f"{sensor}_{place}_{axis}" for place in ("ankle", "arm") for sensor in ("acc", "gyro", "mag") for axis in "xyz"]
)

FILES = {
    # Higuera, Gardiner, Cios, Self-Organizing Feature Maps Identify Proteins Critical to Learning in a Mouse Model of
    # Down Syndrome, PLoS ONE 10(6), 2015. Licence: CC BY 4.0. 72 mice, 15 measurements each.
    "mice_protein.csv": DataFile(
        "Mice Protein Expression",
        n_rows=1080,
        rows="X",
        labels="class",
        layout="a table with the columns MouseID, class and the 77 proteins; an empty cell is a missing value",
        source="OpenML, about 1 MB",
    ),
    # Banos et al., mHealthDroid: a novel framework for agile development of mobile health applications, IWAAL 2014.
    # Licence: CC BY 4.0. Labels: 1 standing still, 3 lying down, 6 waist bends, 7 frontal elevation of arms, 9 cycling.
    # Copies that were joined from public conversions have most signals truncated to integers: see full_precision.
    "mhealth.npz": DataFile(
        "MHealth",
        # All rows of all ten subjects, those without an activity included.
        n_rows=1_215_745,
        rows="X",
        labels="label",
        layout="row counts from 0 in the log of each person, full_precision tells which signals are not truncated",
        source="the UCI Machine Learning Repository, about 76 MB",
        arrays={
            "X": Form(np.floating, (None, len(SIGNALS))),
            "label": Form(np.integer, limits=(0, 12)),
            "subject": Form(np.integer, limits=(1, 10)),
            "row": Form(np.integer, limits=(0, 1_215_744)),
            "columns": Form(np.str_, (len(SIGNALS),)),
            "full_precision": Form(np.bool_, (len(SIGNALS),)),
        },
    ),
    # Georghiades, Belhumeur, Kriegman, From Few to Many, IEEE TPAMI 23(6), 2001; Lee, Ho, Kriegman, Acquiring Linear
    # Subspaces for Face Recognition under Variable Lighting, IEEE TPAMI 27(5), 2005. Free for research, not for
    # commercial use. No source offers the images in a stable form.
    "yaleb.npz": DataFile(
        "Extended Yale Face Database B, cropped",
        # 38 people, 64 directions of light.
        n_rows=2432,
        rows="images",
        labels="person",
        layout=(
            "made from the .pgm images of the database, whose names tell person, azimuth and elevation of the light, "
            "such as yaleB01_P00A+005E-10.pgm; without the Ambient images and those marked as bad"
        ),
        arrays={
            "images": Form(np.uint8, (None, 192, 168)),
            "person": Form(np.integer, limits=(1, 39)),
            "azimuth": Form(np.integer, limits=(-180, 180)),
            "elevation": Form(np.integer, limits=(-90, 90)),
        },
    ),
    # LeCun, Bottou, Bengio, Haffner, Gradient-based learning applied to document recognition, Proc. IEEE, 1998.
    # Licence: usually given as CC BY-SA 3.0.
    "mnist.npz": DataFile(
        "MNIST training digits",
        n_rows=60000,
        rows="images",
        labels="labels",
        layout="paper is 0, ink is 255; in the original order",
        source="a mirror of the original files, about 10 MB",
        arrays={"images": Form(np.uint8, (None, 28, 28)), "labels": Form(np.integer, limits=(0, 9))},
    ),
    # Krizhevsky, Learning Multiple Layers of Features from Tiny Images, technical report, University of Toronto, 2009.
    # Released for research without an explicit licence.
    "cifar10_frogs.npz": DataFile(
        "CIFAR-10 frogs",
        n_rows=6000,
        rows="images",
        labels="is_test",
        layout="grey is floor(0.299 R + 0.587 G + 0.114 B + 0.5); training images come first",
        source="the University of Toronto, about 170 MB",
        arrays={"images": Form(np.uint8, (None, 32, 32)), "is_test": Form(np.integer, limits=(0, 1))},
    ),
    # As above. Copies that are sorted by file name have neighbours that resemble each other: shuffle before you take a
    # part.
    "cifar100_girls.npz": DataFile(
        "CIFAR-100 girls",
        n_rows=600,
        rows="images",
        labels="is_test",
        layout="grey as in cifar10_frogs.npz; training images come first",
        source="the University of Toronto, about 169 MB",
        arrays={"images": Form(np.uint8, (None, 32, 32)), "is_test": Form(np.integer, limits=(0, 1))},
    ),
}
