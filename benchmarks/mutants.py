"""Do the tests notice a changed line? Mutants of the core, selection and estimators, chosen at random.

Each mutant changes one operator, comparison, condition or number in a copy of the project. Then all tests run that
call the changed function, the fast ones first. A mutant survives if they pass. Survivors are printed with file and
line: each one is a missing test, or a change without effect.

Not changed are: messages; the number in ``x or 0``; seeds; assignments to names in capitals at module level, which are
tuning constants (thresholds, grids, limits of iterations). How many these are is printed. Not run are the tests in
`LEFT_OUT` (a browser, the pages, the command line) and those with the mark "long". Which tests call a function is found
once, and kept in the file `--calls`.

    python benchmarks/mutants.py --mutants 60 --processes 2
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import types
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
PLACES = ("problem.py", "moments", "pencil", "selection", "estimators")
LEFT_OUT = "browser docs cli notebook house test_io"
SECONDS = 1200
# Tests of less than so many seconds run first.
SHORT = 0.5
# Parameters whose value is a seed, and what makes messages.
SEEDS = {"seed", "random_state", "default_rng"}
MESSAGES = {"InvalidValueError", "InvalidTypeError", "FindingWarning", "warn", "_warn", "warn_user", "join", "format"}
COMPARED: dict[type[ast.cmpop], str] = {
    ast.Lt: ">=",
    ast.LtE: "<",
    ast.Gt: "<=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}
OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "/",
    ast.Div: "*",
    ast.FloorDiv: "*",
    ast.Pow: "*",
    ast.MatMult: "+",
}


class Mutant(NamedTuple):
    """A changed file; `function` is the file and name of the changed function, empty outside of functions."""

    path: Path
    name: str
    text: str
    function: str


class Sites(ast.NodeVisitor):
    """The changes that can be made in a file: the node and what replaces it."""

    def __init__(self) -> None:
        self.found: list[tuple[ast.expr, ast.expr, str]] = []
        self.n_tuning, self.function, self.scope = 0, "", ""

    def _add(self, node: ast.expr, new: ast.expr) -> None:
        self.found.append((node, new, self.function))

    def visit_Module(self, node: ast.Module) -> None:
        """Leave out tuning constants, and count the changes that they would have had."""
        for part in node.body:
            before = len(self.found)
            self.visit(part)
            names = [ast.unparse(target) for target in part.targets] if isinstance(part, ast.Assign) else []
            if names and names[0].isupper():
                self.n_tuning += len(self.found) - before
                del self.found[before:]

    def visit_Call(self, node: ast.Call) -> None:
        """Leave out messages and seeds."""
        name = ast.unparse(node.func).rpartition(".")[2]
        if name not in MESSAGES | SEEDS:
            self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> None:
        """Leave out seeds and advice."""
        if node.arg not in {*SEEDS, "advice"}:
            self.generic_visit(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Words are not mutated."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Look at the body of a function, and not at annotations and defaults."""
        before = self.function, self.scope
        self.function = self.scope + node.name
        self.scope = f"{self.function}.<locals>."
        for part in node.body:
            self.visit(part)
        self.function, self.scope = before

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Look at the body of a class."""
        before, self.scope = self.scope, f"{self.scope}{node.name}."
        for part in node.body:
            self.visit(part)
        self.scope = before

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Look at the value alone."""
        if node.value is not None:
            self.visit(node.value)

    def visit_Raise(self, node: ast.Raise) -> None:
        """Words of messages are not mutated."""

    def visit_Compare(self, node: ast.Compare) -> None:
        """Exchange a comparison for its opposite."""
        self.generic_visit(node)
        if len(node.ops) == 1 and type(node.ops[0]) in COMPARED:
            changed = f"({ast.unparse(node.left)}) {COMPARED[type(node.ops[0])]} ({ast.unparse(node.comparators[0])})"
            self._add(node, ast.parse(changed, mode="eval").body)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """Exchange an operator."""
        self.generic_visit(node)
        text = any(isinstance(side, ast.JoinedStr) or "'" in ast.unparse(side) for side in (node.left, node.right))
        if type(node.op) in OPERATORS and not text:
            changed = f"({ast.unparse(node.left)}) {OPERATORS[type(node.op)]} ({ast.unparse(node.right)})"
            self._add(node, ast.parse(changed, mode="eval").body)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        """Exchange `and` and `or`. The last number of `x or 0` is there for types."""
        for part in node.values:
            if not (isinstance(node.op, ast.Or) and part is node.values[-1] and isinstance(part, ast.Constant)):
                self.visit(part)
        self._add(node, ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        """Leave out `not` and minus."""
        self.generic_visit(node)
        self._add(node, node.operand)

    def visit_Constant(self, node: ast.Constant) -> None:
        """Change a number or a truth value."""
        if isinstance(node.value, bool):
            self._add(node, ast.Constant(not node.value))
        elif isinstance(node.value, int | float):
            self._add(node, ast.Constant(node.value + 1 if isinstance(node.value, int) else 3 * node.value or 1.0))


def mutants(chosen: random.Random, wanted: int) -> list[Mutant]:
    """Choose changes at random."""
    every, n_tuning = [], 0
    for place in PLACES:
        start = ROOT / "src" / "standout" / place
        for path in [start] if start.is_file() else sorted(start.glob("*.py")):
            sites = Sites()
            text = path.read_text()
            sites.visit(ast.parse(text))
            every += [(path, text, *site) for site in sites.found]
            n_tuning += sites.n_tuning
    print(f"{len(every)} changes are possible; {n_tuning} of tuning constants were left out.", flush=True)
    made = []
    for path, text, node, new, within in chosen.sample(every, wanted):
        lines = text.splitlines(keepends=True)
        # Columns of ast are bytes of UTF-8.
        first, last = (lines[number - 1].encode() for number in (node.lineno, node.end_lineno or node.lineno))
        head = "".join(lines[: node.lineno - 1]) + first[: node.col_offset].decode()
        tail = last[node.end_col_offset :].decode() + "".join(lines[node.end_lineno or node.lineno :])
        old, changed = ast.unparse(node), ast.unparse(ast.fix_missing_locations(new))
        place = path.relative_to(ROOT)
        function = f"{path.relative_to(ROOT / 'src' / 'standout')}:{within}" if within else ""
        made.append(Mutant(place, f"{place}:{node.lineno}: {old} -> {changed}", f"{head}({changed}){tail}", function))
    return made


class Recorder:
    """Pytest's plugin that notes the seconds of each test, and the functions of ours that it calls."""

    def __init__(self) -> None:
        self.calls: dict[str, Any] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        """Run a test."""
        seen: set[types.CodeType] = set()

        def called(frame: types.FrameType, event: str, _: Any) -> None:
            if event == "call":
                seen.add(frame.f_code)

        start = time.process_time()
        threading.setprofile(called)
        sys.setprofile(called)
        try:
            return (yield)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)  # type: ignore[arg-type]
            places = [(code.co_filename.rpartition("src/standout/"), code.co_qualname) for code in seen]
            ours = {f"{end}:{name}" for (_, known, end), name in places if known}
            self.calls[item.nodeid] = [time.process_time() - start, *sorted(ours)]


