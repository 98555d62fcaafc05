"""The commands, what they check, and how the command line names parameters.

Nothing here loads NumPy: the help, the version and a wrong option do not have to wait for it. A command checks what it
is asked, and hands over to its module.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath
from shlex import quote
from typing import Any

import click
from click.core import ParameterSource

from standout import __version__
from standout._messages import LONGEST_PATH, Names, short
from standout.cli._display import loading
from standout.cli._options import (
    BUDGET,
    COMPARING,
    FILES,
    METHOD,
    METHODS,
    MOST_SEED,
    OF_KERNELS,
    OUTPUT,
    PAGE,
    PARAMETERS,
    REPORT,
    SETTINGS,
    WITH_KERNELS,
    SectionedCommand,
    Sides,
    data_options,
    file_options,
    method_option,
    option,
    option_name,
    overwrite_option,
    parameter_options,
    quiet_option,
    report_options,
    spreadsheet_option,
    subject_options,
    with_options,
)

# --- commands ---------------------------------------------------------------------------------------------------------


class Commands(click.Group):
    """The commands, in the order in which a user meets them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the commands."""
        return list(self.commands)


@click.group(cls=Commands, context_settings=SETTINGS)
@click.version_option(__version__, prog_name="standout", message="%(prog)s %(version)s")
def app() -> None:
    """What stands out in one dataset against others?

    Given a target and one or more backgrounds, finds the low-dimensional view in which the target varies and the
    backgrounds do not. Try: standout demo
    """


@app.command("fit", cls=SectionedCommand, short_help="Find what stands out in TARGET, and write a folder.")
@with_options(
    *data_options,
    *subject_options,
    option(FILES, "--from-sums", is_flag=True),
    method_option,
    *parameter_options,
    *report_options,
    option(OUTPUT, "-o --output", "OUT", help="Folder to write.", required=True),
    overwrite_option,
    spreadsheet_option,
    quiet_option,
)
@click.pass_context
def fit(context: click.Context, /, **options: Any) -> None:
    """Find what stands out in TARGET against the backgrounds, and write a folder with the answer.

    TARGET is a file (CSV, TSV, Parquet, Arrow, .npy, .npz, .mat, .h5ad, Zarr), a folder of such files, or a pattern in
    quotes. The backgrounds are files of their own (--background), or other rows of the same file (--group-column NAME
    --target GROUP). Files larger than memory are read in parts.

    The folder has report.html (look at it first), figure.png, scores.csv, loadings.csv, summary.json and the model. It
    appears once it is complete. If something else has appeared there meanwhile, the result is put beside it.

    With --from-sums, TARGET and the backgrounds are files that standout release wrote. A pattern in quotes adds up the
    sums of several places.
    """
    if options["from_sums"]:
        from standout.cli._private import fit_sums

        return fit_sums(context, options)
    check_options(context, options, [options["method"]])
    with loading():
        from standout.cli._fit import fit_files

    return fit_files(options, command_line(context.obj or []))


@app.command("transform", cls=SectionedCommand, short_help="Write the scores of new rows.")
@with_options(
    click.argument("model_path", metavar="MODEL"),
    click.argument("data", metavar="NEW"),
    *file_options,
    option(OUTPUT, "-o --output", "OUT", help="CSV file to write.", required=True),
    overwrite_option,
    spreadsheet_option,
    quiet_option,
)
def transform(**options: Any) -> None:
    """Write the scores of the rows of NEW: a file of any kind that fit reads, a folder, or a pattern in quotes.

    MODEL is the folder that fit wrote, or a model in a file. The data are prepared as for the fit (logarithm, scale,
    missing values). Columns are found by name; further columns are left out. Files are read in parts.
    """
    from standout.cli._models import transform_files

    transform_files(options)


@app.command("report", cls=SectionedCommand, short_help="Make the report of an earlier fit again.")
@with_options(click.argument("folder", metavar="OUT"), quiet_option)
def report(**options: Any) -> None:
    """Make report.html and figure.png in OUT again, from what fit has kept there; the data are not needed."""
    from standout.cli._models import report_again

    report_again(options)


@app.command("info", cls=SectionedCommand, short_help="Describe a model.")
@with_options(click.argument("model_path", metavar="MODEL"))
def info(**options: Any) -> None:
    """Describe MODEL: the folder that fit wrote, or a model in a file."""
    from standout.cli._models import describe

    describe(options)


@app.command("compare", cls=SectionedCommand, short_help="Show PCA, cPCA, dPCA and their kernel forms side by side.")
@with_options(
    *data_options,
    *subject_options,
    option(METHOD, "--methods", "M1,M2,...", default="pca,cpca,dpca,kpca,kcpca,kdpca"),
    *parameter_options,
    option(OUTPUT, "-o --output", "OUT", help="HTML file to write.", required=True),
    overwrite_option,
    quiet_option,
)
@click.pass_context
def compare(context: click.Context, /, **options: Any) -> None:
    """Show PCA, cPCA, dPCA and their kernel forms of TARGET side by side, in one page.

    Data are given as for standout fit. All methods get the same prepared data; each uses the options that it has.
    """
    methods = list(dict.fromkeys(word.strip() for word in options["methods"].split(",") if word.strip()))
    if not methods or not set(methods) <= set(METHODS):
        raise click.UsageError(
            f"--methods {options['methods']!r} is not a list of methods. Choose among {', '.join(METHODS)}."
        )
    check_options(context, options, methods)
    with loading():
        from standout.cli._compare import compare_methods

    compare_methods(options, methods)


@app.command("explore", cls=SectionedCommand, short_help="Choose the question by hand, on a page that answers at once.")
@with_options(
    click.argument("data", metavar="TARGET", required=False),
    *data_options[1:],
    method_option,
    *parameter_options,
    option(REPORT, "--image-shape", "HEIGHTxWIDTH", type=Sides()),
    option(PAGE, "--demo", is_flag=True),
    option(PAGE, "--session", "FILE"),
    option(PAGE, "--save", "OUT"),
    option(PAGE, "--port", "N", type=click.IntRange(0, 65535), default=0),
    option(PAGE, "--browser/--no-browser", default=True, show_default=False),
    quiet_option,
)
@click.pass_context
def explore(context: click.Context, /, **options: Any) -> None:
    """Choose target and background by hand, and see at once what stands out.

    Opens a page in the browser. Rows are chosen by their groups, or by a lasso around points. Data are given as for
    standout fit, but target and backgrounds may be left open: then the page begins with PCA of all rows.

    The page is for this machine only, and for those who know its address. It ends with Ctrl-C, or when its last page is
    closed.
    """
    if options["demo"] and options["data"] is not None:
        raise click.UsageError("TARGET and --demo exclude each other. Leave one out.")
    if not options["demo"] and options["data"] is None:
        raise click.UsageError("there is nothing to explore. Give a file, or --demo for data that need none.")
    check_options(context, options, [options["method"]], complete=False)
    from standout.cli._explore import explore_files

    explore_files(options, given_options(context))


@app.command("release", cls=SectionedCommand, short_help="Write sums with noise that may leave this place.")
@with_options(
    click.argument("data", metavar="ROWS"),
    option(BUDGET, "--ranges", "FILE"),
    option(BUDGET, "--whiten-by", "FILES"),
    option(BUDGET, "--epsilon", "NUMBER", type=float, required=True, help="Privacy: smaller protects more."),
    option(BUDGET, "--delta", "NUMBER", type=float, required=True),
    option(BUDGET, "--person-column", "NAME"),
    option(BUDGET, "--max-rows", "N", type=int, default=1),
    option(BUDGET, "--radius", "NUMBER", type=float),
    *file_options,
    option(OUTPUT, "-o --output", "OUT", help="File to write, such as place1.sums.", required=True),
    overwrite_option,
    quiet_option,
)
def release(**options: Any) -> None:
    """Write count, means and sums of products of ROWS with noise: a differentially private release.

    No row is in the file. It can be sent to others, who compare it with those of other places by standout fit
    --from-sums. Every release of the same rows spends its own budget. ROWS is a file, a folder, or a pattern in quotes.
    """
    from standout.cli._private import release_file

    release_file(options)


@app.command("demo", cls=SectionedCommand, short_help="Show the main job on data that need no file.")
@with_options(
    method_option, option(OUTPUT, "-o --output", "OUT", help="Folder to write.", default="standout-demo"), quiet_option
)
def demo(**options: Any) -> None:
    """Find handwritten digits that are hidden over pieces of photographs.

    PCA of the images shows the photographs. Given other pieces of the same photographs as background, discriminative
    PCA shows the digits. The labels of the images are used for the colours only.
    """
    from standout.cli._demo import show_digits

    # An earlier demo is replaced.
    defaults = fit.make_context("fit", ["TARGET", "--output", "OUT"]).params
    show_digits({**defaults, **options, "overwrite": True})


def command_line(words: Sequence[str]) -> str:
    """Give the command as it was typed, but of absolute paths only the last part: a page may be sent to others."""
    return " ".join(
        quote(PurePath(word).name if PurePath(word).is_absolute() else word) for word in ["standout", *words]
    )


# --- what the options ask for -----------------------------------------------------------------------------------------


def given_options(context: click.Context) -> set[str]:
    """Name the parameters that were given on the command line."""
    names = [str(param.name) for param in context.command.params]
    return {name for name in names if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}


def check_options(
    context: click.Context, options: dict[str, Any], methods: Sequence[str], *, complete: bool = True
) -> None:
    """Refuse an option that none of the methods has, and options that exclude each other; set what follows.

    If the question need not be complete, target and backgrounds may be left to be chosen.
    """
    given = given_options(context)
    having = {parameter.name: parameter.methods for parameter in PARAMETERS} | {"bandwidth": WITH_KERNELS}
    for name, those in having.items():
        if name in given and not set(those) & set(methods):
            raise click.UsageError(
                f"{option_name(name)} is for {', '.join(those)}, not for {', '.join(methods)}. Leave it out, or choose "
                "another method."
            )
    if "bandwidth" in given and "kernel" not in given:
        options["kernel"] = "gaussian"
    kernel = options["kernel"]
    for name, kernels in OF_KERNELS.items():
        if name in given and kernel not in kernels:
            raise click.UsageError(
                f"{option_name(name)} is for --kernel {', '.join(kernels)}, not {kernel}. Leave it out, or choose "
                "another kernel."
            )
    seed = options["random_state"]
    if seed is not None and not 0 <= seed <= MOST_SEED:
        raise click.UsageError(f"--random-state {seed} is not in the range from 0 to {MOST_SEED}.")
    others = [method for method in methods if method != "dpca"]
    if options["n_components"] == "auto" and others:
        raise click.UsageError(f"--n-components auto is for dpca, not for {others[0]}. Give a number.")
    if options["test"] == "analytic" and "dpca" not in methods:
        raise click.UsageError(f"--test analytic is for dpca, not for {methods[0]}. Use --test permutation.")
    rule, others = options["background_weights"], [method for method in methods if method in ("cpca", "kcpca")]
    if isinstance(rule, str) and others:
        raise click.UsageError(f"--background-weights {rule} is for dpca and kdpca, not for {others[0]}. Give numbers.")
    if options["side"] != "target" and "shrinkage" not in given:
        # The default looks for groups that the target alone has.
        options["shrinkage"] = "held-out"
    if options["checkpoint"] is not None:
        if options["in_memory"]:
            raise click.UsageError("--checkpoint is for files that are read in parts. Leave out --in-memory.")
        options["in_memory"] = False
    if options.get("variation", "all") != "all" and options.get("subject_column") is None:
        raise click.UsageError("--variation needs --subject-column, the column that names the subjects.")
    if options["blocks"] is not None and options.get("subject_column") is not None:
        raise click.UsageError("--blocks and --subject-column exclude each other. Leave one out.")
    if options.get("subject_pattern") is not None:
        _check_pattern(options["subject_pattern"], options.get("subject_column"))
    _check_form(options, complete and any(method in COMPARING for method in methods), complete)


def _check_pattern(pattern: str, column: str | None) -> None:
    """Check the pattern that finds the subject in a word."""
    if column is None:
        raise click.UsageError("--subject-pattern needs --subject-column, the column that it is for.")
    try:
        re.compile(pattern)
    except re.error as error:
        raise click.UsageError(
            f"--subject-pattern {pattern!r} is no regular expression: {error}. Give, for example, '(.*)_'."
        ) from None


def _check_form(options: dict[str, Any], need_background: bool, need_target: bool) -> None:
    """Check that the backgrounds are files, or groups of one file, and that there are some if they are needed."""
    by_group = options["group_column"] is not None
    if by_group and options["background"]:
        raise click.UsageError("--background and --group-column exclude each other. Give files, or one file's groups.")
    if by_group and need_target and not options["target"]:
        raise click.UsageError("--group-column needs --target, the group that is the target.")
    if not by_group and (options["target"] or options["background_group"]):
        raise click.UsageError("--target and --background-group need --group-column, the column that has the groups.")
    if need_background and not by_group and not options["background"]:
        raise click.UsageError(
            "there is nothing to compare with. Give --background FILE, or --group-column with --target, or "
            "--method pca."
        )


# Parameters whose options have another name.
CALLED = dict.fromkeys(("groups", "background_groups", "beside"), "subject_column")


class Options(Names):
    """How the command line names parameters and writes values."""

    def parameter(self, name: str) -> str:
        """Give the option of a parameter; a parameter without an option can be set in Python only."""
        name = CALLED.get(name, name)
        return option_name(name) if name in _known() else f"{name} (in Python)"

    def setting(self, name: str, value: Any) -> str:
        """Write an option with its value."""
        if name == "kernel_params" and isinstance(value, dict) and set(value) == {"bandwidth"}:
            name, value = "bandwidth", value["bandwidth"]
        if name not in _known():
            return f"{super().setting(name, value)} (in Python)"
        return option_name(name) if value is True else f"{option_name(name)} {_written(value)}"

    def value(self, word: str) -> str:
        """Write a value as a user would write it after an option."""
        return _written(None if word == "None" else word)


OPTIONS = Options()


def _known() -> set[str]:
    return {str(param.name) for command in (fit, release) for param in command.params}


def _written(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ",".join(map(_written, value))
    return "none" if value is None else quote(short(value, LONGEST_PATH))
