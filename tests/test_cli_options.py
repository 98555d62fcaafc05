"""Options are named after parameters and have their defaults; messages name options; help waits for nothing."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

import standout
from cli_runs import run, works_here
from standout._messages import Message
from standout.cli._app import OPTIONS, fit
from standout.cli._fit import ESTIMATORS, make_estimator
from standout.cli._options import DIFFERENT, FORMATS, METHODS, MISSING, PARAMETERS, STANDARDS, option_name

COMMANDS = ("fit", "transform", "report", "info", "compare", "release", "demo")


def options_of(*arguments):
    return fit.make_context("fit", ["target.csv", "-o", "out", *arguments]).params


@pytest.mark.parametrize("method", METHODS)
def test_options_have_the_names_and_the_defaults_of_the_parameters(method):
    signature = inspect.signature(getattr(standout, ESTIMATORS[method]).__init__).parameters
    model = make_estimator(options_of("--method", method))
    for parameter in PARAMETERS:
        # Other methods than discriminative PCA are tested after the fit.
        if method in parameter.methods and (parameter.name != "test" or method == "dpca"):
            default = signature[parameter.name].default
            assert parameter.default == default, parameter.name
            expected = DIFFERENT[parameter.name][0] if parameter.name in DIFFERENT else default
            assert getattr(model, parameter.name) == expected, parameter.name
            assert any(option_name(parameter.name) in option.opts for option in fit.params)


def test_what_differs_from_the_classes_is_in_the_help_and_on_the_pages(capsys):
    works_here("fit", "--help")
    section = capsys.readouterr().out.split("Defaults that differ")[1]
    page = (Path(__file__).parents[1] / "docs" / "choosing.md").read_text()
    for name, (value, _) in DIFFERENT.items():
        assert re.search(f"{option_name(name)} +{value}", section)
        assert f"`{option_name(name)} {value}`" in page


def test_parameters_of_reading_and_preparing_have_options_of_their_names():
    known = {option.name for option in fit.params}
    for function, others in (
        # Columns beside the rows are those of --subject-column and --adjust.
        (standout.scan, {"paths", "batch_rows", "progress", "in_parts", "beside"}),
        (standout.io.prepare, {"target", "backgrounds", "copy", "names"}),
    ):
        assert set(inspect.signature(function).parameters) - others <= known


def test_the_options_offer_what_the_readers_take():
    assert FORMATS == standout.io.FORMATS
    assert MISSING == standout.io.MISSING
    assert STANDARDS == standout.io.STANDARDS


def test_values_are_read_as_parameters_take_them():
    words = ["--background-weights", "1", "--alpha", "2.5", "--n-components", "3", "--shrinkage", "none"]
    given = options_of(*words, "--where", "a=b=c")
    assert [given[name] for name in ("background_weights", "alpha", "n_components", "shrinkage")] == [
        [1.0],
        2.5,
        3,
        None,
    ]
    assert given["where"] == (("a", "b=c"),)
    assert options_of("--alpha", "1,2")["alpha"] == [1.0, 2.0]
    assert [options_of(*way)["in_memory"] for way in ([], ["--in-memory"], ["--stream"])] == [None, True, False]
    for name, word in (("--alpha", "much"), ("--n-components", "2.5"), ("--test", "3"), ("--where", "a")):
        with pytest.raises(click.BadParameter) as caught:
            options_of(name, word)
        assert word in caught.value.message


PHRASED = {
    Message("is outside [0, 1]", parameter="shrinkage", value=1.5, advice="Use {v.auto} or {v.None}."): (
        "--shrinkage 1.5 is outside [0, 1]. Use auto or none."
    ),
    Message("is missing", parameter="group_column", value="my column"): "--group-column 'my column' is missing.",
    Message("x", advice="Use {p.missing:drop-rows} or {p.log1p:True}."): "x. Use --missing drop-rows or --log1p.",
    Message("is negative", parameter="kernel_params", value={"bandwidth": -2.0}): "--bandwidth -2.0 is negative.",
    Message("is negative", parameter="background_weights", value=[1, -1]): "--background-weights 1,-1 is negative.",
    Message("is unknown", parameter="solver", value="svd"): "solver='svd' (in Python) is unknown.",
    Message("{p.solver} is for {columns}", columns="'{p.alpha}'"): "solver (in Python) is for '{p.alpha}'.",
}


@pytest.mark.parametrize("message", PHRASED, ids=PHRASED.values())
def test_parameters_are_written_as_options(message):
    assert message.phrased(OPTIONS) == PHRASED[message]


def test_without_a_command_there_is_help(tmp_path):
    done = run(cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == ""
    for command in COMMANDS:
        assert re.search(f"^  {command} ", done.stdout, re.MULTILINE)
    done = subprocess.run([sys.executable, "-m", "standout", "--version"], capture_output=True, text=True, check=False)
    assert done.stdout == f"standout {standout.__version__}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command, capsys):
    works_here(command, "--help")
    said = capsys.readouterr().out
    assert said.startswith(f"Usage: standout {command}")
    assert max(map(len, said.splitlines())) <= 80
    assert said.rstrip().endswith("-h, --help  Show this message and exit.")
