"""What a fit costs on a GPU: against the bare products and eigenvectors, and against the transfer from the host.

Run it on an otherwise idle machine with a CUDA device, PyTorch and (for one part) CuPy::

    SCIPY_ARRAY_API=1 python benchmarks/gpu.py

It wants 60 GB of memory of the device and 40 GB of the host's. ``--small`` tries the script, on the CPU where there is
no GPU, and says nothing of speed; ``--json FILE`` writes all figures (they are also written to the folder in ``OUT``,
if that is set). Every result is checked against NumPy. A part that fails is reported, and the others go on.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

# SciPy reads it when it is imported.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

import numpy as np
import sklearn
import torch
from scipy import linalg

import standout
from standout import DiscriminativePCA, KernelDiscriminativePCA
from standout.io import on_device
from standout.moments import gather
from standout.sources._device import BATCH_BYTES, overlapped_copies


@dataclass(frozen=True)
class Sizes:
    """How much of everything."""

    device: str
    rows: int
    columns: int
    kernel_rows: int
    kernel_columns: int
    rank: int
    repeats: int
    shapes: tuple[tuple[int, int], ...]
    wide: tuple[int, int]


TALL_SHAPES = ((1_000_000, 1_024), (400_000, 512), (2_000_000, 256), (100_000, 4_096))
FULL = Sizes("cuda", 1_000_000, 1_024, 1_000_000, 50, 2_000, 5, TALL_SHAPES, (3_000, 50_000))
SMALL = Sizes("cpu", 20_000, 64, 5_000, 10, 100, 2, ((2_000, 32), (1_000, 300)), (40, 1_000))


def main() -> int:
    options = parse()
    sklearn.set_config(array_api_dispatch=True)
    sizes = SMALL if options.small or not torch.cuda.is_available() else FULL
    if torch.cuda.is_available():
        sizes = replace(sizes, device="cuda")
    about = machine(sizes)
    print("\n".join(f"{key}: {value}" for key, value in about.items()), flush=True)
    parts: dict[str, Callable[[Sizes], dict[str, float]]] = {
        "torch": linear_torch,
        "shapes": shapes,
        "wide": wide,
        "cupy": linear_cupy,
        "host": from_host,
        "kernel": kernel,
    }
    figures: dict[str, Any] = {}
    for name in options.parts:
        started = time.perf_counter()
        try:
            figures[name] = parts[name](sizes)
        except Exception as error:
            traceback.print_exc()
            figures[name] = {"error": f"{type(error).__name__}: {error}"}
        figures[name]["seconds in all"] = time.perf_counter() - started
        print(table(name, figures[name]), flush=True)
        write(options.json, {"about": about, "figures": figures})
        empty(sizes)
    bounds = list(requirements(figures, speed=sizes == FULL))
    print("\n".join(["", "| bound | found | met |", "|---|---|---|", *bounds]))
    return int(any("error" in found for found in figures.values()))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    names = ["torch", "shapes", "wide", "cupy", "host", "kernel"]
    parser.add_argument("--parts", nargs="+", choices=names, default=names, help="which parts (all)")
    parser.add_argument("--small", action="store_true", help="tiny shapes, also on the CPU: tries the script")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every figure as JSON")
    return parser.parse_args()


def machine(sizes: Sizes) -> dict[str, str]:
    cuda = sizes.device == "cuda"
    return {
        "device": torch.cuda.get_device_name() if cuda else f"CPU ({platform.machine()})",
        "cores": str(os.cpu_count()),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scikit-learn": sklearn.__version__,
        "torch": torch.__version__,
        "standout": standout.__version__,
        "linear": f"({sizes.rows:,}+{sizes.rows:,}) x {sizes.columns:,} float64",
        "kernel": f"({sizes.kernel_rows:,}+{sizes.kernel_rows:,}) x {sizes.kernel_columns}, rank {sizes.rank:,}",
    }


def seconds(sizes: Sizes, work: Callable[[], Any], repeats: int | None = None) -> float:
    """Median of the wall clock, the device waited for on both sides, after one run to warm up."""
    return seconds_in_turns(sizes, {"": work}, repeats or sizes.repeats)[""]


def seconds_in_turns(sizes: Sizes, works: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Medians of several works that take turns, so that a slow minute is one for all of them."""
    found: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(repeats + 1):
        for name, work in works.items():
            wait(sizes)
            started = time.perf_counter()
            result = work()
            wait(sizes)
            if turn:
                found[name].append(time.perf_counter() - started)
            del result
    return {name: median(times) for name, times in found.items()}


