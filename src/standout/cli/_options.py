"""The options: what they are called, their values and defaults, and their help.

Nothing here loads NumPy: the help, the version and a wrong option do not have to wait for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import click

METHODS = {
    "dpca": "discriminative PCA",
    "kdpca": "kernel discriminative PCA",
    "cpca": "contrastive PCA",
    "kcpca": "kernel contrastive PCA",
    "pca": "PCA",
    "kpca": "kernel PCA",
}
# Those of standout.io, which would take a second to load. A test compares them.
FORMATS = ("csv", "tsv", "parquet", "arrow", "feather", "npy", "npz", "mat", "h5ad", "zarr")
MISSING = ("error", "drop-rows", "drop-columns", "mean")
STANDARDS = ("none", "background", "pooled")
VARIATIONS = ("all", "within", "between")

COMPARING = ("dpca", "kdpca", "cpca", "kcpca")
SIDES = ("target", "background", "both")
WITH_KERNELS = ("kdpca", "kcpca", "kpca")
POLYNOMIALS = ("poly", "homogeneous_polynomial", "inhomogeneous_polynomial")
KERNELS = ("rbf", "gaussian", "laplacian", "linear", *POLYNOMIALS, "cosine", "sigmoid", "chi2")
# The kernels that have these parameters.
OF_KERNELS = {
    "bandwidth": ("gaussian",),
    "gamma": ("rbf", "poly", "laplacian", "sigmoid", "chi2"),
    "degree": POLYNOMIALS,
}
# The largest seed that NumPy's older random numbers, which scikit-learn uses, take.
MOST_SEED = 2**32 - 1

# Defaults that differ on purpose from those of the Python classes: the value here, and why.
DIFFERENT = {
    "shrinkage": ("clusters", "the rule with the best views of labelled data; it takes more fits. Python: auto"),
    "epsilon": ("clusters", "the same for kernels; Python: scaled"),
    "test": ("auto", "a report needs a verdict; Python: none"),
}

SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 110}
# The sections of the help.
FILES, KINDS, COLUMNS = "Target and backgrounds", "Kinds of files", "Columns and rows"
CELLS, LARGE = "Values", "Large files"
BUDGET, PAGE = "Bounds and budget", "The page"
METHOD, KERNEL, REPORT, OUTPUT, OTHER = "Method", "Kernels (kdpca, kcpca, kpca)", "Report", "Output", "Other"


# --- types of values --------------------------------------------------------------------------------------------------


class Value(click.ParamType):  # type: ignore[type-arg]
    """What a parameter of an estimator takes: words, a number, or numbers; ``none`` stands for None.

    Parameters
    ----------
    *words : str
    number : type or None
    several : {"never", "perhaps", "always"}
        Whether numbers separated by commas are taken, and whether a single number makes a list, too.
    """

    name = "value"

    def __init__(self, *words: str, number: type[int] | type[float] | None = float, several: str = "never") -> None:
        self.words, self.number, self.several = words, number, several

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Give the word, the number or the list of numbers."""
        if not isinstance(value, str):
            return value
        if value in self.words:
            return None if value == "none" else value
        try:
            if self.number is None:
                raise ValueError
            numbers = [self.number(part) for part in (value.split(",") if self.several != "never" else [value])]
        except ValueError:
            kinds = {None: [], int: ["a whole number"], float: ["a number"]}[self.number]
            kinds += ["numbers separated by commas"] if self.several != "never" else []
            self.fail(f"{value!r} is none of these: {', '.join([*kinds, *self.words])}.", param, ctx)
        return numbers if self.several == "always" or len(numbers) > 1 else numbers[0]


class Condition(click.ParamType):  # type: ignore[type-arg]
    """A column and a value: ``NAME=VALUE``."""

    name = "condition"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Give the name of the column and the value."""
        if "=" not in value:
            self.fail(f"{value!r} has no equals sign. Give, for example, tissue=liver.", param, ctx)
        return tuple(value.split("=", 1))


class Sides(click.ParamType):  # type: ignore[type-arg]
    """The sides of an image: ``28x28``."""

    name = "sides"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Give height and width."""
        if not isinstance(value, str):
            return value
        sides = value.lower().split("x")
        if len(sides) != 2 or not all(side.isdecimal() and 0 < int(side) < 10**6 for side in sides):
            self.fail(f"{value!r} is no height and width. Give, for example, 28x28.", param, ctx)
        return int(sides[0]), int(sides[1])


