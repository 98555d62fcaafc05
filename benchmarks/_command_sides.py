"""The sides of the benchmark of the command line: each is one fresh process that prints a line of JSON at its end."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

TIMEOUT = 600.0
START = "start and imports"

# The peak is that of this process alone: starting another program sets the record back.
_PEAK = """
def peak():
    for line in open("/proc/self/status"):
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024 / 1e6
"""

_BARE = (
    _PEAK
    + """
import json, time
import numpy as np
import pyarrow.parquet as parquet
from standout import DiscriminativePCA
start = time.perf_counter()
tables = [parquet.read_table(name) for name in ("target.parquet", "background.parquet")]
read = time.perf_counter() - start
start = time.perf_counter()
target, background = (np.column_stack([column.to_numpy() for column in table.columns]) for table in tables)
turned = time.perf_counter() - start
start = time.perf_counter()
DiscriminativePCA(2).fit(target, background=background)
fit = time.perf_counter() - start
print(json.dumps({"uncounted": turned, "megabytes": peak(), "facts": {"reading": read, "fit": fit}}))
"""
)

_COMMAND = (
    _PEAK
    + """
import json, sys
from standout.cli import main
code = main(["fit", "target.parquet", "-b", "background.parquet", "-o", "out", "--overwrite", "--quiet"])
if code:
    sys.exit(code)
stages = json.load(open("out/summary.json"))["seconds"]
facts = {}
for words, seconds in stages.items():
    stage = words.split()[0].rstrip(":")
    facts[stage] = facts.get(stage, 0.0) + seconds
print(json.dumps({"uncounted": 0.0, "megabytes": peak(), "facts": facts}))
"""
)

_SCRIPTS = {"bare": _BARE, "command": _COMMAND}


def measure(side: str, folder: Path) -> dict[str, Any]:
    """Measure one side; whatever goes wrong comes back as one line under "error"."""
    start = time.perf_counter()
    try:
        done = subprocess.run(
            [sys.executable, "-c", _SCRIPTS[side]],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"error": f"stopped after {TIMEOUT:.0f} s"}
    whole = time.perf_counter() - start
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return {"error": f"exit code {done.returncode}: {last}"}
    said = json.loads(done.stdout.splitlines()[-1])
    seconds = whole - said["uncounted"]
    facts = {START: seconds - sum(said["facts"].values()), **said["facts"]}
    return {"seconds": seconds, "megabytes": said["megabytes"], "r2": None, "facts": facts}
