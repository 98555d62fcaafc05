"""The commands, and the checks of their options.

This module does not import NumPy, so that the help, the version and errors in options are fast. A command checks its
options, and then imports the module that does the work.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import PurePath
from shlex import quote
from typing import Any

import click
from click.core import ParameterSource

from standout import __version__
from standout._options import KERNELIZED, METHODS, OPTION_NAMES, OPTIONS, POLYNOMIALS
from standout.cli import _options as o
from standout.cli._options import COMMAND_METHODS, FITTED_AS, SectionedCommand, option, refuse

Check = Callable[[dict[str, Any]], None]
# Parameters that concern backgrounds. PCA does not use them, because it has no background.
OF_BACKGROUNDS = ("shrinkage", "epsilon", "background_weights")
# Parameters of kernels, each with the kernels that use it.
OF_KERNELS = {
    "bandwidth": ("gaussian",),
    "gamma": ("rbf", "poly", "laplacian", "sigmoid", "chi2"),
    "degree": POLYNOMIALS,
    "coef0": (*POLYNOMIALS, "sigmoid"),
}


class Commands(click.Group):
    """All commands. The help lists them in the order in which they are defined."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands. Click itself would sort them."""
        return list(self.commands)


HELP = """What stands out in one dataset against others?

Given a target and one or more backgrounds, finds the low-dimensional view in which the target varies and the
backgrounds do not. Try: standout demo
"""
app = Commands("standout", help=HELP, context_settings=o.SETTINGS)
click.version_option(__version__, prog_name="standout", message="%(prog)s %(version)s")(app)


def argument(name: str, metavar: str, **settings: Any) -> click.Argument:
    """Return a positional argument of a command."""
    return click.Argument([name], metavar=metavar, **settings)


def output_option(help: str, **settings: Any) -> click.Option:
    """Return the option that names the output."""
    return option(o.OUTPUT, "-o --output", help, "OUT", **(settings or {"required": True}))


def command(short_help: str, runs: str, *params: click.Parameter) -> Callable[[Check], click.Command]:
    """Return a decorator that makes a command.

    The decorated function checks the options. Then `runs`, a function written as "module:function", does the work. Both
    functions get one dict: the options, the names of the options that the user typed (`given`), and the `command` line.
    """

    def decorate(check: Check) -> click.Command:
        @click.pass_context
        def invoked(context: click.Context, /, **values: Any) -> None:
            given = {name for name in values if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}
            # Keep only the last part of absolute paths: a report may be sent to others.
            words = [PurePath(word).name if PurePath(word).is_absolute() else word for word in context.obj or []]
            values |= {"given": given, "command": " ".join(map(quote, ["standout", *words]))}
            check(values)
            module, _, name = runs.partition(":")
            getattr(import_module(f"standout.cli.{module}"), name)(values)

        settings: Any = {"params": list(params), "short_help": short_help, "help": check.__doc__}
        return app.command(check.__name__, cls=SectionedCommand, context_settings=o.SETTINGS, **settings)(invoked)

    return decorate


@command(
    "Find what stands out in TARGET, and write a folder.",
    "_fit:fit_files",
    *(argument("data", "TARGET"), *o.data_options, *o.subject_options),
    *o.kinds_of_data,
    *(o.method_option, *o.parameter_options, *o.test_options, *o.report_options, o.image_option),
    *(output_option("Folder to write."), *o.writing_options, o.spreadsheet_option),
)
def fit(options: dict[str, Any]) -> None:
    """Find what stands out in TARGET against the backgrounds, and write a folder with the answer.

    TARGET is a file (CSV, TSV, Parquet, Arrow, .npy, .npz, .mat, .h5ad, Zarr), a folder of such files, or a pattern in
    quotes. The backgrounds are further files (--background), or other rows of the same file (--condition-column NAME
    --target CONDITION). Files larger than memory are read in parts.

    The folder has report.html (look at it first), figure.png, scores.csv, columns.csv, summary.json and the model. It
    appears once it is complete. If something else has appeared there meanwhile, the result is put beside it.

    With --from-sums, TARGET and the backgrounds are files of standout release. If a pattern in quotes matches several
    files, they are added.

    With --cube, the pixels of an image are compared with their noise (minimum noise fraction). The folder has images of
    the components, too: images.png and images.npy.
    """
    cube, tables = options["cube"], [one for one in (*o.data_options, *o.subject_options) if one.name != "variable"]
    alien = [one.opts[-1] for one in tables if one.name in options["given"]]
    refuse(
        (cube and alien, f"{', '.join(alien)}: for tables, not for --cube."),
        ("noise" in options["given"] and not cube, "--noise needs --cube, an image of rows x columns x bands."),
    )
    check_options(options, [options["method"]], complete=not cube)


