"""The installable peers: which side belongs to which package, and an environment for each.

One environment per peer, so that the wishes of one (an old NumPy, say) do not change another, and so
that one that cannot be installed leaves the others in place.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ENVIRONMENTS = Path(__file__).resolve().parents[1] / ".bench-venv"
INSTALL_TIMEOUT = 900


@dataclass(frozen=True)
class Peer:
    """A package as it is asked of the index, and the sides (name -> label) it provides.

    `missing` are packages that it imports and does not ask for.
    """

    requirement: str
    sides: dict[str, str]
    missing: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The package without its version, which also names its environment."""
        return self.requirement.partition("==")[0]


CONTRASTIVE = "contrastive==1.2.0"

PEERS = (
    Peer(
        CONTRASTIVE,
        {"contrastive-manual": "contrastive, α = 2", "contrastive-auto": "contrastive, automatic α"},
    ),
    Peer("generalized-contrastive-PCA==1.0.2", {"gcpca": "gcPCA v2"}),
    Peer("rhopca==0.1.0", {"rhopca": "rhopca"}),
    Peer("ccpca==0.2.4", {"ccpca": "ccpca, automatic α"}),
    Peer(
        "pcpca==0.4",
        {"pcpca": "pcpca, γ = 0.5, its default", "pcpca-strong": "pcpca, γ = 0.9"},
        missing=("numpy", "scipy"),
    ),
    Peer(
        "mne==1.13.2",
        {"mne-csp": "MNE's CSP", "mne-csp-shrunken": "MNE's CSP, reg='ledoit_wolf'"},
        missing=("scikit-learn",),
    ),
)

# The one that chooses α by the same rule as ours: as its users call it, and doing no more than we do.
ALPHA_PEER = Peer(
    CONTRASTIVE,
    {
        "contrastive-one": "contrastive, α = 1, not standardised",
        "contrastive-auto-plain": "contrastive, automatic α, not standardised",
        "contrastive-auto": "contrastive, automatic α, its defaults",
    },
)


def peer_labels(peers: Iterable[Peer]) -> set[str]:
    """Return what the sides of these peers are called in a table."""
    return {label for peer in peers for label in peer.sides.values()}


class NotInstallableError(Exception):
    """The peer's environment could not be made; the message says why in one line."""


def python_of(peer: Peer) -> Path:
    """Return the interpreter of the peer's environment, making the environment if it is not there yet."""
    folder = ENVIRONMENTS / peer.name
    python = folder / "bin/python"
    stamp = folder / "installed"
    if stamp.exists() and stamp.read_text() == peer.requirement:
        return python
    print(f"installing {peer.requirement} into {folder.relative_to(ENVIRONMENTS.parent)}", file=sys.stderr)
    _run([sys.executable, "-m", "venv", "--clear", str(folder)])
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "1"]
    _run([*pip, peer.requirement, *peer.missing])
    stamp.write_text(peer.requirement)
    return python


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_TIMEOUT, check=False)
    except subprocess.TimeoutExpired:
        raise NotInstallableError(f"took more than {INSTALL_TIMEOUT} s") from None
    if done.returncode:
        raise NotInstallableError(_reason(done.stderr + done.stdout))


def _reason(output: str) -> str:
    """Return the last line that pip marks as an error, or the last line at all."""
    lines = [line.strip() for line in output.splitlines() if line.strip()] or ["no output"]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR")]
    return (errors or lines)[-1]
