"""Which solver, as a question one can ask."""

from __future__ import annotations

# Up to here LAPACK's tridiagonal reduction of the whole matrix costs no more than a Lanczos run. Beyond, Lanczos is as
# fast where nothing stands out, and two to three times as fast where something does.
DENSE_FEATURES = 1000
# Up to here matrices are formed: two of them take 4 GiB.
FORMED_SIZE = 16384


def choose_solver(n_rows: int, n_features: int, n_components: int) -> str:
    """Which solver fits data of this shape?

    The rule, in this order:

    1. ``"reduced"`` where all datasets together have fewer rows than columns (and at most 16,384 rows): the problem is
       solved in the span of the rows, through their inner products.
    2. ``"dense"`` up to 1,000 columns, or where more than a tenth of all components is wanted: both matrices are formed
       and LAPACK finds the leading vectors. Up to 16,384 columns.
    3. ``"lanczos"`` up to 16,384 columns: both matrices are formed, B is factorised, and Lanczos iterations find the
       leading vectors of the whitened operator.
    4. ``"lobpcg"`` beyond: neither matrix is formed, both are applied to vectors through the rows.

    A fifth one, ``"root"``, works on QR roots of the covariances and loses no digits to squaring them. It is slower,
    and no shape calls for it: `solver="auto"` turns to it where an answer found from matrices has lost more than half
    of its digits (unless the data are batches, which cannot be read again), or where the background covariance is
    singular.

    Parameters
    ----------
    n_rows : int
        Number of rows of all datasets together.
    n_features : int
    n_components : int

    Returns
    -------
    {"reduced", "dense", "lanczos", "lobpcg"}

    Examples
    --------
    >>> from standout.pencil import choose_solver
    >>> choose_solver(n_rows=40_000, n_features=500, n_components=2)
    'dense'
    >>> choose_solver(n_rows=600, n_features=20_000, n_components=2)
    'reduced'
    """
    if n_rows < n_features and n_rows <= FORMED_SIZE:
        return "reduced"
    if n_features <= FORMED_SIZE:
        return "dense" if n_features <= DENSE_FEATURES or 10 * n_components > n_features else "lanczos"
    return "lobpcg"


def choose_device_solver(n_rows: int, n_features: int, n_components: int) -> str:
    """Which solver fits data of this shape on a device?

    ``"reduced"`` where all datasets together have fewer rows than columns, ``"dense"`` elsewhere: a device finds all
    eigenvectors in less time than iterations take to find a few.

    Parameters
    ----------
    n_rows, n_features, n_components : int
        As in `choose_solver`.

    Returns
    -------
    {"reduced", "dense"}

    Examples
    --------
    >>> from standout.pencil import choose_device_solver
    >>> choose_device_solver(n_rows=1_000_000, n_features=4_000, n_components=2)
    'dense'
    """
    return "reduced" if n_rows < n_features else "dense"