@command(
    "Write the scores of new rows.",
    "_further:transform_files",
    *(argument("model_path", "MODEL"), argument("data", "NEW"), *o.file_options),
    *(output_option("CSV file to write."), *o.writing_options, o.spreadsheet_option),
)
def transform(options: dict[str, Any]) -> None:
    """Write the scores of the rows of NEW: a file of any kind that fit reads, a folder, or a pattern in quotes.

    MODEL is the folder that fit wrote, or a model in a file. The data are prepared as for the fit (logarithm, missing
    values). Columns are found by name; further columns are left out. Files are read in parts.
    """


@command("Describe a model.", "_further:describe", argument("model_path", "MODEL"))
def info(options: dict[str, Any]) -> None:
    """Describe MODEL: the folder that fit wrote, or a model in a file."""


@command(
    "Show PCA, cPCA, dPCA and their kernel forms side by side.",
    "_fit:compare_methods",
    *(argument("data", "TARGET"), *o.data_options, *o.subject_options),
    option(o.METHOD, "--methods", "Which to compare.", "M1,M2,...", default="pca,cpca,dpca,kpca,kcpca,kdpca"),
    *(*o.parameter_options, o.image_option, output_option("HTML file to write."), *o.writing_options),
)
def compare(options: dict[str, Any]) -> None:
    """Show PCA, cPCA, dPCA and their kernel forms of TARGET side by side, in one page.

    Data are given as for standout fit. All methods get the same prepared data; each uses the options that it has.
    """
    given = options["methods"]
    options["methods"] = methods = list(dict.fromkeys(word.strip() for word in given.split(",")))
    unknown = not set(methods) <= set(COMMAND_METHODS)
    refuse((unknown, f"--methods {given!r} is not a list of methods. Use {', '.join(COMMAND_METHODS)}."))
    check_options(options, methods)


@command(
    "Compare many conditions with one control.",
    "_further:screen_file",
    argument("data", "FILE"),
    option(o.FILES, "--condition-column", "Column with the condition of each row.", "NAME", required=True),
    option(o.FILES, "--control", "Condition that is the control.", "CONDITION", required=True),
    *(*o.file_options, *o.value_options, *o.subject_options[:2]),
    option(o.METHOD, "--random-state", "Seed of everything random.", "N", type=click.IntRange(0, 2**32 - 1)),
    output_option("CSV file to write, or a page if it ends in .html."),
    *(*o.writing_options, o.spreadsheet_option),
)
def screen(options: dict[str, Any]) -> None:
    """Which conditions of FILE stand out against the control, in their mean or in their spread?

    Writes one row per condition: rows, ratio, spread, shift, p-value, q-value, leading columns and a verdict.
    """
    check_options(options, ["dpca"], complete=False)


@command(
    "Choose target and background by hand, on an interactive page.",
    "_further:explore_files",
    *(argument("data", "TARGET", required=False), *o.data_options, *o.subject_options[:2]),
    *(o.method_option, *o.parameter_options, o.image_option, *o.page_options, o.quiet_option),
)
def explore(options: dict[str, Any]) -> None:
    """Choose target and background by hand, and see what stands out.

    Opens a page in the browser. Rows are chosen by their conditions, or by a lasso around points. Data are given as for
    standout fit, but target and backgrounds may be left open: then the page begins with PCA of all rows.

    The page is for this machine only, and for those who know its address. It ends with Ctrl-C, or when its last page is
    closed.
    """
    refuse((options["demo"] == (options["data"] is not None), "give either a file to explore, or --demo."))
    check_options(options, [options["method"]], complete=False)


