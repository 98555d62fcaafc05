"""Image cubes: equal to the generalized eigenproblem and to the package spectral; masks, files, difference spectra."""

import matplotlib as mpl
import numpy as np
import pytest
from scipy import io as scipy_io
from scipy import linalg

from cli_runs import fails, summary, works_here
from standout import DiscriminativePCA, plots
from standout.images import noise_fractions, read_cube

mpl.use("Agg")
ROWS, COLUMNS, BANDS = 60, 50, 12


@pytest.fixture
def cube():
    """Three smooth materials, and noise of a different size in each band."""
    rng = np.random.default_rng(0)
    maps = np.cumsum(np.cumsum(rng.normal(size=(ROWS, COLUMNS, 3)), axis=0), axis=1)
    noise = rng.normal(size=(ROWS, COLUMNS, BANDS)) * rng.uniform(0.1, 1.0, BANDS)
    return maps / maps.std(axis=(0, 1)) @ rng.normal(size=(3, BANDS)) + noise


def covariance(rows):
    return np.cov(rows.reshape(-1, rows.shape[-1]), rowvar=False, bias=True)


STEPS = {
    "right": lambda c: c[:, :-1] - c[:, 1:],
    "lower": lambda c: c[:-1] - c[1:],
    "lowerright": lambda c: c[:-1, :-1] - c[1:, 1:],
    "lowerleft": lambda c: c[:-1, 1:] - c[1:, :-1],
}


@pytest.mark.parametrize("direction", STEPS)
def test_without_shrinkage_it_is_the_minimum_noise_fraction(cube, direction):
    spectral = pytest.importorskip("spectral", reason="spectral is not installed")
    found = noise_fractions(cube, direction=direction, n_components=BANDS, cv=None)
    differences = STEPS[direction](cube)
    expected = linalg.eigh(covariance(cube), covariance(differences) / 2.0)[0][::-1]
    np.testing.assert_allclose(found.model.eigenvalues_, expected, rtol=1e-8)
    np.testing.assert_allclose(found.snr, expected - 1.0, atol=1e-8 * expected[0])
    theirs = spectral.mnf(spectral.calc_stats(cube), spectral.noise_from_diffs(cube, direction=direction))
    # Covariances of the package spectral are divided by the number of pixels minus 1.
    n_pixels, n_noise = ROWS * COLUMNS, differences[..., 0].size
    factor = (n_pixels - 1) / n_pixels * n_noise / (n_noise - 1)
    np.testing.assert_allclose(found.model.eigenvalues_, theirs.napc.eigenvalues * factor, rtol=1e-8)
    np.testing.assert_allclose(found.denoise(cube, 3), theirs.denoise(cube, num=3), atol=1e-8)
    scores = theirs.reduce(cube, num=3)
    ours = found.images[..., :3] * np.sign(np.sum(found.images[..., :3] * scores, axis=(0, 1)))
    np.testing.assert_allclose(ours, scores, rtol=1e-3, atol=1e-3)


def test_a_dark_image_is_the_noise(cube):
    dark = np.random.default_rng(1).normal(size=(20, 30, BANDS)) * np.arange(1, BANDS + 1) + 100
    found = noise_fractions(cube, noise=dark, n_components=4, cv=None)
    expected = linalg.eigh(covariance(cube), covariance(dark))[0][::-1][:4]
    np.testing.assert_allclose(found.model.eigenvalues_, expected, rtol=1e-8)


def test_held_out_strips_show_which_components_are_signal(cube):
    found = noise_fractions(cube)
    assert found.images.shape == (ROWS, COLUMNS, BANDS)
    assert np.all(found.snr[:3] > 5)
    assert np.all(np.abs(found.snr[3:]) < 0.3)
    assert found.model.n_folds_ == 5
    signal = found.denoise(cube)
    noise = cube - signal
    assert np.var(STEPS["right"](signal)) < 0.5 * np.var(STEPS["right"](cube))
    assert abs(np.corrcoef(found.images[..., 0].ravel(), noise[..., 0].ravel())[0, 1]) < 0.1
    axes = plots.ratios(found.model)
    assert axes.get_yscale() == "log"
    np.testing.assert_allclose(axes.collections[-1].get_offsets()[:, 1], found.snr + 1.0)


def test_only_pixels_of_the_mask_and_their_neighbours_inside_are_used(cube):
    mask = np.zeros((ROWS, COLUMNS), dtype=bool)
    mask[5:40, 10:45] = True
    spoiled = np.where(mask[..., None], cube, 1e6)
    found = noise_fractions(spoiled, mask=mask, n_components=3)
    expected = noise_fractions(cube[5:40, 10:45], n_components=3)
    np.testing.assert_allclose(found.model.eigenvalues_, expected.model.eigenvalues_, rtol=1e-9)
    assert np.isnan(found.images[~mask]).all()
    np.testing.assert_allclose(found.transform(cube)[mask], found.images[mask], atol=1e-9)


def test_whole_numbers_do_not_wrap_around(cube):
    whole = np.rint(1000 + 100 * (cube - cube.min())).astype(np.uint16)
    expected = noise_fractions(whole.astype(float), cv=None).model.eigenvalues_
    np.testing.assert_allclose(noise_fractions(whole, cv=None).model.eigenvalues_, expected)


