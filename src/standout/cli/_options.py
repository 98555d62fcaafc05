"""The options that several commands share, in sections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from standout.cli._words import NumberOr, Weights

# Those of standout.io, which takes a second to load: whoever asks for help should not have to wait for it.
FORMATS = ("csv", "tsv", "parquet", "arrow", "feather", "npy", "npz", "mat", "h5ad")
MISSING_IN_WORDS = {
    "error": "refused",
    "drop-rows": "rows that have one dropped",
    "drop-columns": "columns that have one dropped",
    "mean": "filled with the column's mean over all rows",
}
MISSING = tuple(MISSING_IN_WORDS)
STANDARDS = ("none", "background", "pooled")
METHODS = ("dpca", "kdpca", "cpca", "kcpca", "pca", "kpca")
KERNELS = (
    "rbf",
    "gaussian",
    "laplacian",
    "linear",
    "poly",
    "homogeneous_polynomial",
    "inhomogeneous_polynomial",
    "cosine",
    "sigmoid",
    "chi2",
)
TESTS = ("analytic", "permutation")
# The largest that NumPy's older random numbers, which scikit-learn uses, take.
MOST_SEED = 2**32 - 1

# The sections of the help.
FILES, KINDS, COLUMNS, CELLS, METHOD, KERNEL, OUTPUT, OTHER = (
    "Target and backgrounds",
    "Kinds of files",
    "Columns",
    "Values",
    "Method",
    "Kernels (kdpca, kcpca, kpca)",
    "Output",
    "Other",
)

Command = TypeVar("Command", bound=Callable[..., Any])


class SectionedOption(click.Option):
    """An option that knows in which section of the help it is."""

    def __init__(self, *arguments: Any, section: str, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.section = section


class SectionedCommand(click.Command):
    """A command whose help lists options by sections: nobody reads a list of thirty."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections, in the order of their first options."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
            if record is not None:
                sections.setdefault(getattr(param, "section", OTHER), []).append(record)
        for name, records in sorted(sections.items(), key=lambda section: section[0] == OTHER):
            with formatter.section(name):
                formatter.write_dl(records)


def option(section: str, *names: str, **options: Any) -> Callable[[Command], Command]:
    """Make an option of a section."""
    return click.option(*names, cls=SectionedOption, section=section, **options)


def _all_of(*options: Callable[[Any], Any]) -> Callable[[Command], Command]:
    def add(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return add


file_options = _all_of(
    option(
        KINDS,
        "--format",
        type=click.Choice(FORMATS),
        metavar="KIND",
        help=f"If names do not tell: {', '.join(FORMATS)}.",
    ),
    option(KINDS, "--variable", metavar="NAME", help="Array of an .npz or .mat file, or layer of an .h5ad file."),
)

column_options = _all_of(
    option(COLUMNS, "--id-column", metavar="NAME", help="Column that names the rows."),
    option(
        COLUMNS, "--select", multiple=True, metavar="NAME", help="Columns to use, or patterns as 'gene_*'. Repeatable."
    ),
    option(COLUMNS, "--drop", multiple=True, metavar="NAME", help="Columns to leave out, or patterns. Repeatable."),
)

data_options = _all_of(
    click.argument("data", metavar="TARGET"),
    option(FILES, "-b", "--background", "backgrounds", multiple=True, metavar="FILE", help="A background. Repeatable."),
    option(
        FILES, "--group-column", metavar="NAME", help="Column that tells target and backgrounds apart, in one file."
    ),
    option(FILES, "--target", "targets", multiple=True, metavar="GROUP", help="Group that is the target. Repeatable."),
    option(
        FILES,
        "--background-group",
        "background_groups",
        multiple=True,
        metavar="GROUP",
        help="Group that is a background; all others if none is named. Repeatable.",
    ),
    file_options,
    column_options,
    option(
        COLUMNS,
        "--label-column",
        metavar="NAME",
        help="Column for the colours and the clustering error, never for the fit.",
    ),
    option(CELLS, "--log1p", is_flag=True, help="Take log(1 + x) of every value, as is usual for counts."),
    option(
        CELLS,
        "--standardize",
        type=click.Choice(STANDARDS),
        default="none",
        show_default=True,
        help="Centre and scale columns by all background rows, or by all rows; the same for all datasets.",
    ),
    option(
        CELLS,
        "--missing",
        type=click.Choice(MISSING),
        default="error",
        show_default=True,
        help="What to do about missing values.",
    ),
)

method_option = option(
    METHOD, "--method", type=click.Choice(METHODS), default="dpca", show_default=True, help="What to fit."
)

parameter_options = _all_of(
    option(
        METHOD,
        "--components",
        type=NumberOr("auto", whole=True),
        metavar="N|auto",
        default=2,
        show_default=True,
        help="How many; auto keeps those that are more than chance (dpca).",
    ),
    option(
        METHOD,
        "--shrinkage",
        type=NumberOr("none", "auto", "clusters"),
        metavar="none|auto|clusters|NUMBER",
        default="clusters",
        show_default=True,
        help="How much the background is smoothed (dpca), from 0, the plain ratio, to 1, PCA. auto: by the rule of "
        "Ledoit and Wolf. clusters: the view that shows groups most clearly.",
    ),
    option(
        METHOD,
        "--weights",
        type=Weights(),
        metavar="W1,W2,...|RULE",
        help="How much each background counts: numbers, or equal (the default), worst-case, best, spectral.",
    ),
    option(METHOD, "--test", type=click.Choice(TESTS), help="How p-values are found (dpca). By formula if not given."),
    option(
        METHOD,
        "--alpha",
        type=NumberOr("auto"),
        metavar="auto|NUMBER",
        default="auto",
        show_default=True,
        help="How much the background is subtracted (cpca, kcpca).",
    ),
    option(
        METHOD,
        "--seed",
        type=click.IntRange(min=0, max=MOST_SEED),
        metavar="N",
        default=0,
        show_default=True,
        help="Of everything random.",
    ),
    option(
        KERNEL,
        "--kernel",
        type=click.Choice(KERNELS),
        metavar="NAME",
        default="rbf",
        show_default=True,
        help=f"One of {', '.join(KERNELS)}.",
    ),
    option(
        KERNEL,
        "--bandwidth",
        type=float,
        metavar="NUMBER",
        help="Width of the Gaussian kernel (makes --kernel gaussian).",
    ),
    option(
        KERNEL, "--degree", type=float, metavar="NUMBER", default=2.0, show_default=True, help="Degree of a polynomial."
    ),
    option(
        KERNEL,
        "--epsilon",
        type=NumberOr("scaled", "clusters"),
        metavar="scaled|clusters|NUMBER",
        default="clusters",
        show_default=True,
        help="Ridge of the background (kdpca). clusters: the view that shows groups most clearly.",
    ),
)

overwrite_option = option(OUTPUT, "--overwrite", is_flag=True, help="Replace an earlier result.")
quiet_option = option(OUTPUT, "-q", "--quiet", is_flag=True, help="Say nothing unless something goes wrong.")


def output_option(help: str, **options: Any) -> Callable[[Command], Command]:
    """Say where the result goes."""
    return option(OUTPUT, "-o", "--output", metavar="OUT", help=help, **options)
