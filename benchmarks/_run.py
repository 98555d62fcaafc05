"""Fresh processes, and what is said while they run: shared by all benchmarks."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

CHILD = Path(__file__).with_name("_child.py")
OWN_TIMEOUT = 600.0
IDLE_LOAD = 0.5
THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def run_child(
    side: str,
    folder: Path,
    dtype: str = "float64",
    python: Path | str = sys.executable,
    options: dict[str, Any] | None = None,
    **limits: float,
) -> dict[str, Any]:
    """Measure one side in a fresh process; whatever goes wrong comes back as one line under "error".

    `options` are handed on to the side's fit.
    """
    command = [str(python), str(CHILD), side, str(folder), "--dtype", dtype]
    command += ["--options", json.dumps(options or {})]
    environment = dict(os.environ)
    if "gigabytes" in limits:
        command += ["--memory-gigabytes", str(limits["gigabytes"])]
    if "threads" in limits:
        environment |= dict.fromkeys(THREAD_VARIABLES, f"{limits['threads']:.0f}")
    return _answer(command, environment, limits.get("timeout", OWN_TIMEOUT))


def run_script(script: Path, python: Path | str) -> dict[str, Any]:
    """Run a script that prints one line of JSON; whatever goes wrong comes back as one line under "error"."""
    return _answer([str(python), str(script)], dict(os.environ), OWN_TIMEOUT)


def _answer(command: list[str], environment: dict[str, str], timeout: float) -> dict[str, Any]:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False, env=environment)
    except subprocess.TimeoutExpired:
        return {"error": f"stopped after {timeout:.0f} s"}
    if done.returncode < 0:
        return {"error": f"killed by {signal.Signals(-done.returncode).name}"}
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return {"error": f"exit code {done.returncode}: {last}"}
    return json.loads(done.stdout.splitlines()[-1])


def progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def warn_if_busy() -> None:
    if (load := os.getloadavg()[0]) > IDLE_LOAD:
        progress(f"The machine is not idle (load {load:.1f}): do not trust these figures.")
