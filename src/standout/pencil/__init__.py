"""The eigenproblem ``A u = λ B u``: the record types, the choice of solver, one file per solver."""

from standout.pencil._choice import choose_device_solver, choose_solver
from standout.pencil._path import solve_path
from standout.pencil._record import Form, Pencil, Solution
from standout.pencil._solve import solve

__all__ = ["Form", "Pencil", "Solution", "choose_device_solver", "choose_solver", "solve", "solve_path"]
