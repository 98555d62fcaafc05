"""What a choice of weights is made for: a way from weights to a pencil."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from standout._arrays import Float
from standout.pencil import Pencil

Pose: TypeAlias = Callable[[Float], Pencil]
"""From weights of the backgrounds, non-negative with sum 1, to a pencil."""
