"""The eigenproblem ``A u = λ B u``: the record types, the choice of solver, one file per solver."""

from standout.pencil._record import Form, Pencil, Solution
from standout.pencil._solve import choose_solver, solve, solve_path

__all__ = ["Form", "Pencil", "Solution", "choose_solver", "solve", "solve_path"]

# Shared with other packages, but not part of the public interface.
from standout.pencil._record import UnconvergedWarning as UnconvergedWarning
