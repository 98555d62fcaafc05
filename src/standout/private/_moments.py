"""What a private release gives: noisy sums that behave as moments, with the noise and the budget beside them."""

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

from standout._arrays import Array, Float
from standout._messages import FileError, InvalidValueError, MissingFileError, shown
from standout._writing import write_whole
from standout.moments import Moments, ScatterMoments
from standout.private._grid import BESIDE, LAST, LONGEST, Grid, Whole, unpacked

FORMAT = "standout private sums 1"
# Multiple of the noise that a background is smoothed with. From 0.35 to 1, simulations find the same.
RIDGE = 0.5
# Radius for rows that have unit variance along every direction, per square root of the number of columns.
WHITE_RADIUS = 0.7


@dataclass(frozen=True)
class Spent:
    """What has one release spent of the privacy budget of its rows or persons?

    Attributes
    ----------
    epsilon, delta : float
        What was asked for: the release is (ε, δ)-differentially private.
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
class PrivateMoments(Moments):
    """Count, mean and scatter of a dataset with noise: what may leave the place where the rows are.

    It is made by `standout.private.release`, and takes the place of moments in ``DiscriminativePCA.from_moments``.
    Those of several places are merged with ``+``: noise variances add up, and what was spent stays stated for each
    place. All numbers are in the units of the rows.

    Attributes
    ----------
    released : ndarray of int
        The sums with noise, on the grid: all that was made from the rows.
    centre, scale, radius : ndarray, ndarray, float
        The public bounds of the release.
    noise_variance : float
        Variance of the noise in an entry of `released`.
    spent : tuple of Spent
        The budget, one entry for each release that was merged.
    columns : tuple of str or None
        Names of the columns.
    count : int
        Number of rows, with noise; at least 2.
    mean : ndarray of shape (n_features,)
    noise : float
        The largest variance that noise alone is expected to add or take along any direction, in units of `scale`.

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

    released: Whole
    centre: Float
    scale: Float
    radius: float
    noise_variance: float
    spent: tuple[Spent, ...]
    columns: tuple[str, ...] | None = None
    # What all moments have.
    exact: ClassVar[bool] = False
    precision = float(np.finfo(np.float64).eps)
    norms = None

    @property
    def grid(self) -> Grid:
        """The grid of the sums."""
        return Grid(self.centre, self.scale, self.radius)

    @cached_property
    def _scaled(self) -> ScatterMoments:
        """The moments in units of `scale`: the nearest that rows can have."""
        matrix = unpacked(self.released, len(self.centre) + 1)
        # Sums of squares are never negative, along no direction. This is post-processing, and costs no budget.
        values, vectors = np.linalg.eigh(matrix)
        matrix = (vectors * np.maximum(values, 0.0)) @ vectors.T
        # With a larger count than the matrix has, the covariance is still without negative variances.
        count = max(matrix[-1, -1] / LAST**2, 2.0)
        step = self.grid.step
        mean = matrix[:-1, -1] / (LAST * count)
        covariance = step**2 * (matrix[:-1, :-1] / count - np.outer(mean, mean))
        whole = max(int(np.rint(count)), 2)
        return ScatterMoments(whole, step * mean, whole * covariance)

    @cached_property
    def _plain(self) -> ScatterMoments:
        """The moments in the units of the rows."""
        scaled, units = self._scaled, self.grid.units
        return ScatterMoments(scaled.count, self.centre + units @ scaled.mean, units @ scaled.scatter @ units.T)

    @property
    def count(self) -> int:  # type: ignore[override]
        """Number of rows, with noise."""
        return self._scaled.count

    @property
    def mean(self) -> Float:  # type: ignore[override]
        """Mean of the rows, with noise."""
        return self._plain.mean

    @property
    def variances(self) -> Float:
        """Variance of each column."""
        return self._plain.variances

    @property
    def squared_norm(self) -> float:
        """Squared Frobenius norm of the covariance."""
        return self._plain.squared_norm

    @property
    def root_level(self) -> float:
        """Rounding error of `root`."""
        return self._plain.root_level

    def covariance(self) -> Float:
        """Give the covariance matrix."""
        return self._plain.covariance()

    def root(self) -> Float:
        """Give R with ``RᵀR`` the covariance."""
        return self._plain.root()

    def apply(self, U: Float) -> Float:
        """Multiply the covariance with the columns of U."""
        return self._plain.apply(U)

    def variance(self, U: Float) -> Float:
        """Give the variance of the data along each column of U."""
        return self._plain.variance(U)

    # --- noise ----------------------------------------------------------------------------------------------------

    @property
    def noise(self) -> float:
        """The largest variance that noise alone is expected to make along any direction, in units of `scale`.

        The noise is a symmetric matrix of independent Gaussian entries, whose largest eigenvalue is known.
        """
        entry = float(np.sqrt(self.noise_variance)) / BESIDE * self.grid.step**2
        return 2.0 * entry * float(np.sqrt(self.n_features)) / self.count

    def noise_along(self, U: Float) -> Float:
        """Give the largest variance that noise alone is expected to make along directions, in units of the rows.

        Parameters
        ----------
        U : ndarray of shape (n_features, d)

        Returns
        -------
        ndarray of shape (d,)
        """
        return self.noise * np.sum((self.grid.units.T @ U) ** 2, axis=0)

    @property
    def shrinkage(self) -> float:
        """The shrinkage that the known noise asks for: half of the noise, as a share of it and the mean variance."""
        ridge = RIDGE * self.noise
        return ridge / (ridge + self._scaled.total_variance / self.n_features)

    @property
    def spherical(self) -> ScatterMoments:
        """What a private background is shrunken towards: the same variance along every direction, in units of `scale`.

        Noise is the same along every direction in these units, and not in those of the rows.
        """
        variance, units = self._scaled.total_variance / self.n_features, self.grid.units
        return ScatterMoments(self.count, self.mean, self.count * variance * units @ units.T)

    def whitening(self) -> dict[str, Any]:
        """Give bounds for the release of a target, from this release of a background.

        In these bounds the background varies alike along every direction. The noise of the target is then small where
        the background varies little, and a tenth of the rows can be enough. This costs no budget, because the release
        is public already. Rows of the target and of the background can be at different places.

        Returns
        -------
        dict
            ``centre``, ``scale`` (a matrix) and ``radius``, for `release`.
        """
        values, vectors = np.linalg.eigh(self._scaled.covariance())
        root = (vectors * np.sqrt(np.maximum(values, 0.0) + RIDGE * self.noise)) @ vectors.T
        radius = WHITE_RADIUS * float(np.sqrt(self.n_features))
        return {"centre": self.mean, "scale": self.grid.units @ root, "radius": radius}

    # --- places and files -----------------------------------------------------------------------------------------

    def __add__(self, other: Any) -> PrivateMoments:
        """Give the sums of both places together."""
        if not isinstance(other, Moments):
            return NotImplemented
        self._check_addable(other)
        assert isinstance(other, PrivateMoments)
        for name in ("centre", "scale", "radius", "columns"):
            mine, theirs = getattr(self, name), getattr(other, name)
            if not np.array_equal(np.asarray(mine), np.asarray(theirs)):
                raise InvalidValueError(
                    "two places were released with a different {name}, so that their sums do not add up",
                    name=name,
                    advice="Agree on {p.centre}, {p.scale}, {p.radius} and the columns before the release.",
                )
        return PrivateMoments(
            self.released + other.released,
            self.centre,
            self.scale,
            self.radius,
            self.noise_variance + other.noise_variance,
            self.spent + other.spent,
            self.columns,
        )

    def __repr__(self) -> str:
        spent = "; ".join(map(str, self.spent[:3])) + ("; ..." if len(self.spent) > 3 else "")
        return f"PrivateMoments(about {self.count} rows x {self.n_features} columns, with noise; {spent})"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the sums to a file: the noisy sums, the bounds, the budget; no rows and no exact sums.

        Parameters
        ----------
        path : str or path-like
            By custom its name ends with ``.sums``. A file that is there is replaced.
        """
        about = {
            "format": FORMAT,
            "noise_variance": self.noise_variance,
            "radius": self.radius,
            "spent": [asdict(one) for one in self.spent],
            "columns": None if self.columns is None else list(self.columns),
            "grid": [LONGEST, LAST],
        }
        content = io.BytesIO()
        arrays = {"released": self.released, "centre": self.centre, "scale": self.scale}
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
        except FileNotFoundError:
            raise MissingFileError("there is no file {path}", path=shown(place), advice="Check the name.") from None
        except OSError as error:
            raise FileError("{path} cannot be read: {reason}", path=shown(place), reason=error.strerror) from error
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                # What `save` writes is not packed: a small file cannot ask for much memory.
                if any(part.compress_type != zipfile.ZIP_STORED for part in archive.infolist()):
                    raise ValueError("the file is packed")
            with np.load(io.BytesIO(content), allow_pickle=False) as stored:
                return cls._made(json.loads(str(stored["about"])), {name: stored[name] for name in stored.files})
        except (KeyError, TypeError, ValueError, EOFError, OSError, zipfile.BadZipFile) as error:
            raise InvalidValueError(
                "{path} holds no private sums, or is damaged",
                path=shown(place),
                advice="Give a file that standout release, or PrivateMoments.save, has written.",
            ) from error

    @classmethod
    def _made(cls, about: Mapping[str, Any], arrays: Mapping[str, Array]) -> PrivateMoments:
        """Make sums from the parts of a file, which are checked."""
        released, centre, scale = arrays["released"], arrays["centre"], arrays["scale"]
        size, columns, radius = len(centre) + 1, about["columns"], float(about["radius"])
        variance = float(about["noise_variance"])
        fits = (
            about["format"] == FORMAT
            and about["grid"] == [LONGEST, LAST]
            and released.dtype == np.int64
            and released.shape == (size * (size + 1) // 2,)
            and centre.dtype == scale.dtype == np.float64
            and centre.shape == (size - 1,)
            and size > 1
            and bool(np.isfinite(centre).all() and np.isfinite(scale).all())
            and (scale.shape == (size - 1, size - 1) or (scale.shape == (size - 1,) and bool((scale > 0).all())))
            and 0.0 < radius < np.inf
            and 0.0 < variance < np.inf
            and (columns is None or (len(columns) == size - 1 and all(isinstance(one, str) for one in columns)))
        )
        spent = tuple(
            Spent(float(one["epsilon"]), float(one["delta"]), float(one["rho"]), str(one["unit"]), int(one["max_rows"]))
            for one in about["spent"]
        )
        if not fits or not spent:
            raise ValueError("a part is missing or has another form")
        return cls(released, centre, scale, radius, variance, spent, None if columns is None else tuple(columns))
