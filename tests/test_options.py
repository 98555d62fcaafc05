"""One table of options: estimators, docstrings and the command line have the same names, defaults and values."""

import inspect
import re
import subprocess
import sys

import click
import numpy as np
import pytest

import standout
from cli_runs import run, works_here
from standout._messages import InvalidValueError
from standout._options import METHODS, OPTION_NAMES, OPTIONS, check_parameters, documented, options_for
from standout.cli._app import app, fit
from standout.cli._fit import ESTIMATORS, make_estimator

COMMANDS = ("fit", "transform", "info", "compare", "screen", "explore", "release", "demo")


def options_of(*arguments):
    return fit.make_context("fit", ["target.csv", "-o", "out", *arguments]).params


@pytest.mark.parametrize("method", METHODS)
def test_the_table_has_every_parameter_of_an_estimator_with_its_default(method):
    signature = inspect.signature(ESTIMATORS[method].__init__).parameters
    defaults = {name: one.default for name, one in signature.items() if name != "self"}
    assert {one.name: one.default for one in options_for(method)} == defaults


@pytest.mark.parametrize("method", METHODS)
def test_the_command_line_has_the_defaults_of_python(method):
    model = make_estimator(options_of("--method", method))
    assert model.get_params() == type(model)().get_params()
    names = {name for option in fit.params for name in option.opts}
    assert {OPTION_NAMES[one.name] for one in options_for(method) if one.command} <= names


@pytest.mark.parametrize("method", METHODS)
def test_docstrings_describe_every_parameter(method):
    text = inspect.getdoc(ESTIMATORS[method])
    for one in options_for(method):
        assert re.search(rf"^{one.name} : .*default=", text, re.MULTILINE), one.name
    assert "%(" not in text


def test_a_placeholder_is_filled_in_with_its_indentation_and_percent_signs_stay():
    @documented("dpca")
    class Example:
        """Keeps 70 %.

        %(parameters)s
        """

    lines = Example.__doc__.splitlines()
    assert "Keeps 70 %." in lines[0]
    start = next(number for number, line in enumerate(lines) if "cv : int in [2, 1000] or None, default=5" in line)
    indent = len(lines[start]) - len(lines[start].lstrip())
    assert lines[start + 1].startswith(" " * (indent + 4) + "Number of folds")


GOOD = {
    "n_components": (1, "auto", None),
    "shrinkage": (0, 1.0, 0.3, "auto", "ledoit-wolf", None),
    "background_weights": ([1, 2], "spectral", None),
    "smooth": ((4, 5), "chain"),
    "cv": (2, None),
    "random_state": (0, 2**32 - 1, None, np.random.RandomState(0)),
    "target_label": (None, 1, "ill", True),
    "kernel": ("rbf", "additive_chi2", max, ("rbf", {}), ["rbf", "linear"]),
    "kernel_params": ({}, None),
    "tol": (0.5, None),
    "alpha": (0, 2, np.float32(1.5)),
}
BAD = {
    "n_components": (0, 1.5, "all", True),
    "shrinkage": (-0.1, 1.1, float("nan"), "clusters"),
    "background_weights": ("best", 3),
    "center": ("target", None),
    "scale": ("each", 1),
    "cv": (1, "auto"),
    "random_state": (-1, 2**32, "now"),
    "kernel": (None, 1),
    "kernel_params": ([],),
    "tol": (0.0, 1.0),
    "gamma": (0.0, -1, "auto"),
    "solver": ("svd",),
}


def test_the_values_that_the_table_says_are_allowed_and_nothing_else():
    for name, values in GOOD.items():
        for value in values:
            check_parameters(OPTIONS[name].methods[0], {name: value})
    for name, values in BAD.items():
        for value in values:
            with pytest.raises((ValueError, TypeError)) as caught:
                check_parameters(OPTIONS[name].methods[0], {name: value})
            assert caught.value.parameter == name
            assert f"{name}={value!r} cannot be used. Use {OPTIONS[name].phrase}." == str(caught.value)


def test_errors_are_phrased_with_options():
    error = InvalidValueError("is outside", parameter="n_components", value=0, advice="See `groups` and `shrinkage`.")
    assert error.phrased(OPTION_NAMES) == "--n-components 0 is outside. See --subject-column and --shrinkage."


def test_options_offer_what_the_readers_have():
    known = {option.name for option in fit.params} | {"label"}
    other = {"paths", "na_values", "batch_rows", "progress"}
    assert set(inspect.signature(standout.scan).parameters) - other <= known


def test_values_are_read_as_parameters_have_them():
    given = options_of(
        *("--background-weights", "1", "--alpha", "2.5", "--n-components", "3", "--shrinkage", "none"),
        *("--where", "a=b=c", "--smooth", "3x4", "--image-shape", "28x28"),
    )
    names = ("background_weights", "alpha", "n_components", "shrinkage", "smooth", "image_shape")
    assert [given[name] for name in names] == [[1.0], 2.5, 3, None, (3, 4), (28, 28)]
    assert given["where"] == (("a", "b=c"),)
    assert [options_of(*way)["in_memory"] for way in ([], ["--in-memory"], ["--stream"])] == [None, True, False]
    for name, word in (
        ("--alpha", "much"),
        ("--n-components", "2.5"),
        ("--cv", "x"),
        ("--where", "a"),
        ("--smooth", "3x"),
    ):
        with pytest.raises(click.BadParameter) as caught:
            options_of(name, word)
        assert word in caught.value.message


def test_without_a_command_there_is_help(tmp_path):
    done = run(cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, "")
    for command in COMMANDS:
        assert re.search(f"^  {command} ", done.stdout, re.MULTILINE)
    assert list(app.commands) == list(COMMANDS)
    done = subprocess.run([sys.executable, "-m", "standout", "--version"], capture_output=True, text=True, check=False)
    assert done.stdout == f"standout {standout.__version__}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command, capsys):
    works_here(command, "--help")
    said = capsys.readouterr().out
    assert said.startswith(f"Usage: standout {command}")
    assert max(map(len, said.splitlines())) <= 80
    assert said.rstrip().endswith("-h, --help  Show this message and exit.")


def test_the_help_loads_neither_numpy_nor_scikit_learn():
    script = "import sys\nfrom standout.cli import main\nmain(['fit', '--help'])\n"
    script += "print([name for name in ('numpy', 'sklearn', 'scipy', 'rich') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
