"""Commands that are killed at random moments, some of them inside the renames that put a result in place.

After each kill the next run must succeed, and the folder may contain only results.

``python tests/kills.py --kills 50`` kills many and prints what was left each time; the tests kill a few.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from cli_runs import PAIR, PATIENCE, RESULT, write_pair

# A script: it runs the command line, and kills the process before or after its n-th rename or removal in the folder.
KILLED = """
import os, signal, sys
from pathlib import Path
number, when, here, counter = int(sys.argv[1]), sys.argv[2], os.getcwd(), [0]

def killing(function):
    def changed(*arguments, **options):
        if not os.path.realpath(os.fspath(arguments[0])).startswith(here):
            return function(*arguments, **options)
        counter[0] += 1
        is_meant = counter[0] == number
        if is_meant and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            return function(*arguments, **options)
        finally:
            if is_meant:
                os.kill(os.getpid(), signal.SIGKILL)
    return changed

Path.rename, Path.replace, Path.rmdir = map(killing, (Path.rename, Path.replace, Path.rmdir))
os.replace, os.link, os.rename, os.unlink = map(killing, (os.replace, os.link, os.rename, os.unlink))
from standout.cli import main
sys.exit(main(sys.argv[3:]))
"""
COMMANDS = {
    "fit": ["fit", *PAIR, "-o", "out", "--overwrite", "-q", "--no-test"],
    "transform": ["transform", "model", "target.csv", "-o", "new.csv", "--overwrite", "-q"],
}


def prepare(folder: Path) -> float:
    """Write the data and a model; return the seconds that a fit takes."""
    write_pair(folder)
    start = time.monotonic()
    run(folder, ["fit", *PAIR, "-o", "model", "-q", "--no-test"])
    return time.monotonic() - start


def run(folder: Path, command: list[str]) -> None:
    """Run a command to its end."""
    done = subprocess.run(
        [sys.executable, "-m", "standout", *command],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def kill_at(folder: Path, command: list[str], seconds: float) -> bool:
    """Kill a command after some time; return False if it had already ended."""
    with subprocess.Popen([sys.executable, "-m", "standout", *command], cwd=folder, stderr=subprocess.PIPE) as process:
        try:
            process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
        process.wait()
    return process.returncode == -signal.SIGKILL


def kill_in_renames(folder: Path, command: list[str], number: int, when: str) -> bool:
    """Kill a command before or after its n-th rename or removal; return False if there are fewer."""
    script = [sys.executable, "-c", KILLED, str(number), when, *command]
    done = subprocess.run(script, cwd=folder, capture_output=True, timeout=PATIENCE, check=False)
    return done.returncode == -signal.SIGKILL


def check(folder: Path, command: list[str]) -> list[str]:
    """Run the command again, check the folder, and return the hidden names that the killed process left."""
    left = sorted(path.name for path in folder.iterdir() if path.name.startswith("."))
    run(folder, command)
    known = {"target.csv", "background.csv", "model", "out", "new.csv"}
    names = {path.name for path in folder.iterdir()}
    assert names <= known, sorted(names - known)
    for place in (folder / "model", folder / "out"):
        if place.exists():
            assert {path.name for path in place.iterdir()} == RESULT
            json.loads((place / "summary.json").read_text())
    return left


def main() -> int:
    """Kill many commands."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rng, n_killed, n_left = random.Random(given.seed), 0, 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        seconds = prepare(folder)
        while n_killed < given.kills:
            what = rng.choices(list(COMMANDS), [3, 1])[0]
            command = COMMANDS[what]
            if rng.random() < 0.5:
                number, when = rng.randint(1, 12), rng.choice(["before", "after"])
                killed, moment = kill_in_renames(folder, command, number, when), f"{when} rename {number}"
            else:
                after = rng.uniform(0.0, seconds)
                killed, moment = kill_at(folder, command, after), f"after {after:.2f} s"
            left = check(folder, command)
            n_killed, n_left = n_killed + killed, n_left + bool(left)
            print(f"{what}, {moment}: {'killed' if killed else 'ended before'}, left {left or 'nothing'}", flush=True)
    print(f"{n_killed} kills; after {n_left} of them something was left, and the next run removed or restored it")
    return 0


if __name__ == "__main__":
    sys.exit(main())
