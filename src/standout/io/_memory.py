"""Whether files fit into memory: what their rows take, and how much there is."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from standout.io._scan import Scan

# All rows are in memory once. A fit, and what is made of its scores, takes up to twice as much again.
FACTOR = 3.0
# Where the system does not tell.
UNKNOWN = 2 * 2**30
# A limit as large as this stands for none.
UNLIMITED = 2**60


@dataclass(frozen=True)
class MemoryNeed:
    """Can these data be fitted in memory?

    Attributes
    ----------
    needed : int
        Bytes that a fit in memory is expected to take: `FACTOR` times those of all rows.
    available : int
        Bytes that there are.

    Examples
    --------
    >>> from standout.io import MemoryNeed
    >>> need = MemoryNeed(needed=12 * 10**9, available=8 * 10**9)
    >>> need.fits, str(need)
    (False, '12.0 GB needed, 8.0 GB available')
    """

    needed: int
    available: int

    @property
    def fits(self) -> bool:
        """Whether there is enough."""
        return self.needed <= self.available

    def __str__(self) -> str:
        return f"{self.needed / 1e9:.1f} GB needed, {self.available / 1e9:.1f} GB available"


def fits_in_memory(scans: Scan | Sequence[Scan]) -> MemoryNeed:
    """Should these files be read at once, or in parts?

    By this rule ``standout fit`` decides which of the two it does. Rows take their number times the bytes of a row;
    of a text file, whose number of rows is not known, they are guessed from the size of the file. A fit takes up to
    three times the memory of its rows. What there is, is the smallest of: the memory that the system has available, the
    limit of the control group (a container), and the limit on the address space (``ulimit -v``).

    Parameters
    ----------
    scans : Scan, or sequence of them
        All datasets of a fit.

    Returns
    -------
    MemoryNeed

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from standout.io import fits_in_memory, scan
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(pathlib.Path(folder, "rows.npy"), np.ones((1000, 10)))
    ...     need = fits_in_memory(scan(folder))
    >>> need.needed, need.fits
    (240000, True)
    """
    several = [scans] if isinstance(scans, Scan) else list(scans)
    return MemoryNeed(int(FACTOR * sum(scan.n_bytes for scan in several)), available_memory())


def available_memory() -> int:
    """Give the bytes that this process can still use."""
    found = [*_of_system(), *_of_control_groups(), *_of_address_space()]
    return max(min(found, default=UNKNOWN), 0)


def _of_system() -> Iterator[int]:
    """Give what the system has available; where it does not tell, half of all memory."""
    with suppress(OSError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                yield int(line.split()[1]) * 1024
                return
    with suppress(OSError, ValueError, AttributeError):
        yield os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


def _of_control_groups() -> Iterator[int]:
    """Give what each control group that this process is in leaves, in either version of the interface."""
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers == "":
                names = ("memory.max", "memory.current")
                root = Path("/sys/fs/cgroup")
            elif "memory" in controllers.split(","):
                names = ("memory.limit_in_bytes", "memory.usage_in_bytes")
                root = Path("/sys/fs/cgroup/memory")
            else:
                continue
            # Within a container its own group is seen as the root.
            group = root / path.lstrip("/")
            for place in [group, *(parent for parent in group.parents if parent.is_relative_to(root))]:
                with suppress(OSError, ValueError):
                    limit = int((place / names[0]).read_text())
                    if limit < UNLIMITED:
                        yield limit - int((place / names[1]).read_text()) + _reclaimable(place)


def _reclaimable(group: Path) -> int:
    """Give the bytes of a control group that only hold files which can be read again."""
    with suppress(OSError):
        for line in (group / "memory.stat").read_text().splitlines():
            name, _, value = line.partition(" ")
            if name in ("inactive_file", "total_inactive_file"):
                return int(value)
    return 0


def _of_address_space() -> Iterator[int]:
    """Give what the limit on the address space leaves."""
    with suppress(ImportError, OSError):
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit != resource.RLIM_INFINITY and limit < UNLIMITED:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            yield limit - pages * os.sysconf("SC_PAGE_SIZE")