def wait(sizes: Sizes) -> None:
    if sizes.device == "cuda":
        torch.cuda.synchronize()


def empty(sizes: Sizes) -> None:
    """Give back the memory of a part, the device's and what the library keeps of it."""
    gc.collect()
    if sizes.device == "cuda":
        torch.cuda.empty_cache()


def datasets(sizes: Sizes, shape: tuple[int, int] | None = None) -> tuple[Any, Any]:
    """A target and a background, made on the device: columns of different spread, one of them wider in the target."""
    shape = shape or (sizes.rows, sizes.columns)
    generator = torch.Generator(device=sizes.device).manual_seed(0)
    scale = torch.linspace(1.0, 3.0, shape[1], dtype=torch.float64, device=sizes.device)

    def draw() -> Any:
        rows = torch.randn(shape, generator=generator, dtype=torch.float64, device=sizes.device)
        rows *= scale
        rows += 0.5
        return rows

    target, background = draw(), draw()
    target[:, 3] *= 2.0
    target[:, 4] += 0.3 * target[:, 3]
    return target, background


def linear_torch(sizes: Sizes) -> dict[str, float]:
    target, background = datasets(sizes)
    figures = linear(sizes, target, background, torch.linalg.eigh)
    fitted = DiscriminativePCA(2).fit(target, background=background)
    figures["error against NumPy, same moments"] = error_on_moments(fitted, target, background)
    few = slice(0, min(20_000, sizes.rows))
    figures["error against NumPy, same rows"] = error_on_rows(target[few], background[few], lambda rows: rows)
    plain = seconds(sizes, lambda: DiscriminativePCA(2, shrinkage=None).fit(target, background=background))
    figures["fit without shrinkage"] = plain
    figures["moments of the target"] = seconds(sizes, lambda: gather(target, kind="scatter"))
    figures["moments of the background"] = seconds(sizes, lambda: gather(background, kind="scatter", norms=True))
    figures["transform"] = seconds(sizes, lambda: fitted.transform(target))
    return figures


def shapes(sizes: Sizes) -> dict[str, float]:
    """Fits of several shapes in both precisions, without and with folds, against two products and one eigh."""
    figures: dict[str, float] = {}
    for n_rows, n_columns in sizes.shapes:
        for precision in (torch.float64, torch.float32):
            target, background = (rows.to(precision) for rows in datasets(sizes, (n_rows, n_columns)))
            name = f"{n_rows:,} x {n_columns:,} {str(precision).removeprefix('torch.')}"
            matrix = (target.T @ target).to(torch.float64)

            def products(target: Any = target, background: Any = background) -> Any:
                return target.T @ target, background.T @ background

            def eigenvectors(matrix: Any = matrix) -> Any:
                return torch.linalg.eigh(matrix)

            figures |= compared(sizes, name, [products, eigenvectors], target, background)
            del target, background, matrix, products, eigenvectors
            empty(sizes)
    return figures


def wide(sizes: Sizes) -> dict[str, float]:
    """Fits of wide data against the inner products of all rows and one eigh, with the memory beyond the inputs."""
    figures: dict[str, float] = {}
    for precision in (torch.float64, torch.float32):
        target, background = (rows.to(precision) for rows in datasets(sizes, sizes.wide))
        target[:, 3] *= 10.0
        name = str(precision).removeprefix("torch.")
        together = torch.cat([target, background])
        matrix = (together @ together.T).to(torch.float64)
        plain = [
            lambda together=together: together @ together.T,
            lambda matrix=matrix: torch.linalg.eigh(matrix),
        ]
        figures |= compared(sizes, name, plain, target, background)
        few = target[:200, :3_000], background[:200, :3_000]
        if precision == torch.float64:
            figures["error against NumPy, same rows"] = error_on_rows(*few, lambda rows: rows)
        del target, background, together, matrix, plain, few
        empty(sizes)
    return figures


def compared(sizes: Sizes, name: str, plain: list[Callable[[], Any]], target: Any, background: Any) -> dict[str, float]:
    """Seconds of the plain computation, and how many times as long a fit takes, without and with held-out ratios."""
    whole = sum(seconds(sizes, work) for work in plain)
    without = DiscriminativePCA(2, held_out=None)
    found = {f"{name}: plain": whole}
    for words, model in (("without held-out ratios", without), ("fit", DiscriminativePCA(2))):
        found[f"{name}: {words}, ratio"] = seconds(sizes, lambda m=model: m.fit(target, background=background)) / whole
        if sizes.device == "cuda":
            empty(sizes)
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
            model.fit(target, background=background)
            found[f"{name}: {words}, MB beyond the inputs"] = (torch.cuda.max_memory_allocated() - before) / 1e6
    return found


