"""The result of a private release: noisy sums that behave as moments, with the noise and the budget beside them."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from standout._arrays import Array, Float
from standout._messages import FileError, InvalidTypeError, InvalidValueError, MissingFileError, shown
from standout._writing import write_whole
from standout.moments import ScatterMoments
from standout.private._grid import BESIDE, LAST, LONGEST, Grid, Whole, unpacked

FORMAT = "standout private sums 1"
# Multiple of the noise that a background is smoothed with. In simulations 0.35 to 1 have the same results.
RIDGE = 0.5
# Radius for rows that have unit variance along every direction, per square root of the number of columns.
WHITE_RADIUS = 0.7


@dataclass(frozen=True)
class Spent:
    """What has one release spent of the privacy budget of its rows or persons?

    Attributes
    ----------
    epsilon, delta : float
        The budget that was given: the release is (ε, δ)-differentially private.
    rho : float
        The same as zero-concentrated privacy. The ρ of several releases add up, and give a smaller ε in all than the
        sum of all ε.
    unit : {"row", "person"}
        Who is protected.
    max_rows : int
        Rows of one person that were used at most.

    Examples
    --------
    >>> from standout.private import Spent
    >>> str(Spent(1.0, 1e-6, 0.024, "person", 5))
    'epsilon 1, delta 1e-06 for each person with at most 5 rows'
    """

    epsilon: float
    delta: float
    rho: float
    unit: str
    max_rows: int

    def __str__(self) -> str:
        whom = "row" if self.unit == "row" else f"person with at most {self.max_rows} rows"
        return f"epsilon {self.epsilon:g}, delta {self.delta:g} for each {whom}"


@dataclass(frozen=True, eq=False, repr=False)
class PrivateMoments(ScatterMoments):
    """Count, mean and scatter of a dataset with noise: sums that may leave the place where the rows are.

    `standout.private.release` makes them, and ``DiscriminativePCA.from_moments`` uses them as moments. The moments of
    several places are merged with ``+``: noise variances add up, and the budgets of all places are kept. All numbers
    are in the units of the rows.

    Attributes
    ----------
    released : ndarray of int
        The sums with noise, on the grid: the only numbers that were made from the rows.
    grid : Grid
        The public bounds of the release: ``centre``, ``scale``, ``radius``.
    noise_variance : float
        Variance of the noise in an entry of `released`.
    spent : tuple of Spent
        The budget, one entry for each release that was merged.
    columns : tuple of str or None
        Names of the columns.
    count : int
        Number of rows, with noise; at least 2.
    mean : ndarray of shape (n_features,)
    scatter : ndarray of shape (n_features, n_features)

    Examples
    --------
    >>> import numpy as np
    >>> from standout.private import release
    >>> X = np.random.default_rng(0).normal(size=(20_000, 3))
    >>> bounds = {"centre": [0, 0, 0], "scale": [1, 1, 1], "radius": 2.0}
    >>> half, other = (release(part, **bounds, epsilon=2.0, delta=1e-6) for part in (X[:10_000], X[10_000:]))
    >>> both = half + other
    >>> abs(both.count - 20_000) < 500, len(both.spent), both.noise < 0.02
    (True, 2, True)
    """

    released: Whole = None  # type: ignore[assignment]
    grid: Grid = None  # type: ignore[assignment]
    noise_variance: float = 0.0
    spent: tuple[Spent, ...] = ()
    columns: tuple[str, ...] | None = None
    exact: ClassVar[bool] = False

    @classmethod
    def of(
        cls, released: Whole, grid: Grid, noise_variance: float, spent: tuple[Spent, ...], columns: Any = None
    ) -> PrivateMoments:
        """Return the moments of noisy sums: the nearest that rows can have."""
        matrix = unpacked(released, grid.n_features + 1)
        # Sums of squares are never negative along any direction. This is post-processing and costs no budget.
        values, vectors = np.linalg.eigh(matrix)
        matrix = (vectors * np.maximum(values, 0.0)) @ vectors.T
        # A larger count than the matrix has leaves the covariance without negative variances.
        count = max(matrix[-1, -1] / LAST**2, 2.0)
        mean, whole, units = matrix[:-1, -1] / (LAST * count), max(round(count), 2), grid.step * grid.units
        scatter = whole * units @ (matrix[:-1, :-1] / count - np.outer(mean, mean)) @ units.T
        beside = {"released": released, "grid": grid, "noise_variance": noise_variance, "spent": spent}
        return cls(whole, grid.centre + units @ mean, (scatter + scatter.T) / 2.0, columns=columns, **beside)  # type: ignore[arg-type]

    @property
    def _plain(self) -> ScatterMoments:
        return ScatterMoments(self.count, self.mean, self.scatter)

    def taken(self, columns: npt.NDArray[np.intp]) -> ScatterMoments:
        """Return the moments of some of the columns."""
        return self._plain.taken(columns)

    def mapped(self, matrix: Float) -> ScatterMoments:
        """Return the moments of rows that are mapped linearly."""
        return self._plain.mapped(matrix)

    # --- noise ----------------------------------------------------------------------------------------------------

    @property
    def noise(self) -> float:
        """The largest variance that noise alone is expected to make along any direction, in units of `scale`.

        The noise is a symmetric matrix of independent Gaussian entries, whose largest eigenvalue is known.
        """
        entry = float(np.sqrt(self.noise_variance)) / BESIDE * self.grid.step**2
        return 2.0 * entry * float(np.sqrt(self.n_features)) / self.count

    def noise_along(self, U: Float) -> Float:
        """Return the largest variance that noise alone is expected to make along columns of U, in units of the rows."""
        return self.noise * np.sum((self.grid.units.T @ U) ** 2, axis=0)

    @cached_property
    def _scaled(self) -> Float:
        """The covariance in units of `scale`."""
        half = np.linalg.solve(self.grid.units, self.covariance())
        return np.linalg.solve(self.grid.units, half.T)

    @property
    def shrinkage(self) -> float:
        """The shrinkage that the known noise needs: half of the noise, as a share of it and the mean variance."""
        ridge = RIDGE * self.noise
        return ridge / (ridge + float(np.trace(self._scaled)) / self.n_features)

    @property
    def spherical(self) -> ScatterMoments:
        """What a private background is shrunken towards: equal variances along every direction in units of `scale`.

        Noise is equal along every direction in these units, and not in those of the rows.
        """
        variance, units = float(np.trace(self._scaled)) / self.n_features, self.grid.units
        return ScatterMoments(self.count, self.mean, self.count * variance * units @ units.T)

    def whitening(self) -> dict[str, Any]:
        """Return bounds for the release of a target, from this release of a background.

        In these bounds the background has nearly the same variance along every direction. The noise of the target is
        then small where the background varies little, and a tenth of the rows can be enough. This costs no budget,
        because the release is public already. Rows of the target and of the background can be at different places.

        Returns
        -------
        dict
            ``centre``, ``scale`` (a matrix) and ``radius``, for `release`.
        """
        values, vectors = np.linalg.eigh(self._scaled)
        root = (vectors * np.sqrt(np.maximum(values, 0.0) + RIDGE * self.noise)) @ vectors.T
        radius = WHITE_RADIUS * float(np.sqrt(self.n_features))
        return {"centre": self.mean, "scale": self.grid.units @ root, "radius": radius}

    # --- places and files -----------------------------------------------------------------------------------------

    def __add__(self, other: Any) -> PrivateMoments:
        """Return the sums of both places together."""
        if not isinstance(other, PrivateMoments):
            problem = "exact sums and private sums cannot be added: the noise of the result would not be known"
            raise InvalidTypeError(problem, advice="Release every dataset, or none.")
        mine, theirs = ({**vars(part.grid), "columns": part.columns} for part in (self, other))
        for name in ("centre", "scale", "radius", "columns"):
            if not np.array_equal(np.asarray(mine[name]), np.asarray(theirs[name])):
                problem = f"two places were released with a different {name}, so that their sums do not add up"
                advice = "Agree on `centre`, `scale`, `radius` and the columns before the release."
                raise InvalidValueError(problem, advice=advice)
        noise = self.noise_variance + other.noise_variance
        return self.of(self.released + other.released, self.grid, noise, self.spent + other.spent, self.columns)

    def __repr__(self) -> str:
        spent = "; ".join(map(str, self.spent[:3])) + ("; ..." if len(self.spent) > 3 else "")
        return f"PrivateMoments(about {self.count} rows x {self.n_features} columns, with noise; {spent})"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the noisy sums, the bounds and the budget to a file; no rows and no exact sums.

        Parameters
        ----------
        path : str or path-like
            The name usually ends with ``.sums``. An existing file is replaced.
        """
        about = {"format": FORMAT, "grid": [LONGEST, LAST], "radius": self.grid.radius, "columns": self.columns}
        about |= {"noise_variance": self.noise_variance, "spent": [asdict(one) for one in self.spent]}
        content = io.BytesIO()
        arrays = {"released": self.released, "centre": self.grid.centre, "scale": self.grid.scale}
        np.savez(content, about=np.array(json.dumps(about)), **arrays)  # type: ignore[arg-type]
        write_whole(Path(path).expanduser(), content.getvalue())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> PrivateMoments:
        """Read sums from a file that `save` wrote; nothing in it is run as code.

        Parameters
        ----------
        path : str or path-like

        Returns
        -------
        PrivateMoments
        """
        place = Path(path).expanduser()
        try:
            content = place.read_bytes()
        except OSError as error:
            kind = MissingFileError if isinstance(error, FileNotFoundError) else FileError
            raise kind(f"{shown(place)} cannot be read: {error.strerror}", advice="Check the name.") from error
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                # Files of `save` are not compressed: a small file cannot ask for much memory.
                if any(part.compress_type != zipfile.ZIP_STORED for part in archive.infolist()):
                    raise ValueError("the file is compressed")
            with np.load(io.BytesIO(content), allow_pickle=False) as stored:
                return cls._made(json.loads(str(stored["about"])), {name: stored[name] for name in stored.files})
        # A damaged or forged file can lead to any error.
        except Exception as error:
            problem = f"{shown(place)} has no private sums, or is damaged"
            advice = "Give a file that standout release, or PrivateMoments.save, has written."
            raise InvalidValueError(problem, advice=advice) from error

    @classmethod
    def _made(cls, about: Mapping[str, Any], arrays: Mapping[str, Array]) -> PrivateMoments:
        """Make sums from the parts of a file, which are checked."""
        released, columns, variance = arrays["released"], about["columns"], float(about["noise_variance"])
        spent = tuple(Spent(**one) for one in about["spent"])
        grid = Grid(arrays["centre"], arrays["scale"], float(about["radius"]))
        size = grid.n_features + 1
        budgets = [(one.epsilon, one.delta, one.rho, one.max_rows) for one in spent]
        sound = (
            [about["format"], *about["grid"]] == [FORMAT, LONGEST, LAST]
            and released.dtype == np.int64
            and released.shape == (size * (size + 1) // 2,)
            and grid.centre.dtype == grid.scale.dtype == np.float64
            and 0.0 < variance < 1e60
            and (columns is None or (len(columns) == size - 1 and all(isinstance(one, str) for one in columns)))
            and spent
            and all(isinstance(number, int | float) and 0 < number < 1e60 for one in budgets for number in one)
            and all(one.unit in ("row", "person") for one in spent)
        )
        if not sound:
            raise ValueError("a part is missing or has another form")
        return cls.of(released, grid, variance, spent, None if columns is None else tuple(columns))
