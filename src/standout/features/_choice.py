"""Which coordinates, as a question one can ask."""

from __future__ import annotations

# Three matrices of this size take 2.4 GB.
EXACT_ROWS = 10_000


def choose_approximation(n_rows: int) -> str:
    """Should the kernel be used exactly, or through landmarks?

    ``"exact"`` up to 10,000 rows of all datasets together, where the kernel matrix and what is done with it take
    up to 2.4 GB of memory; ``"pivoted"`` beyond: landmarks are chosen by randomly pivoted Cholesky, and
    the kernel matrix never exists.

    Parameters
    ----------
    n_rows : int
        Number of rows of all datasets together.

    Returns
    -------
    {"exact", "pivoted"}

    Examples
    --------
    >>> from standout.features import choose_approximation
    >>> choose_approximation(5_000), choose_approximation(1_000_000)
    ('exact', 'pivoted')
    """
    return "exact" if n_rows <= EXACT_ROWS else "pivoted"