def linear(sizes: Sizes, target: Any, background: Any, eigh: Callable[[Any], Any]) -> dict[str, float]:
    """The fit against two products and the eigenvectors of one of them."""
    products = seconds(sizes, lambda: (target.T @ target, background.T @ background))
    matrix = target.T @ target
    eigenvectors = seconds(sizes, lambda: eigh(matrix))
    without = seconds(sizes, lambda: DiscriminativePCA(2, held_out=None).fit(target, background=background))
    fit = seconds(sizes, lambda: DiscriminativePCA(2).fit(target, background=background))
    return {
        "two products": products,
        "one eigh": eigenvectors,
        "fit without held-out ratios": without,
        "fit": fit,
        "ratio": without / (products + eigenvectors),
        "ratio with held-out ratios": fit / (products + eigenvectors),
    }


def linear_cupy(sizes: Sizes) -> dict[str, float]:
    if sizes.device != "cuda":
        return {}
    import cupy

    tensors = datasets(sizes)
    target, background = (cupy.from_dlpack(rows) for rows in tensors)
    figures = linear(sizes, target, background, cupy.linalg.eigh)
    fitted = DiscriminativePCA(2).fit(target, background=background)
    ours = DiscriminativePCA(2).fit(tensors[0], background=tensors[1])
    figures["difference from torch"] = apart(fitted.components_.get(), ours.components_.cpu().numpy())
    figures["fit without shrinkage"] = seconds(
        sizes, lambda: DiscriminativePCA(2, shrinkage=None).fit(target, background=background)
    )
    cupy.get_default_memory_pool().free_all_blocks()
    return figures


def from_host(sizes: Sizes) -> dict[str, float]:
    """A fit from the host's memory against the transfer alone, by whichever way is faster."""
    on_the_device = datasets(sizes)
    expected = DiscriminativePCA(2).fit(on_the_device[0], background=on_the_device[1])
    # Plain memory of the host, as NumPy gives it.
    host = [np.empty((sizes.rows, sizes.columns)) for _ in on_the_device]
    for array, rows in zip(host, on_the_device, strict=True):
        torch.from_numpy(array).copy_(rows)
    del on_the_device, rows
    empty(sizes)

    def fit(held_out: int | None = 10) -> Any:
        target, background = (on_device(array, sizes.device) for array in host)
        return DiscriminativePCA(2, held_out=held_out).fit(target, background=background)

    def overlapped() -> None:
        for array in host:
            for _ in overlapped_copies(batches(array), sizes.device):
                pass

    def plain() -> None:
        for array in host:
            for batch in batches(array):
                torch.from_numpy(batch).to(sizes.device)

    works: dict[str, Callable[[], Any]] = {
        "fit from host without held-out ratios": lambda: fit(None),
        "fit from host": fit,
        "transfer, batch by batch": plain,
    }
    if sizes.device == "cuda":
        works["transfer, overlapped with staging"] = overlapped
    figures = seconds_in_turns(sizes, works, sizes.repeats)
    transfer = min(value for name, value in figures.items() if name.startswith("transfer"))
    n_bytes = sum(array.nbytes for array in host)
    figures["GB/s of the fastest transfer"] = n_bytes / transfer / 1e9
    figures["ratio"] = figures["fit from host without held-out ratios"] / transfer
    figures["ratio with held-out ratios"] = figures["fit from host"] / transfer
    figures["difference from the fit on the device"] = apart(
        fit().components_.cpu().numpy(), expected.components_.cpu().numpy()
    )
    return figures


