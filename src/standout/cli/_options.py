"""The options of the commands: types of values, sections of the help, and options.

NumPy is not imported here, so that the help, the version and errors in options are fast.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import click

from standout._options import ALL, FORMATS, KERNELIZED, METHODS, MISSING, OPTION_NAMES, OPTIONS, Option

# PCA has no background: it is fitted to the target alone.
COMMAND_METHODS = {**METHODS, "pca": "PCA", "kpca": "kernel PCA"}
FITTED_AS = {"pca": "dpca", "kpca": "kdpca"}
SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 110}
# The sections of the help.
FILES, COLUMNS, ROWS, METHOD = "Target and backgrounds", "Columns and rows", "Values and files", "Method"
KERNEL, TEST, REPORT, OUTPUT, OTHER = "Kernels (kdpca, kcpca, kpca)", "Test", "Report", "Output", "Other"
BUDGET, PAGE = "Bounds and budget", "The page"


def value_of(one: Option) -> Callable[[Any], Any]:
    """Return a function that converts the text of an option to the value of a parameter; ``none`` becomes None."""
    words, metavar = words_of(one), metavar_of(one)

    def read(value: Any) -> Any:
        if not isinstance(value, str) or value in words:
            return None if value == "none" else value
        with suppress(ValueError, click.BadParameter):
            if one.name == "smooth":
                return sides(value)
            if one.name == "background_weights":
                return [float(part) for part in value.split(",")]
            if one.number is not None:
                return one.number(value)
        raise click.BadParameter(f"{value!r} is none of these: {metavar.replace('|', ', ')}.")

    return read


def words_of(one: Option) -> tuple[str, ...]:
    """Return the words that a parameter accepts."""
    return (*one.words, "none") if "None" in one.types else one.words


def metavar_of(one: Option) -> str:
    """Return the placeholder of a value in the help."""
    number = [] if one.number is None else ["N" if one.number is int else "NUMBER"]
    further = {"background_weights": ["W1,W2,..."], "smooth": ["HEIGHTxWIDTH"]}.get(one.name, [])
    return "NAME" if len(words_of(one)) > 5 else "|".join([*number, *further, *words_of(one)])


def pair(value: str) -> tuple[str, str]:
    """Return the column and the value of ``NAME=VALUE``."""
    name, equals, word = value.partition("=")
    if not equals:
        raise click.BadParameter(f"{value!r} has no equals sign. Give, for example, tissue=liver.")
    return name, word


def sides(value: str) -> tuple[int, int]:
    """Return the height and width of an image: ``28x28``."""
    parts = value.lower().split("x")
    if len(parts) != 2 or not all(part.isdecimal() and 0 < int(part) < 10**6 for part in parts):
        raise click.BadParameter(f"{value!r} is not a height and a width. Give, for example, 28x28.")
    return int(parts[0]), int(parts[1])


def refuse(*cases: tuple[object, str]) -> None:
    """Raise an error with the text of the first case that is true."""
    for problem, words in cases:
        if problem:
            raise click.UsageError(words)


class option(click.Option):  # noqa: N801
    """An option in a section of the help. An option without a placeholder and a type is a flag."""

    def __init__(self, section: str, names: str, help: str, metavar: str | None = None, **settings: Any) -> None:
        flag = metavar is None and "type" not in settings
        words = f"{help} Repeatable." if settings.get("multiple") else help
        shown = {"is_flag": flag or None, "show_default": "default" in settings and not flag, **settings}
        super().__init__(names.split(), help=words, metavar=metavar, **shown)
        self.section = section


class SectionedCommand(click.Command):
    """A command whose help lists its options in sections."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections in the order of their first options."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
            if record is not None:
                sections.setdefault(getattr(param, "section", OTHER), []).append(record)
        for name, records in sections.items():
            with formatter.section(name):
                formatter.write_dl(records)


def parameter_option(one: Option) -> click.Option:
    """Return the option of a parameter of the estimators."""
    words = one.help.partition(" In Python")[0].replace("None", "none").replace("`", "").replace('"', "")
    words += "" if one.methods in (ALL, KERNELIZED) else f" ({', '.join(one.methods)})"
    section = KERNEL if one.methods == KERNELIZED else METHOD
    default = "none" if one.default is None else one.default
    return option(section, OPTION_NAMES[one.name], words, metavar_of(one), type=value_of(one), default=default)


