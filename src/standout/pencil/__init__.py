"""The eigenproblem ``A u = λ B u``: the records, the choice of a solver, and the solvers."""

from standout.pencil._path import Posed as Posed
from standout.pencil._path import fold_vectors as fold_vectors
from standout.pencil._path import path_vectors as path_vectors
from standout.pencil._record import Form, Pencil, Solution, UnconvergedWarning
from standout.pencil._record import finish as finish
from standout.pencil._solve import choose_solver, solve
from standout.pencil._solve import count_directions as count_directions

__all__ = ["Form", "Pencil", "Solution", "UnconvergedWarning", "choose_solver", "solve"]
