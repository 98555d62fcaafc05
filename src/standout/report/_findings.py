"""What a fit found, as numbers, names and messages: all that the page, the picture and the summary need.

The shapes of the arrays are declared with letters, by which stored findings are checked (see `standout._records`):
C components, S components whose scores are shown, P columns, B backgrounds, T bins, E edges of bins, L groups of
labels, M columns whose values are kept, A shown rows of all datasets; and, within one record, n shown rows, i images,
q and v axes of a view, k eigenvalues, g steps of the path.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from standout._arrays import Float
from standout._messages import InvalidTypeError, Message
from standout._records import array
from standout.selection import ComponentTest

Single: TypeAlias = npt.NDArray[np.float32]
Numbers: TypeAlias = npt.NDArray[np.int64]
Small: TypeAlias = npt.NDArray[np.int8]
Grey: TypeAlias = npt.NDArray[np.uint8]


# Compared by identity: == between records of arrays has no single truth value.
@dataclass(frozen=True, eq=False)
class Points:
    """One dataset as it is drawn: the rows that are shown, and how all rows are spread.

    Attributes
    ----------
    name : str
    n_rows : int
        Number of all rows.
    rows : ndarray of shape (n_shown,)
        Which rows are shown, in ascending order: all, or a random sample of many.
    scores : ndarray of shape (n_shown, d)
        Scores of the shown rows along the first d components, as they are drawn; see `Findings.drawn_held_out`.
    variances : ndarray of shape (d,)
        Variances of these scores, over all rows.
    fitted_scores : ndarray of shape (n_shown, d) or None
        Scores along the components of the fit, if others are drawn.
    pca_scores : ndarray of shape (n_shown, 1 or 2)
        Scores of the same rows in PCA's view of the target.
    counts : ndarray of shape (d, n_bins)
        How many of all rows fall into each bin of each score; see `Findings.bin_edges`.
    ids : tuple of str or None
        Names of the shown rows.
    labels : tuple of str or None
        Labels of the shown rows, in words.
    groups : ndarray of shape (n_shown,) or None
        Number of each shown row's group in `Findings.label_names`; None without labels, or with labels on a scale.
    values : ndarray of shape (n_shown,) or None
        Labels that are numbers on a scale, such as an age.
    cells : ndarray of shape (n_shown, m) or None
        Of the target: values in some columns, see `Findings.cell_columns`, in sixteenths of a standard deviation.
    images : ndarray of shape (n_images, n_pixels) or None
        Of the target, if columns are pixels: the first of the shown rows as grey images, from 0 to 255.
    row_weights, outlying : ndarray of shape (n_shown,) or None
        With robust weights: how much each shown row counts, and 1 for one that lies far from all others.
    n_outlying, n_wild : int or None
        With robust weights: number of such rows of all, and of values that were replaced.
    n_subjects : int or None
        Number of subjects that the rows are of, or of blocks of neighbouring rows; None if rows were taken as
        independent.
    unit : {"subject", "block"}
        What the subjects are.

    Examples
    --------
    >>> import numpy as np
    >>> from standout import DiscriminativePCA
    >>> from standout.report import examine
    >>> rng = np.random.default_rng(0)
    >>> target, background = rng.normal(size=(60, 3)) * [1, 1, 3], rng.normal(size=(90, 3))
    >>> points = examine(DiscriminativePCA(2).fit(target, background=background), target, background).target
    >>> points.name, points.scores.shape, points.sampled
    ('target', (60, 2), False)
    """

    name: str
    n_rows: int
    rows: Numbers = field(repr=False, metadata=array("n"))
    scores: Single = field(repr=False, metadata=array("nS", finite=True))
    variances: Float = field(repr=False, metadata=array("S"))
    pca_scores: Single = field(repr=False, metadata=array("nq", finite=True))
    counts: Numbers = field(repr=False, metadata=array("ST"))
    fitted_scores: Single | None = field(default=None, repr=False, metadata=array("nS", finite=True))
    ids: tuple[str, ...] | None = field(default=None, repr=False, metadata=array("n"))
    labels: tuple[str, ...] | None = field(default=None, repr=False, metadata=array("n"))
    groups: Numbers | None = field(default=None, repr=False, metadata=array("n"))
    values: Float | None = field(default=None, repr=False, metadata=array("n"))
    cells: Small | None = field(default=None, repr=False, metadata=array("nM"))
    images: Grey | None = field(default=None, repr=False, metadata=array("iP"))
    row_weights: Single | None = field(default=None, repr=False, metadata=array("n"))
    outlying: Small | None = field(default=None, repr=False, metadata=array("n"))
    n_outlying: int | None = field(default=None, repr=False)
    n_wild: int | None = field(default=None, repr=False)
    n_subjects: int | None = None
    unit: str = "subject"

    @property
    def sampled(self) -> bool:
        """Whether only some of the rows are shown."""
        return len(self.rows) < self.n_rows


@dataclass(frozen=True)
class Stray:
    """A row that lies far from all others, and counts less.

    Attributes
    ----------
    dataset : int
        The number of its dataset: 0 is the target.
    row : int
    name : str or None
    weight : float
        About 1 for a typical row.
    columns : tuple of str
        Columns in which it differs most from the mean.

    Examples
    --------
    >>> from standout.report import Stray
    >>> Stray(0, 17, "sample 18", 0.02, ("zinc",)).columns
    ('zinc',)
    """

    dataset: int
    row: int
    name: str | None
    weight: float
    columns: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class ViewPath:
    """The view at each of several values of a parameter.

    Attributes
    ----------
    parameter : {"shrinkage", "alpha", "epsilon"}
    values : ndarray of shape (g,)
        In ascending order.
    chosen : int
        The one of the fit.
    scores : ndarray of shape (g, n, 1 or 2)
        Scores along the first components at each value: of the target's shown rows, then of each background's.
    eigenvalues : ndarray of shape (g,)
        The leading eigenvalue at each value.

    Examples
    --------
    >>> import numpy as np
    >>> from standout import DiscriminativePCA
    >>> from standout.report import examine
    >>> rng = np.random.default_rng(0)
    >>> target, background = rng.normal(size=(60, 3)) * [1, 1, 3], rng.normal(size=(90, 3))
    >>> path = examine(DiscriminativePCA(2).fit(target, background=background), target, background).path
    >>> path.parameter, len(path.values) == len(path.scores)
    ('shrinkage', True)
    """

    parameter: str
    values: Float = field(repr=False, metadata=array("g"))
    chosen: int
    scores: Single = field(repr=False, metadata=array("gAv", finite=True))
    eigenvalues: Float = field(repr=False, metadata=array("g"))


@dataclass(frozen=True, eq=False)
class Findings:
    """What a fit found: all that the page, the picture and the summary show.

    Its size does not depend on that of the data: of many rows, a sample is kept. See `examine`.

    Attributes
    ----------
    method : str
        For example "discriminative PCA".
    asked : dict of str
        What was asked: datasets, options, files.
    datasets : tuple of Points
        The target first, then each background.
    features : tuple of str
        Names of the columns.
    components, patterns : ndarray of shape (n_components, n_features) or None
        Filters and patterns; None for kernel methods, which have none per column.
    correlations : ndarray of shape (d, n_features) or None
        Correlation of each column with each of the first d scores, over the target's rows: for the linear methods the
        pattern without units. None for precomputed kernels, which have no columns.
    correlation_errors : ndarray of shape (d, n_features) or None
        Their standard errors: from correlations with held-out scores, fold by fold.
    cell_columns : ndarray of shape (m,)
        Columns whose values are kept for the rows that are shown, to tell what distinguishes some of them.
    spreads : ndarray of shape (n_features,)
        Standard deviation of each column in the target.
    ratios, ratio_errors : ndarray of shape (n_components,) or None
        How many times as much as the backgrounds the target varies along each component, and its standard error. None
        without a background. Errors are None, and ratios those of the fitted rows, if no rows were held out.
    pca_ratio : float or None
        The same along PCA's first component.
    drawn_held_out : bool
        Whether each row is drawn along components that were found without it, because in their own fit target and
        background look much more different than they are.
    eigenvalues : ndarray of shape (n_components,)
        What the fit has maximised.
    target_variance : ndarray of shape (n_components,)
        Of the fitted rows.
    background_variance : ndarray of shape (n_backgrounds, n_components)
    weights : ndarray of shape (n_backgrounds,)
    scree : ndarray of shape (k,)
        The leading eigenvalues, also those beyond the components that were kept.
    total_variance : float
        Of the target, over all columns.
    test : ComponentTest or None
        Which components are more than chance.
    bin_edges : ndarray of shape (d, n_bins + 1)
        Edges of the bins of each score; rows beyond the last edge are counted in the last bin.
    title : str or None
        A title of one's own, in place of the question.
    label_name : str or None
        What the labels are called, such as the name of their column.
    image_shape : tuple of two int or None
        Height and width, if columns are the pixels of images.
    side : str
        Whether the components are those of the "target", of the "background", or of "both" ends.
    in_order : bool
        Whether each column is a neighbour of the next one.
    columns_used : ndarray of int or None
        Which columns the components use, if few were asked for.
    column_frequency : ndarray of shape (n_features,) or None
        In which share of the folds each column was chosen.
    label_names : tuple of str
        Names of the groups of the target's rows; empty without labels, or with labels on a scale.
    label_counts : ndarray of shape (n_groups, d, n_bins)
        The target's rows of each group by bins.
    n_other_labels : int
        How many labels the last group stands for, if there are too many for a group each; else 0.
    path : ViewPath or None
    clustering_error, pca_clustering_error : float or None
        Share of rows that K-means puts into the wrong group, in this view and in PCA's.
    choices : tuple of Message
        How parameters were chosen and components tested, as facts; the fact ``kind`` says what each is about.
    cautions : tuple of Message
        What to be careful about, as facts with their ``kind``.
    code : str
        The same in Python.
    version : str
        Of standout.
    strays : tuple of Stray or None
        With robust weights: the rows that count least. None if all rows count the same.

    Examples
    --------
    >>> from standout import DiscriminativePCA
    >>> from standout.datasets import make_digits_over_photographs
    >>> from standout.report import examine
    >>> images = make_digits_over_photographs()
    >>> model = DiscriminativePCA(2).fit(images.target, background=images.backgrounds)
    >>> findings = examine(model, images.target, images.backgrounds, labels=images.labels)
    >>> [points.name for points in findings.datasets]
    ['target', 'background']
    """

    method: str
    asked: Mapping[str, str]
    datasets: tuple[Points, ...]
    features: tuple[str, ...] = field(repr=False, metadata=array("P"))
    components: Float | None = field(repr=False, metadata=array("CP"))
    patterns: Float | None = field(repr=False, metadata=array("CP"))
    correlations: Float | None = field(repr=False, metadata=array("SP"))
    spreads: Float = field(repr=False, metadata=array("P"))
    ratios: Float | None = field(metadata=array("C"))
    ratio_errors: Float | None = field(repr=False, metadata=array("C"))
    pca_ratio: float | None = field(repr=False)
    drawn_held_out: bool = field(repr=False)
    eigenvalues: Float = field(metadata=array("C"))
    target_variance: Float = field(repr=False, metadata=array("C"))
    background_variance: Float = field(repr=False, metadata=array("BC"))
    weights: Float = field(repr=False, metadata=array("B"))
    scree: Float = field(repr=False, metadata=array("k"))
    total_variance: float = field(repr=False)
    test: ComponentTest | None = field(repr=False)
    bin_edges: Float = field(repr=False, metadata=array("SE", finite=True))
    label_names: tuple[str, ...] = field(repr=False, metadata=array("L"))
    label_counts: Numbers = field(repr=False, metadata=array("LST"))
    n_other_labels: int = field(repr=False)
    path: ViewPath | None = field(repr=False)
    clustering_error: float | None = field(repr=False)
    pca_clustering_error: float | None = field(repr=False)
    choices: tuple[Message, ...] = field(repr=False)
    cautions: tuple[Message, ...] = field(repr=False)
    code: str = field(repr=False)
    version: str = field(repr=False)
    title: str | None = field(default=None, repr=False)
    label_name: str | None = field(default=None, repr=False)
    image_shape: tuple[int, int] | None = field(default=None, repr=False)
    correlation_errors: Float | None = field(default=None, repr=False, metadata=array("SP"))
    cell_columns: Numbers | None = field(default=None, repr=False, metadata=array("M"))
    side: str = field(default="target", repr=False)
    in_order: bool = field(default=False, repr=False)
    columns_used: Numbers | None = field(default=None, repr=False, metadata=array("U"))
    column_frequency: Float | None = field(default=None, repr=False, metadata=array("P"))
    strays: tuple[Stray, ...] | None = field(default=None, repr=False)

    @property
    def target(self) -> Points:
        """The target."""
        return self.datasets[0]

    @property
    def backgrounds(self) -> tuple[Points, ...]:
        """The backgrounds."""
        return self.datasets[1:]

    @property
    def maximises_ratio(self) -> bool:
        """Whether the fit has maximised a ratio of variances: the discriminative methods, if there is a background."""
        return "discriminative" in self.method

    @property
    def n_shown_components(self) -> int:
        """Number of components whose scores are shown."""
        return int(self.target.scores.shape[1])


def plane(columns: npt.NDArray[Any], seed: int = 0) -> Single:
    """Give the first two columns; if there is only one, add a random one, which spreads the points."""
    if columns.shape[-1] >= 2:
        return columns[..., :2].astype(np.float32, copy=False)
    jitter: Float = np.random.default_rng(seed).uniform(-1.0, 1.0, size=(columns.shape[-2], 1))
    spread = np.broadcast_to(jitter, columns.shape)
    return np.concatenate([columns, spread], axis=-1).astype(np.float32)


def require_findings(thing: Any) -> None:
    """Refuse what no fit has found, such as the model itself."""
    if not isinstance(thing, Findings):
        raise InvalidTypeError(
            "findings are needed, not an object of type {kind}",
            kind=type(thing).__name__,
            advice="Give what standout.report.examine returns.",
        )