file_options = (
    option(FILES, "--format", f"If extensions do not tell: {', '.join(FORMATS)}.", "KIND", type=click.Choice(FORMATS)),
    option(FILES, "--variable", "Array of an .npz, .mat or .zarr file, or layer of an .h5ad file.", "NAME"),
    option(FILES, "--delimiter", "Sign between the columns of a text file; found by default.", "SIGN"),
    option(FILES, "--header", "Whether the first line has the names of columns; needed if all of them are numbers, "
           "such as wavelengths.", "True|False", type=bool),
    option(FILES, "--decimal", "Decimal sign of a text file.", "SIGN", default="."),
    option(FILES, "--encoding", "Encoding of a text file, such as latin-1.", "NAME"),
    option(COLUMNS, "--id-column", "Column that names the rows. By default, text of unique values.", "NAME"),
    option(COLUMNS, "--columns", "Columns to use, or patterns as 'gene_*'.", "NAME", multiple=True),
    option(COLUMNS, "--exclude", "Columns to leave out, or patterns.", "NAME", multiple=True),
    option(COLUMNS, "--where", "Rows to use: with this value in this column.", "NAME=VALUE", type=pair, multiple=True),
)  # fmt: skip
condition_options = (
    option(FILES, "-b --background", "A background: a file, a folder, or a pattern in quotes.", "FILES", multiple=True),
    option(FILES, "--condition-column", "Column that tells target and backgrounds apart, in one file.", "NAME"),
    option(FILES, "--target", "Condition that is the target.", "CONDITION", multiple=True),
    option(FILES, "--background-condition", "Condition that is a background; if none, all others.", "CONDITION",
           multiple=True),
)  # fmt: skip
value_options = (
    option(COLUMNS, "--label-column", "Column for the colours and the clustering error, never for the fit.", "NAME"),
    option(ROWS, "--log1p", "Use log(1 + x) of every value, as is usual for counts."),
    option(ROWS, "--missing", "Treatment of missing values.", type=click.Choice(MISSING), default="error"),
    option(ROWS, "--strict", "Refuse columns that are not numbers, or constant, instead of leaving them out."),
    option(ROWS, "--in-memory/--stream", "Read all rows into memory, or in parts for every pass. If neither is given, "
           "the size of the data decides.", default=None),
)  # fmt: skip
kinds_of_data = (
    option(FILES, "--from-sums", "TARGET and backgrounds are private sums of standout release."),
    option(FILES, "--cube", "TARGET is an image of rows x columns x bands (.hdr, .mat, .npy)."),
    option(FILES, "--noise", "Noise of a cube: differences of neighbours, or a dark image.", "differences|FILE",
           default="differences"),
)  # fmt: skip
data_options = (*condition_options, *file_options, *value_options)
subject_options = (
    option(COLUMNS, "--subject-column", "Column with the subject of each row (mouse, donor, recording). Rows of a "
           "subject are not independent: folds and permutations then keep whole subjects together.", "NAME"),
    option(COLUMNS, "--subject-pattern", "Regular expression for the subject within that column: '(.*)_' finds mouse "
           "309 in 309_12.", "REGEX"),
    option(COLUMNS, "--blocks", "For rows in the order of time: number of neighbouring rows that are held out and "
           "permuted together.", "N", type=click.IntRange(1)),
    option(COLUMNS, "--adjust", "Column, such as age or batch, whose linear effect is removed from each dataset. "
           "Words are categories.", "NAME", multiple=True),
    option(COLUMNS, "--weight-column", "Column with the weight of each row.", "NAME"),
    option(COLUMNS, "--within", "Subtract the mean of each subject, to look within subjects."),
)  # fmt: skip
method_option = option(METHOD, "--method", "Method to fit.", type=click.Choice(tuple(COMMAND_METHODS)), default="dpca")
parameter_options = (
    *(parameter_option(one) for one in OPTIONS.values() if one.command),
    option(KERNEL, "--bandwidth", "Width of the Gaussian kernel (makes --kernel gaussian).", "NUMBER", type=float),
)
test_options = (
    option(TEST, "--test/--no-test", "Test by permutation which components are real.", default=True),
    option(TEST, "--n-draws", "Number of permutations.", "N", type=click.IntRange(19), default=199),
)  # fmt: skip
report_options = (
    option(REPORT, "--title", "Title of the report.", "TEXT"),
    option(REPORT, "--target-name", "Name of the target in the report, if not that of its file or condition.", "NAME"),
    option(REPORT, "--background-name", "Name of a background, one for each.", "NAME", multiple=True),
)
image_option = option(REPORT, "--image-shape", "Size of images whose pixels are columns.", "HEIGHTxWIDTH", type=sides)
quiet_option = option(OUTPUT, "-q --quiet", "Print nothing unless something goes wrong.")
writing_options = (option(OUTPUT, "--overwrite", "Replace an earlier result."), quiet_option)
spreadsheet_option = option(OUTPUT, "--spreadsheet", "Put ' before words that a spreadsheet would read as formulas.")
page_options = (
    option(PAGE, "--demo", "Explore digits over photographs, without files."),
    option(PAGE, "--session", "Begin with the steps of a session that was saved on the page.", "FILE"),
    option(PAGE, "--port", "Port of the page; 0 is a free one.", "N", type=click.IntRange(0, 65535), default=0),
    option(PAGE, "--browser/--no-browser", "Open the browser, or only print the address.", default=True),
)  # fmt: skip
budget_options = (
    option(BUDGET, "--ranges", "CSV file with the columns column, low, high: the values that each column can have by "
           "its documentation. Never look them up in ROWS.", "FILE"),
    option(BUDGET, "--whiten-by", "Private sums of a background, whose bounds are used: ROWS, the target, can then be "
           "far fewer. A pattern in quotes adds up sites.", "FILES"),
    option(BUDGET, "--epsilon", "Privacy: smaller protects more.", "NUMBER", type=float, required=True),
    option(BUDGET, "--delta", "Privacy: far below 1 / rows, such as 1e-6.", "NUMBER", type=float, required=True),
    option(BUDGET, "--person-column", "Column with the person of each row: protects persons, not rows alone.", "NAME"),
    option(BUDGET, "--max-rows", "Most rows of one person; further ones are left out.", "N", type=int, default=1),
    option(BUDGET, "--radius", "Rows longer than this are shortened, in half ranges. Default: a quarter of the root "
           "of the number of columns.", "NUMBER", type=float),
)  # fmt: skip