class Chosen:
    """Pytest's plugin that runs some tests, in their order."""

    def __init__(self, names: list[str]) -> None:
        self.order = {name: place for place, name in enumerate(names)}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out the other tests."""
        items[:] = sorted((one for one in items if one.nodeid in self.order), key=lambda one: self.order[one.nodeid])


def inside(task: str, file: str, arguments: list[str]) -> int:
    """Record or run tests in this process."""
    plugin = Recorder() if task == "record" else Chosen(json.loads(Path(file).read_text()))
    status = pytest.main(["-q", "-p", "no:cacheprovider", *arguments], plugins=[plugin])
    if isinstance(plugin, Recorder):
        Path(file).write_text(json.dumps(plugin.calls))
    return int(status)


def in_copy(changed: dict[Path, str], task: str, data: Any, arguments: list[str]) -> tuple[int, str]:
    """Record or run tests in a copy of the project; return the status and what was recorded."""
    with tempfile.TemporaryDirectory() as folder:
        copy, file = Path(folder) / "project", Path(folder) / "data.json"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".*", "build", "dist", "docs", "paper"))
        for path, text in changed.items():
            (copy / path).write_text(text)
        file.write_text(json.dumps(data))
        environment = {
            "STANDOUT_DATA": str(ROOT.parent / "shared" / "data"),
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join([str(copy / "src"), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]),
        }
        command = [sys.executable, str(copy / "benchmarks" / "mutants.py"), "--inside", task, str(file), *arguments]
        try:
            done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return 1, ""
        return done.returncode, file.read_text()


def recorded(processes: int) -> dict[str, Any]:
    """Return the seconds of each test, and the functions that it calls."""
    files = [f"tests/{path.name}" for path in sorted((ROOT / "tests").glob("test_*.py"))]
    files = ["src", *(name for name in files if not any(word in name for word in LEFT_OUT.split()))]
    calls: dict[str, Any] = {}
    with ThreadPoolExecutor(processes) as pool:
        for status, found in pool.map(lambda file: in_copy({}, "record", None, [file]), files):
            if status:
                raise SystemExit("The tests fail without a change.")
            calls |= json.loads(found)
    return calls


def survives(mutant: Mutant, calls: dict[str, Any], least: float, most: float) -> bool:
    """Tell whether all tests of some length that call the changed function pass."""
    some = {name: places for name, (seconds, *places) in calls.items() if least <= seconds < most}
    chosen = [name for name, places in some.items() if not mutant.function or mutant.function in places]
    chosen.sort(key=lambda name: calls[name][0])
    files = sorted({name.partition("::")[0] for name in chosen})
    return not chosen or in_copy({mutant.path: mutant.text}, "run", chosen, ["-x", *files])[0] == 0


def main() -> None:
    """Print the survivors and the share that was noticed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutants", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", type=int, nargs="*", help="numbers of mutants to run")
    parser.add_argument("--calls", type=Path, default=ROOT / "build" / "calls.json")
    given = parser.parse_args()
    if not given.calls.exists():
        given.calls.parent.mkdir(exist_ok=True)
        given.calls.write_text(json.dumps(recorded(given.processes)))
    calls = json.loads(given.calls.read_text())
    made = mutants(random.Random(given.seed), given.mutants)
    numbers = list(range(len(made))) if given.only is None else given.only
    alive = numbers
    with ThreadPoolExecutor(given.processes) as pool:
        # Long tests are for mutants that all short ones pass.
        for bounds in pairwise((0.0, SHORT, float("inf"))):
            found = pool.map(lambda number, bounds=bounds: survives(made[number], calls, *bounds), alive)
            tried, alive = alive, []
            for number, survived in zip(tried, found, strict=True):
                alive += [number] if survived else []
                print(f"{number:3} {'passes' if survived else 'killed'} {made[number].name}", flush=True)
    print(f"{len(numbers) - len(alive)} of {len(numbers)} were noticed. Survivors: {alive}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        sys.exit(inside(*sys.argv[2:4], sys.argv[4:]))
    main()