@command(
    "Write private sums, with noise, for others.",
    "_private:release_file",
    *(argument("data", "ROWS"), *o.budget_options, *o.file_options),
    *(output_option("File to write, such as site1.sums."), *o.writing_options),
)
def release(options: dict[str, Any]) -> None:
    """Write count, means and sums of products of ROWS with noise: a differentially private release.

    The file has no rows. It can be sent to others, who compare it with files of other sites: standout fit --from-sums.
    Every release of the same rows spends more budget. ROWS is a file, a folder, or a pattern in quotes.
    """
    alone, same = options["person_column"] is None, (options["ranges"] is None) == (options["whiten_by"] is None)
    refuse(
        (options["max_rows"] != 1 and alone, "--max-rows needs --person-column, the column of the persons."),
        (same, "give either --ranges FILE or --whiten-by FILES. Bounds are never taken from the rows."),
    )


@command(
    "Run an example without input files.",
    "_further:show_digits",
    *(o.method_option, output_option("Folder to write.", default="standout-demo"), o.quiet_option),
)
def demo(options: dict[str, Any]) -> None:
    """Find handwritten digits that are laid over photographs.

    PCA of the images shows the photographs. Given other pieces of the same photographs as background, discriminative
    PCA shows the digits. The labels of the images are used for the colours only.
    """
    # An earlier demo is replaced.
    options |= {**fit.make_context("fit", ["TARGET", "-o", "OUT"]).params, **options, "overwrite": True}


# --- checks of the options -----------------------------------------------------------------------------------------


def check_options(options: dict[str, Any], methods: Sequence[str], *, complete: bool = True) -> None:
    """Refuse options that none of the methods has or that exclude each other; set dependent options.

    If `complete` is False, the target and the backgrounds may be missing.
    """
    given = options["given"]
    fitted = {FITTED_AS.get(method, method) for method in methods}
    having = {name: one.methods for name, one in OPTIONS.items()} | {"bandwidth": KERNELIZED}
    for name, those in having.items():
        unused = name in OF_BACKGROUNDS and set(methods) <= set(FITTED_AS)
        alien = name in given and (unused or not set(those) & fitted)
        refuse((alien, f"{OPTION_NAMES[name]} is for {', '.join(those)}, not for {', '.join(methods)}."))
    if "bandwidth" in given and "kernel" not in given:
        options["kernel"] = "gaussian"
    for name, kernels in OF_KERNELS.items():
        alien = name in given and options.get("kernel") not in kernels
        refuse((alien, f"{OPTION_NAMES[name]} is for --kernel {', '.join(kernels)}, not {options.get('kernel')}."))
    column, pattern, blocks = (options.get(name) for name in ("subject_column", "subject_pattern", "blocks"))
    by_column, files, target = options["condition_column"] is not None, options.get("background"), options.get("target")
    named, alone = target or options.get("background_condition"), column is None
    single = complete and any(method in METHODS for method in methods) and not by_column and not files
    refuse(
        (options.get("within") and alone, "--within needs --subject-column, the column that names the subjects."),
        (blocks and not alone, "--blocks and --subject-column exclude each other. Leave one out."),
        (pattern is not None and alone, "--subject-pattern needs --subject-column, the column that it is for."),
        (by_column and files, "--background and --condition-column exclude each other. Give files, or conditions."),
        (by_column and complete and not target, "--condition-column needs --target, the condition to look at."),
        (named and not by_column, "--target and --background-condition need --condition-column, their column."),
        (single, "there is nothing to compare with. Give --background, or --condition-column."),
    )
    try:
        re.compile(pattern or "")
    except re.error as error:
        raise click.UsageError(f"--subject-pattern {pattern!r} is not a regular expression: {error}.") from None