class Neighbours(click.ParamType):  # type: ignore[type-arg]
    """Which columns are neighbours: ``chain``, or ``grid:28x28``."""

    name = "neighbours"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Give what the parameter takes."""
        if not isinstance(value, str) or value in ("none", "chain"):
            return None if value == "none" else value
        kind, _, sides = value.partition(":")
        if kind != "grid":
            self.fail(f"{value!r} is none of these: chain, grid:HEIGHTxWIDTH, none.", param, ctx)
        return Sides().convert(sides, param, ctx)


# --- options ----------------------------------------------------------------------------------------------------------

Command = Callable[..., Any]


class SectionedOption(click.Option):
    """An option that knows its section of the help."""

    def __init__(self, *arguments: Any, section: str, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.section = section


class SectionedCommand(click.Command):
    """A command whose help lists its options in sections."""

    def __init__(self, name: str, **settings: Any) -> None:
        super().__init__(name, **{**settings, "context_settings": SETTINGS})

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections, in the order of their first options."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
            if record is not None:
                sections.setdefault(getattr(param, "section", OTHER), []).append(record)
        if KERNEL in sections:
            different = [(option_name(name), f"{value}: {why}") for name, (value, why) in DIFFERENT.items()]
            sections["Defaults that differ from those of the Python classes"] = different
        for name, records in sorted(sections.items(), key=lambda section: section[0] == OTHER):
            with formatter.section(name):
                formatter.write_dl(records)


def option(section: str, names: str, metavar: str | None = None, **settings: Any) -> Callable[[Command], Command]:
    """Make an option of a section, with its text in `HELP`; its default is shown, if it has one."""
    known = {"help": HELP.get(names.rpartition("--")[2]), "show_default": "default" in settings}
    return click.option(*names.split(), cls=SectionedOption, section=section, metavar=metavar, **{**known, **settings})


def option_name(parameter: str) -> str:
    """Give the option of a parameter: the one rule by which options are named."""
    return f"--{parameter.replace('_', '-')}"


@dataclass(frozen=True)
class Parameter:
    """A parameter of the estimators that has an option.

    Attributes
    ----------
    name : str
    default : object
        That of the classes; `DIFFERENT` has what differs.
    kind : click type
    metavar : str
    methods : sequence of str
        The methods that have the parameter.
    section : str
    """

    name: str
    default: Any
    kind: Any
    metavar: str
    methods: Sequence[str]
    section: str = METHOD

    def option(self) -> Callable[[Command], Command]:
        """Give the option."""
        default = DIFFERENT[self.name][0] if self.name in DIFFERENT else self.default
        shown = "none" if default is None else default
        return option(self.section, option_name(self.name), self.metavar, type=self.kind, default=shown)


WEIGHTS = Value("none", "worst-case", "best", "spectral", several="always")
TESTS = Value("none", "auto", "analytic", "permutation", number=None)
PARAMETERS = (
    Parameter("n_components", 2, Value("auto", number=int), "N|auto", tuple(METHODS)),
    Parameter(
        "shrinkage",
        "auto",
        Value("none", "auto", "held-out", "clusters"),
        "none|auto|held-out|clusters|NUMBER",
        ("dpca",),
    ),
    Parameter("background_weights", None, WEIGHTS, "W1,W2,...|RULE", COMPARING),
    Parameter("side", "target", click.Choice(SIDES), "|".join(SIDES), COMPARING),
    Parameter("n_columns", None, Value("none", "auto", number=int), "N|auto|none", ("dpca", "cpca")),
    Parameter("smooth", None, Neighbours(), "chain|grid:HEIGHTxWIDTH|none", ("dpca",)),
    Parameter("smoothness", 1.0, Value("held-out"), "NUMBER|held-out", ("dpca",)),
    Parameter("test", None, TESTS, "none|auto|analytic|permutation", COMPARING),
    Parameter("blocks", None, Value("none", "auto", number=int), "N|auto|none", COMPARING),
    Parameter(
        "alpha",
        "auto",
        Value("auto", "held-out", several="perhaps"),
        "auto|held-out|NUMBER|A1,A2,...",
        ("cpca", "kcpca"),
    ),
    Parameter("robust", None, Value("none", "rows", "cells", number=None), "none|rows|cells", tuple(METHODS)),
    Parameter("random_state", None, Value("none", number=int), "N|none", tuple(METHODS)),
    Parameter("kernel", "rbf", click.Choice(KERNELS), "NAME", WITH_KERNELS, KERNEL),
    Parameter("gamma", None, Value("none"), "NUMBER|none", WITH_KERNELS, KERNEL),
    Parameter("degree", 3, Value(), "NUMBER", WITH_KERNELS, KERNEL),
    Parameter(
        "epsilon",
        "scaled",
        Value("scaled", "held-out", "clusters"),
        "scaled|held-out|clusters|NUMBER",
        ("kdpca",),
        KERNEL,
    ),
)

HELP = {
    "background": "A background: a file, a folder, or a pattern in quotes. Repeatable.",
    "group-column": "Column that tells target and backgrounds apart, in one file.",
    "target": "Group that is the target. Repeatable.",
    "background-group": "Group that is a background; all others if none is named. Repeatable.",
    "format": f"If extensions do not tell: {', '.join(FORMATS)}.",
    "variable": "Array of an .npz, .mat or .zarr file, or layer of an .h5ad file.",
    "id-column": "Column that names the rows.",
    "columns": "Columns to use, or patterns as 'gene_*'. Repeatable.",
    "drop": "Columns to leave out, or patterns. Repeatable.",
    "where": "Rows to use: those with this value in this column. Repeatable.",
    "subject-column": "Column that tells whose row it is (mouse, donor, recording). Rows of a subject are not "
    "independent: folds and permutations then take whole subjects.",
    "subject-pattern": "Regular expression for the subject within that column: '(.*)_' takes mouse 309 of 309_12.",
    "adjust": "Column, such as age or batch, whose linear effect is taken out of each dataset first. Words are "
    "categories. Repeatable.",
    "variation": "With --subject-column: within takes off each subject's mean, between looks at subjects' means alone.",
    "blocks": "For rows in the order of time: so many neighbouring rows are held out and permuted together. auto: "
    "several times as many as rows remember.",
    "label-column": "Column for the colours and the clustering error, never for the fit.",
    "log1p": "Take log(1 + x) of every value, as is usual for counts.",
    "standardize": "Centre and scale columns by all background rows, or by all rows; the same for all datasets.",
    "missing": "What to do about missing values.",
    "stream": "Read all rows at once, or in parts as often as needed. Decided by the size of the data if not given.",
    "checkpoint": "Keep sums over the rows in this folder, so that an interrupted fit goes on. Implies --stream.",
    "method": "What to fit.",
    "methods": "Which to compare.",
    "n-components": "Number of components; auto keeps those that a test finds to be real (dpca).",
    "shrinkage": "How much the background is smoothed (dpca), from 0, the plain ratio, to 1, PCA. auto: the rule of "
    "Ledoit and Wolf. held-out: the value that gives the largest ratio on rows that were not fitted. clusters: among "
    "such values, the one that shows groups most clearly.",
    "background-weights": "Weight of each background: numbers, none (equal weights), or one of the rules worst-case, "
    "best, spectral (dpca, kdpca).",
    "side": "target: what stands out in the target. background: what the background has and the target lacks. "
    "both: the most extreme of the two.",
    "n-columns": "Number of columns that components may use (dpca, cpca). auto: the fewest whose ratio on rows that "
    "were not fitted is as good as the best.",
    "smooth": "Columns that are neighbours (dpca), over which components are smoothed: a chain, or pixels.",
    "smoothness": "How strongly (dpca), with --smooth. held-out: the value with the largest ratio on rows that were "
    "not fitted.",
    "test": "How p-values are found: analytic is a formula (dpca), permutation assigns rows to the datasets at random. "
    "auto: the formula where it is exact, else permutation; other methods are permuted if the data are small.",
    "alpha": "How much of the background is subtracted (cpca, kcpca). Of several values, one is chosen. held-out: the "
    "value with the largest ratio on rows that were not fitted.",
    "robust": "rows: rows far from all others count less. cells: single values far from the others of their column are "
    "first replaced by what the rest of their row lets expect.",
    "random-state": "Seed of everything random; none is a fixed seed, too.",
    "kernel": f"One of {', '.join(KERNELS)}.",
    "gamma": "Parameter of rbf, poly, laplacian, sigmoid and chi2; none is scikit-learn's default.",
    "degree": "Degree of a polynomial.",
    "epsilon": "Ridge of the background (kdpca). held-out: the value with the largest ratio on rows that were not "
    "fitted. clusters: among such values, the one that shows groups most clearly.",
    "bandwidth": "Width of the Gaussian kernel (makes --kernel gaussian). If not given, the median distance of rows.",
    "title": "Title of the report.",
    "target-name": "What the target is called, if not as its file or group.",
    "background-name": "What a background is called, one for each. Repeatable.",
    "image-shape": "Height and width of images whose pixels are the columns: patterns are drawn as images.",
    "demo": "Explore digits over photographs, which need no file.",
    "session": "Begin with the steps of a session that was saved on the page.",
    "save": "Open no page: write the result of the question, or of the session, into this folder.",
    "port": "Port of the page; 0 takes a free one.",
    "no-browser": "Open the browser, or only print the address.",
    "from-sums": "TARGET and backgrounds are private sums, by standout release.",
    "ranges": "CSV file with the columns column, low, high: what each column can hold by its documentation. Never look "
    "it up in ROWS.",
    "whiten-by": "Private sums of a background, whose bounds are used: ROWS, the target, can then be far fewer. A "
    "pattern in quotes adds up places.",
    "delta": "Privacy: far below one over the number of rows, such as 1e-6.",
    "person-column": "Column that tells whose row it is: protects persons, and not rows alone.",
    "max-rows": "Rows of one person that are used, the first ones.",
    "radius": "Length that rows are shortened to, in half ranges. If not given, a quarter of the root of the number of "
    "columns.",
    "overwrite": "Replace an earlier result.",
    "quiet": "Print nothing unless something goes wrong.",
    "spreadsheet": "Put ' before ids and names that a spreadsheet would take for formulas (those with =, +, - or @).",
}

file_options = (
    option(KINDS, "--format", "KIND", type=click.Choice(FORMATS)),
    option(KINDS, "--variable", "NAME"),
    option(COLUMNS, "--id-column", "NAME"),
    option(COLUMNS, "--columns", "NAME", multiple=True),
    option(COLUMNS, "--drop", "NAME", multiple=True),
    option(COLUMNS, "--where", "NAME=VALUE", type=Condition(), multiple=True),
)
data_options = (
    click.argument("data", metavar="TARGET"),
    option(FILES, "-b --background", "FILES", multiple=True),
    option(FILES, "--group-column", "NAME"),
    option(FILES, "--target", "GROUP", multiple=True),
    option(FILES, "--background-group", "GROUP", multiple=True),
    *file_options,
    option(COLUMNS, "--label-column", "NAME"),
    option(CELLS, "--log1p", is_flag=True),
    option(CELLS, "--standardize", type=click.Choice(STANDARDS), default="none"),
    option(CELLS, "--missing", type=click.Choice(MISSING), default="error"),
    option(LARGE, "--in-memory/--stream", default=None, show_default=False),
    option(LARGE, "--checkpoint", "FOLDER"),
)
subject_options = (
    option(COLUMNS, "--subject-column", "NAME"),
    option(COLUMNS, "--subject-pattern", "REGEX"),
    option(COLUMNS, "--adjust", "NAME", multiple=True),
    option(COLUMNS, "--variation", type=click.Choice(VARIATIONS), default="all"),
)
method_option = option(METHOD, "--method", type=click.Choice(tuple(METHODS)), default="dpca")
parameter_options = (
    *(parameter.option() for parameter in PARAMETERS),
    option(KERNEL, "--bandwidth", "NUMBER", type=float),
)
report_options = (
    option(REPORT, "--title", "TEXT"),
    option(REPORT, "--target-name", "NAME"),
    option(REPORT, "--background-name", "NAME", multiple=True),
    option(REPORT, "--image-shape", "HEIGHTxWIDTH", type=Sides()),
)
overwrite_option = option(OUTPUT, "--overwrite", is_flag=True)
quiet_option = option(OUTPUT, "-q --quiet", is_flag=True)
spreadsheet_option = option(OUTPUT, "--spreadsheet", is_flag=True)


def with_options(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Add options to a command, in this order."""

    def add(command: Command) -> Command:
        for one in reversed(options):
            command = one(command)
        return command

    return add
