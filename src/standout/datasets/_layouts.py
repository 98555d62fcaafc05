"""What the files of real data hold."""

from standout._validation import ArrayForm
from standout.datasets._files import DataFile

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
# Rows of each class.
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
MICE_WORDS = {
    "Genotype": ("Control", "Ts65Dn"),
    "Treatment": ("Memantine", "Saline"),
    "Behavior": ("C/S", "S/C"),
    "class": tuple(MICE_CLASSES),
}
SIGNALS = tuple(
    [f"acc_chest_{axis}" for axis in "xyz"]
    + ["ecg_1", "ecg_2"]
    + [f"{sensor}_{place}_{axis}" for place in ("ankle", "arm") for sensor in ("acc", "gyro", "mag") for axis in "xyz"]
)

MICE = DataFile(
    "mice_protein.csv",
    n_rows=1080,
    offer="call with download=True to fetch it from OpenML (about 1 MB)",
    columns=("MouseID", *PROTEINS, *MICE_WORDS),
)
MHEALTH = DataFile(
    "mhealth.npz",
    # All rows of all ten subjects, those without an activity included.
    n_rows=1_215_745,
    offer="call with download=True to fetch it from the UCI Machine Learning Repository (about 76 MB)",
    arrays={
        "X": ArrayForm("floating", (None, len(SIGNALS))),
        "label": ArrayForm("integer", (None,), (0, 12)),
        "subject": ArrayForm("integer", (None,), (1, 10)),
        "row": ArrayForm("integer", (None,), (0, 1_215_744)),
        "columns": ArrayForm("text", (len(SIGNALS),)),
        "full_precision": ArrayForm("bool", (len(SIGNALS),)),
    },
)
FACES = DataFile(
    "yaleb.npz",
    # 38 people, 64 directions of light.
    n_rows=2432,
    offer=(
        "get the cropped images from the Extended Yale Face Database B, which allows research without commercial use, "
        "and make the file from them: there is no stable source to fetch it from, so that download=True cannot help"
    ),
    arrays={
        "images": ArrayForm("uint8", (None, 192, 168)),
        "person": ArrayForm("integer", (None,), (1, 39)),
        "azimuth": ArrayForm("integer", (None,), (-180, 180)),
        "elevation": ArrayForm("integer", (None,), (-90, 90)),
    },
)
MNIST = DataFile(
    "mnist.npz",
    n_rows=60000,
    offer="call with download=True to fetch it from OpenML (about 15 MB)",
    arrays={
        "images": ArrayForm("uint8", (None, 28, 28)),
        "labels": ArrayForm("integer", (None,), (0, 9)),
    },
)
FROGS = DataFile(
    "cifar10_frogs.npz",
    n_rows=6000,
    offer="call with download=True to fetch it from the University of Toronto (about 170 MB)",
    arrays={
        "images": ArrayForm("uint8", (None, 32, 32)),
        "is_test": ArrayForm("integer", (None,), (0, 1)),
    },
)
GIRLS = DataFile(
    "cifar100_girls.npz",
    n_rows=600,
    offer="call with download=True to fetch it from the University of Toronto (about 169 MB)",
    arrays={
        "images": ArrayForm("uint8", (None, 32, 32)),
        "is_test": ArrayForm("integer", (None,), (0, 1)),
        "filenames": ArrayForm("text", (None,), optional=True),
    },
)
