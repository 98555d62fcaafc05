"""One measurement: load the data, warm up, time one fit, print one line of JSON.

Runs in a fresh process, in whichever environment holds the side; needs nothing but NumPy itself.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import resource
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from _kernel_sides import KERNEL_SIDES
from _selection_sides import SELECTION_SIDES
from _sides import SIDES, Side

ALL_SIDES = SIDES | KERNEL_SIDES | SELECTION_SIDES
STATUS, CLEAR_REFS = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class PeakMemory:
    """How far memory rises above where it stood when this object was made, in MB.

    Linux can set its record of the peak back, which makes this exact. Elsewhere the record of the
    whole process is all there is, and a fit that stays below the peak of the loading shows as zero.
    """

    def __init__(self) -> None:
        try:
            CLEAR_REFS.write_text("5")
            self._start = _status_megabytes("VmRSS")
            self._resettable = True
        except OSError:
            self._start = _process_peak_megabytes()
            self._resettable = False

    def rise(self) -> float:
        peak = _status_megabytes("VmHWM") if self._resettable else _process_peak_megabytes()
        return peak - self._start


def _status_megabytes(field: str) -> float:
    for line in STATUS.read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise OSError(f"{STATUS} has no field {field}")


def _process_peak_megabytes() -> float:
    unit = 1 if sys.platform == "darwin" else 1024  # macOS counts bytes, the others kilobytes
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def share_explained(own: np.ndarray, scores: np.ndarray) -> float | None:
    """R² of the target's own factors given the scores, by least squares, averaged over the factors."""
    scores = np.asarray(np.real(scores), dtype=np.float64)
    if scores.ndim != 2 or not scores.size or not np.isfinite(scores).all():
        return None
    own = own - own.mean(axis=0)
    scores = scores - scores.mean(axis=0)
    scores /= np.maximum(np.abs(scores).max(axis=0), np.finfo(np.float64).tiny)
    left = own - scores @ np.linalg.lstsq(scores, own, rcond=None)[0]
    return float(np.mean(1 - (left**2).sum(axis=0) / (own**2).sum(axis=0)))


def _best_share(own: np.ndarray, scores: Any) -> float | None:
    """Where a side offers several views, as a user would: the one that shows most."""
    if scores is None:
        return None
    views = scores if isinstance(scores, list) else [scores]
    shares = [share_explained(own, view) for view in views]
    return max((share for share in shares if share is not None), default=None)


def _warm_up(side: Side, X: np.ndarray, Y: np.ndarray, options: dict[str, Any]) -> None:
    """Run once on a tenth of rows and columns: imports, compilation and thread pools are not the fit."""
    rows, columns = max(len(X) // 10, 8), max(X.shape[1] // 10, 6)
    with contextlib.suppress(Exception):  # if it matters, the real fit raises it again
        side.fit(side.prepare(X[:rows, :columns].copy(), Y[:rows, :columns].copy()), **options)


def measure(side: Side, folder: Path, dtype: str, options: dict[str, Any]) -> dict[str, Any]:
    X, Y = (np.load(folder / f"{name}-{dtype}.npy") for name in ("target", "background"))
    _warm_up(side, X, Y, options)
    inputs = side.prepare(X, Y)
    gc.collect()
    memory = PeakMemory()
    start, used = time.perf_counter(), time.process_time()
    fitted = side.fit(inputs, **options)
    seconds, cpu = time.perf_counter() - start, time.process_time() - used
    megabytes = memory.rise()
    own = folder / "own.npy"
    r2 = _best_share(np.load(own), side.scores(fitted, X)) if own.exists() else None
    return {"seconds": seconds, "cpu": cpu, "megabytes": megabytes, "r2": r2, "facts": side.facts(fitted)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("side", choices=ALL_SIDES)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--dtype", default="float64")
    parser.add_argument("--options", type=json.loads, default={}, help="what the side's fit is told, as JSON")
    parser.add_argument("--memory-gigabytes", type=float, help="address space to refuse beyond")
    arguments = parser.parse_args()
    if arguments.memory_gigabytes:
        size = int(arguments.memory_gigabytes * 1e9)
        resource.setrlimit(resource.RLIMIT_AS, (size, size))
    # Some sides print while they fit; standard output is for the one line.
    with contextlib.redirect_stdout(sys.stderr), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = measure(ALL_SIDES[arguments.side], arguments.folder, arguments.dtype, arguments.options)
        except Exception as error:
            text = (str(error).strip().splitlines() or [""])[0]
            result = {"error": f"{type(error).__name__}: {text}"}
            if isinstance(error, MemoryError) and arguments.memory_gigabytes:
                # Whose limit it was has to be said: with more memory the side might have finished.
                result["error"] = f"more than the {arguments.memory_gigabytes:.0f} GB allowed here; {result['error']}"
    print(json.dumps(result))


if __name__ == "__main__":
    main()