def test_files_of_envi_matlab_and_numpy_are_read(cube, tmp_path):
    spectral = pytest.importorskip("spectral", reason="spectral is not installed")
    spectral.envi.save_image(str(tmp_path / "scene.hdr"), cube, dtype=np.float64, ext=".img")
    np.save(tmp_path / "scene.npy", cube)
    scipy_io.savemat(tmp_path / "scene.mat", {"cube": cube, "mask": np.ones((ROWS, COLUMNS))})
    for name in ("scene.hdr", "scene.npy", "scene.mat"):
        np.testing.assert_allclose(read_cube(tmp_path / name), cube)
    scipy_io.savemat(tmp_path / "two.mat", {"cube": cube, "dark": cube * 0})
    with pytest.raises(ValueError, match="2 arrays with three dimensions: cube, dark. Name the one"):
        read_cube(tmp_path / "two.mat")
    np.testing.assert_array_equal(read_cube(tmp_path / "two.mat", variable="dark"), cube * 0)
    for name in ("none.hdr", "none.npy"):
        with pytest.raises(OSError, match="none"):
            read_cube(tmp_path / name)
    (tmp_path / "bad.hdr").write_bytes(b"ENVI\nsamples = {")
    with pytest.raises(ValueError, match="bad.hdr"):
        read_cube(tmp_path / "bad.hdr")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"cube": np.ones((4, 5))}, "cube has shape"),
        ({"cube": np.ones((4, 5, 6), dtype=complex)}, "complex128"),
        ({"noise": "shift"}, "noise='shift' is unknown. Use one of 'differences'"),
        ({"noise": np.ones((9, 3))}, "noise has shape .* 12 bands"),
        ({"direction": "up"}, "direction='up' is unknown. Use one of 'both', 'right'"),
        ({"mask": np.ones((3, 3), dtype=bool)}, "mask has shape"),
        ({"mask": np.eye(60, 50, dtype=bool)}, "fewer than two pairs of neighbours"),
    ],
)
def test_errors_name_the_parameter(cube, change, words):
    given = {"cube": cube, **change}
    with pytest.raises((ValueError, TypeError), match=words):
        noise_fractions(given.pop("cube"), **given)


# --- difference spectra without centring ---


@pytest.fixture
def spectra():
    """Spectra with two analytes, and differences of repeated measurements that have a mean: a drift."""
    rng = np.random.default_rng(0)
    waves = np.linspace(0, 1, 40)
    peaks = np.exp(-((waves - [[0.3], [0.6]]) ** 2) / 0.005)
    drift = np.stack([np.ones(40), waves, waves**2])
    X = rng.normal(size=(200, 2)) @ peaks + 3 * rng.normal(size=(200, 3)) @ drift + 0.05 * rng.normal(size=(200, 40))
    return X, (1.0 + rng.normal(size=(60, 3))) @ drift + 0.02 * rng.normal(size=(60, 40))


def test_generalised_least_squares_weighting_is_dpca_of_differences_and_their_negatives(spectra):
    """GLSW: X is multiplied by (DᵀD / n + α I)^-1/2, and PCA follows."""
    X, differences = spectra
    share = 0.01
    model = DiscriminativePCA(2, shrinkage=share, cv=None).fit(X, background=np.vstack([differences, -differences]))
    clutter = differences.T @ differences / len(differences)
    values, vectors = np.linalg.eigh((1 - share) * clutter + share * np.trace(clutter) / 40 * np.eye(40))
    root = (vectors / np.sqrt(values)) @ vectors.T
    expected = np.linalg.eigvalsh(covariance(X @ root))[::-1][:2]
    np.testing.assert_allclose(model.eigenvalues_, expected, rtol=1e-8)


def test_external_parameter_orthogonalisation_is_the_removal_of_components_of_differences(spectra):
    """EPO: X is projected off the leading right singular vectors of D."""
    X, differences = spectra
    clutter = DiscriminativePCA(3).fit(np.vstack([differences, -differences]))
    cleaned = X - clutter.inverse_transform(clutter.transform(X))
    _, _, right = np.linalg.svd(differences)
    np.testing.assert_allclose(cleaned, X - X @ right[:3].T @ right[:3], atol=1e-10)


# --- the command line ---


@pytest.mark.parametrize("name", ["scene.hdr", "scene.mat"])
def test_the_command_compares_the_pixels_of_a_cube_with_their_noise(cube, tmp_path, name):
    spectral = pytest.importorskip("spectral", reason="spectral is not installed")
    cube[3, 4] = np.nan
    spectral.envi.save_image(str(tmp_path / "scene.hdr"), cube, dtype=np.float64, ext=".img")
    scipy_io.savemat(tmp_path / "scene.mat", {"cube": cube, "mask": np.ones((ROWS, COLUMNS))})
    words = ["fit", str(tmp_path / name), "--cube", "--noise", "differences", "--no-test", "--shrinkage", "none"]
    works_here(*words, "--n-components", "3", "-o", str(tmp_path / "out"))
    found = noise_fractions(cube, mask=np.isfinite(cube).all(axis=2), n_components=3)
    components = summary(tmp_path / "out")["components"]
    np.testing.assert_allclose([one["ratio"] for one in components], found.model.ratio_, rtol=1e-8)
    images = np.load(tmp_path / "out" / "images.npy")
    np.testing.assert_allclose(images, found.images, atol=1e-8)
    assert np.isnan(images[3, 4]).all()
    assert (tmp_path / "out" / "images.png").stat().st_size > 1000


@pytest.mark.parametrize(
    ("words", "said"),
    [(["--noise", "differences"], "--noise needs --cube"), (["--cube", "-b", "x.csv"], "--background: for tables")],
)
def test_options_of_tables_and_of_cubes_exclude_each_other(words, said, tmp_path, capsys):
    fails(["fit", "scene.hdr", *words, "-o", tmp_path / "out"], said, tmp_path, capsys)