def batches(array: np.ndarray) -> Iterator[np.ndarray]:
    size = max(BATCH_BYTES // (array.itemsize * array.shape[1]), 1)
    return (array[start : start + size] for start in range(0, len(array), size))


def kernel(sizes: Sizes) -> dict[str, float]:
    generator = torch.Generator(device=sizes.device).manual_seed(1)
    shape = (sizes.kernel_rows, sizes.kernel_columns)
    target, background = (
        torch.randn(shape, generator=generator, dtype=torch.float64, device=sizes.device) for _ in range(2)
    )
    target[: sizes.kernel_rows // 2] *= 0.5

    def model(rank: int, held_out: int | None = None) -> KernelDiscriminativePCA:
        return KernelDiscriminativePCA(
            2, approximation="pivoted", rank=rank, epsilon="scaled", held_out=held_out, random_state=0
        )

    few = target[-3_000:], background[-3_000:]
    rank = min(200, sizes.rank)
    ours = model(rank).fit(few[0], background=few[1])
    theirs = model(rank).fit(few[0].cpu().numpy(), background=few[1].cpu().numpy())
    figures = {"error against NumPy, same rows": apart(ours.eigenvalues_.cpu().numpy(), theirs.eigenvalues_)}
    figures["fit without held-out ratios"] = seconds(
        sizes, lambda: model(sizes.rank).fit(target, background=background), 3
    )
    figures["fit"] = seconds(sizes, lambda: model(sizes.rank, 10).fit(target, background=background), 2)
    fitted = model(sizes.rank).fit(target, background=background)
    figures["residual"] = float(fitted.residual_)
    figures["transform"] = seconds(sizes, lambda: fitted.transform(target), 1)
    return figures


def error_on_moments(fitted: DiscriminativePCA, target: Any, background: Any) -> float:
    """Error of the eigenvalues against SciPy on covariances that are centred first."""
    a, b = (torch.cov(rows.T, correction=0).cpu().numpy() for rows in (target, background))
    share = float(fitted.shrinkage_[0])
    shrunken = (1.0 - share) * b + share * np.trace(b) / len(b) * np.eye(len(b))
    size = len(a)
    values = linalg.eigh(a, shrunken, subset_by_index=[size - 2, size - 1], eigvals_only=True)[::-1]
    return apart(fitted.eigenvalues_.cpu().numpy(), values)


def error_on_rows(target: Any, background: Any, convert: Callable[[Any], Any]) -> float:
    """Error of the components against a fit of the same rows by NumPy."""
    ours = DiscriminativePCA(2).fit(convert(target), background=convert(background))
    theirs = DiscriminativePCA(2).fit(target.cpu().numpy(), background=background.cpu().numpy())
    return apart(ours.components_.cpu().numpy(), theirs.components_)


def apart(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.max(np.abs(one - other)) / np.max(np.abs(other)))


def table(name: str, figures: dict[str, Any]) -> str:
    lines = ["", f"| {name} | |", "|---|---|"]
    for key, value in figures.items():
        small = isinstance(value, float) and (key.startswith(("error", "difference")))
        lines.append(
            f"| {key} | {value:.1e} |"
            if small
            else f"| {key} | {value:.4g} |"
            if isinstance(value, float)
            else f"| {key} | {value} |"
        )
    return "\n".join(lines)


def requirements(figures: dict[str, Any], speed: bool) -> Iterator[str]:
    """What the figures are held to."""
    fast = [
        ("torch", "ratio", 1.3, "fit without held-out ratios / (two products + one eigh), torch"),
        ("cupy", "ratio", 1.3, "fit without held-out ratios / (two products + one eigh), CuPy"),
        ("host", "ratio", 1.3, "fit from host memory / transfer"),
        ("kernel", "fit without held-out ratios", 0.5, "kernel fit without held-out ratios in seconds"),
        *((part, key, 1.3, key) for part, key in _ratios(figures, "shapes")),
        *((part, key, 2.0, f"wide, {key}") for part, key in _ratios(figures, "wide")),
    ]
    right = [
        ("torch", "error against NumPy, same rows", 1e-10, "components, torch against NumPy"),
        ("torch", "error against NumPy, same moments", 1e-8, "eigenvalues, torch against SciPy"),
        ("cupy", "difference from torch", 1e-8, "components, CuPy against torch"),
        ("host", "difference from the fit on the device", 1e-10, "components, batches against the device"),
        ("kernel", "error against NumPy, same rows", 1e-8, "eigenvalues, kernel against NumPy"),
        ("wide", "error against NumPy, same rows", 1e-8, "components, wide data against NumPy"),
    ]
    for part, key, bound, meaning in (fast if speed else []) + right:
        value = figures.get(part, {}).get(key)
        if value is not None:
            yield f"| {meaning} <= {bound:g} | {value:.3g} | {'yes' if value <= bound else 'NO'} |"


def _ratios(figures: dict[str, Any], part: str) -> list[tuple[str, str]]:
    """What of a part is a ratio of a fit without held-out ratios."""
    return [(part, key) for key in figures.get(part, {}) if key.endswith("without held-out ratios, ratio")]


def write(path: Path | None, figures: dict[str, Any]) -> None:
    """Write the figures so far: a later part may take the machine down."""
    folder = os.environ.get("OUT")
    for place in [path, Path(folder) / "gpu.json" if folder else None]:
        if place is not None:
            place.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    sys.exit(main())
