"""scikit-learn's own checks: all of them with the defaults; kernels of other sides without those of row weights."""

import os
import subprocess
import sys

import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from standout import (
    ContrastivePCA,
    DiscriminativePCA,
    KernelContrastivePCA,
    KernelDiscriminativePCA,
    make_pipeline,
)

# That all solvers give the same answer is tested elsewhere.
SOLVERS = ["auto", "root", "lobpcg"]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(
    [
        *(DiscriminativePCA(solver=solver) for solver in SOLVERS),
        DiscriminativePCA(shrinkage="clusters"),
        *(ContrastivePCA(solver=solver) for solver in SOLVERS if solver != "root"),
        ContrastivePCA(alpha=1.0),
        KernelDiscriminativePCA(),
        KernelContrastivePCA(),
        *(DiscriminativePCA(side=side) for side in ("background", "both")),
        *(ContrastivePCA(side=side) for side in ("background", "both")),
        *(KernelDiscriminativePCA(side=side) for side in ("background", "both")),
        KernelContrastivePCA(side="background"),
        *(DiscriminativePCA(smooth="chain", smoothness=strength) for strength in (1.0, "held-out")),
        *(DiscriminativePCA(1, n_columns=count) for count in (1, "auto")),
        *(ContrastivePCA(1, n_columns=count) for count in (1, "auto")),
        DiscriminativePCA(robust="rows"),
        *(kind(robust="cells") for kind in (DiscriminativePCA, ContrastivePCA)),
        *(kind(robust="cells") for kind in (KernelDiscriminativePCA, KernelContrastivePCA)),
    ]
)
def test_scikit_learn_contract(estimator, check):
    if check.func.__name__.startswith("check_array_api") and "STANDOUT_ARRAY_API_CONTRACT" not in os.environ:
        pytest.skip("run with SCIPY_ARRAY_API=1 by the next test, for the defaults of each class")
    of_weights = check.func.__name__.startswith("check_sample_weight_equivalence")
    if of_weights and "Kernel" in type(estimator).__name__ and estimator.side != "target":
        pytest.skip("a row of weight zero adds a direction without variance, and the least variances are looked for")
    check(estimator)


def test_scikit_learn_contract_with_array_api_dispatch():
    # SciPy reads the variable when it is imported: this needs a process of its own.
    script = (
        "import warnings; warnings.simplefilter('ignore')\n"
        "from sklearn.utils.estimator_checks import check_estimator\n"
        "import standout\n"
        "names = 'ContrastivePCA', 'DiscriminativePCA', 'KernelContrastivePCA', 'KernelDiscriminativePCA'\n"
        "results = [result for name in names for result in check_estimator(getattr(standout, name)())]\n"
        "wrong = [result for result in results if result['status'] not in ('passed', 'skipped')]\n"
        "skipped = [str(result['exception']) for result in results if result['status'] == 'skipped']\n"
        "absent = 'is not installed', 'cuda', 'XPU', 'MPS'\n"
        "assert not wrong, wrong\n"
        "assert all(any(reason in text for reason in absent) for text in skipped), skipped\n"
        "print(len(results) - len(skipped), sum('array_api' in r['check_name'] for r in results) - len(skipped))"
    )
    environment = {**os.environ, "SCIPY_ARRAY_API": "1", "STANDOUT_ARRAY_API_CONTRACT": "1"}
    result = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    passed, of_array_libraries = map(int, result.stdout.split())
    assert passed > 40
    # NumPy and array-api-strict in two precisions, mixed with others, and PyTorch on the CPU where it is installed.
    assert of_array_libraries >= 4 * 4


def test_a_pipeline_has_a_transform_where_its_last_step_has_one():
    assert hasattr(make_pipeline(StandardScaler(), DiscriminativePCA()), "transform")
    assert hasattr(make_pipeline(StandardScaler(), "passthrough"), "transform")
    assert not hasattr(make_pipeline(StandardScaler(), LogisticRegression()), "transform")
