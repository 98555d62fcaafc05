"""A report of a fit: a dict of findings, and a page, sentences and a picture that are made from this dict."""

from __future__ import annotations

import html
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from sklearn.utils.validation import check_is_fitted

from standout._messages import InvalidValueError
from standout._writing import write_whole
from standout.report._drawn import open_fit
from standout.report._findings import findings
from standout.report._words import figure, page, sentences
from standout.sources import open_datasets

__all__ = ["Report", "figure", "findings", "open_fit", "page", "report", "sentences"]

# Maximum number of values (rows x columns) for which `test`="auto" makes a permutation test, which then takes seconds.
QUICK = 2_000_000
# Pixels of the frame in a notebook.
HEIGHT = 900


class Report:
    """The findings of a fit: dict, page and sentences. Notebooks show the page.

    Attributes
    ----------
    findings : dict
        All numbers and sentences, ready for JSON.
    """

    def __init__(self, found: dict[str, Any]) -> None:
        self.findings = found

    def html(self) -> str:
        """Return the page: one HTML text that loads nothing."""
        return page(self.findings)

    def sentences(self) -> list[str]:
        """Return the headline and the cautions as plain text."""
        return sentences(self.findings)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file."""
        write_whole(Path(path), self.html().encode())

    def _repr_html_(self) -> str:
        style = f"width:100%;height:{HEIGHT}px;border:0"
        return f'<iframe style="{style}" sandbox="allow-scripts" srcdoc="{html.escape(self.html())}"></iframe>'

    def __repr__(self) -> str:
        return "\n".join(self.sentences())


def report(
    model: Any,
    X: Any,
    *,
    background: Any = None,
    labels: Any = None,
    ids: Any = None,
    test: Any = "auto",
    bootstrap: Any = None,
    title: str | None = None,
    names: Sequence[str] | None = None,
    label_name: str = "label",
    image_shape: tuple[int, int] | None = None,
    **rows: Any,
) -> Report:
    """What did this model find, on one page?

    Parameters
    ----------
    model : fitted estimator
    X : array-like of shape (n_samples, n_features)
        The target of the fit.
    background : array-like or list of array-like, default=None
        The backgrounds of the fit.
    labels : array-like of shape (n_samples,), default=None
        Labels of the target's rows, for colours. They are not used by the fit.
    ids : array-like of shape (n_samples,), default=None
        Names of the target's rows.
    test : "auto", PermutationTest or None, default="auto"
        "auto" makes a permutation test if the data are small.
    bootstrap : Bootstrap, default=None
    title : str, default=None
    names : sequence of str, default=None
        Names of the target and of each background, such as ``["treated", "control"]``.
    label_name : str, default="label"
    image_shape : tuple of (int, int), default=None
        Height and width, if columns are pixels.
    **rows
        Arrays beside the rows, as in ``fit``: y, groups, background_groups, sample_weight, background_sample_weight,
        adjust, background_adjust.

    Returns
    -------
    Report

    Examples
    --------
    >>> import numpy as np
    >>> from standout import DiscriminativePCA
    >>> from standout.report import report
    >>> rng = np.random.default_rng(0)
    >>> background = rng.normal(size=(300, 4)) * [10, 1, 1, 1]
    >>> target = rng.normal(size=(200, 4)) * [10, 1, 1, 3]
    >>> model = DiscriminativePCA(1).fit(target, background=background)
    >>> print(report(model, target, background=background, test=None))
    The variance of the target is 9.42 times that of the background along one view, led by column 3.
    """
    model = getattr(model, "best_estimator_", model)
    estimator = model.steps[-1][1] if hasattr(model, "steps") else model
    check_is_fitted(estimator)
    label = estimator.target_label
    datasets = open_datasets(X, background, target_label=label, **rows)
    if names is None and label is not None:
        names = [label, *estimator.background_labels_]
    if names is not None:
        if len(names) != len(datasets):
            problem = f"has {len(names)} names, but there are {len(datasets)} datasets"
            raise InvalidValueError(problem, parameter="names", advice="Give the target's name first.")
        datasets = [part.named(str(name)) for part, name in zip(datasets, names, strict=True)]
    if isinstance(test, str):
        from standout.selection import permutation_test

        small = sum((part.n_rows or QUICK) * (part.width or QUICK) for part in datasets) <= QUICK
        test = permutation_test(model, X, background=background, **rows) if small and len(datasets) > 1 else None
    fit = open_fit(model, datasets, labels, ids)
    shown: dict[str, Any] = {"title": title, "label_name": label_name, "image_shape": image_shape}
    return Report(findings(fit, test=test, bootstrap=bootstrap, **shown))


class _CallableModule(ModuleType):
    """A package that can be called like the function `report`.

    Importing this package binds ``standout.report`` to the package, which hides the function of the same name.
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Report:
        return report(*args, **kwargs)


sys.modules[__name__].__class__ = _CallableModule
