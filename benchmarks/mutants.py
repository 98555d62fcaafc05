"""Do the tests notice a changed line? Mutants of the core, selection and estimators, chosen at random.

Each mutant changes one operator, comparison, condition or number in a copy of the project. Then all tests run that run
the changed statement, until one fails: the fast and near ones first, where a test is near if it runs few other lines. A
mutant survives if they pass. Survivors are printed with file and line: each one is a missing test, or a change without
effect.

Not changed is what cannot change a result: docstrings, annotations, messages, and `strict=` of `zip`, which only guards
against a mistake of ours. The number in ``x or 0``, seeds and decorators are left out, too, and assignments to names in
capitals at module level, which are tuning constants (thresholds, grids, limits of iterations). How many these are is
printed. Not run are the tests in `LEFT_OUT` (a browser, the pages, the command line) and those with the mark "long".
Which lines a test runs is found once, and kept in the file `--lines`; delete it after a change.

    python benchmarks/mutants.py --mutants 60 --processes 2
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import types
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = "src/standout/"
PLACES = ("problem.py", "moments", "pencil", "selection", "estimators")
LEFT_OUT = "browser docs cli notebook house test_io"
# Tests of so many seconds together run first, with their files alone.
FIRST = 3.0
# A mutant may take so many times the CPU seconds of its tests, and more. A loop without end is noticed.
TIMES, MORE = 3, 60
# The status of pytest if it was called in the wrong way, or found no tests.
USAGE, NO_TESTS = 4, 5
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
    """A changed file; tests run that run one of the lines, or all tests if there are none."""

    path: Path
    name: str
    text: str
    lines: frozenset[tuple[str, int]]


class Sites(ast.NodeVisitor):
    """The changes that can be made in a file: the node and what replaces it."""

    def __init__(self) -> None:
        self.found: list[tuple[ast.expr, ast.expr, range]] = []
        self.n_tuning, self.lines, self.within = 0, range(0), False

    def _add(self, node: ast.expr, new: ast.expr) -> None:
        self.found.append((node, new, self.lines))

    def visit(self, node: ast.AST) -> None:
        """Note the lines of a statement, without those of the statements in it."""
        if not isinstance(node, ast.stmt):
            super().visit(node)
            return
        before = self.lines
        if self.within:
            body = getattr(node, "body", None)
            self.lines = range(node.lineno, body[0].lineno if body else (node.end_lineno or node.lineno) + 1)
        super().visit(node)
        self.lines = before

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
        """Leave out messages, seeds, and the guard of `zip`."""
        name = ast.unparse(node.func).rpartition(".")[2]
        if name == "zip":
            node.keywords = [keyword for keyword in node.keywords if keyword.arg != "strict"]
        if name not in MESSAGES | SEEDS:
            self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> None:
        """Leave out seeds and advice."""
        if node.arg not in {*SEEDS, "advice"}:
            self.generic_visit(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Words are not mutated."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Look at the defaults and the body of a function. Defaults matter to tests that run its body."""
        before = self.lines, self.within
        self.lines, self.within = range(node.lineno, (node.end_lineno or node.lineno) + 1), True
        names = [*node.args.posonlyargs, *node.args.args][::-1]
        positional = zip(names, node.args.defaults[::-1], strict=False)
        for name, default in (*positional, *zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)):
            if default is not None and name.arg not in SEEDS:
                self.visit(default)
        for part in node.body:
            self.visit(part)
        self.lines, self.within = before

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Look at the body of a class."""
        before = self.lines, self.within
        self.lines, self.within = range(0), False
        for part in node.body:
            self.visit(part)
        self.lines, self.within = before

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
        if type(node.op) in OPERATORS and not is_text(node):
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


def is_text(node: ast.expr) -> bool:
    """Tell whether an expression joins words."""
    if isinstance(node, ast.BinOp):
        return is_text(node.left) or is_text(node.right)
    return isinstance(node, ast.JoinedStr) or isinstance(getattr(node, "value", None), str)


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
    for path, text, node, new, where in chosen.sample(every, wanted):
        lines = text.splitlines(keepends=True)
        # Columns of ast are bytes of UTF-8.
        first, last = (lines[number - 1].encode() for number in (node.lineno, node.end_lineno or node.lineno))
        head = "".join(lines[: node.lineno - 1]) + first[: node.col_offset].decode()
        tail = last[node.end_col_offset :].decode() + "".join(lines[node.end_lineno or node.lineno :])
        old, changed = ast.unparse(node), ast.unparse(ast.fix_missing_locations(new))
        place = path.relative_to(ROOT)
        file = str(path.relative_to(ROOT / PACKAGE))
        run = frozenset((file, line) for line in where)
        made.append(Mutant(place, f"{place}:{node.lineno}: {old} -> {changed}", f"{head}({changed}){tail}", run))
    return made


@cache
def n_lines(code: types.CodeType) -> int:
    """Return the number of lines of a function that can be run."""
    return len({code.co_firstlineno, *(line for *_, line in code.co_lines() if line is not None)})


class Recorder:
    """Pytest's plugin that notes the seconds of each test, and the lines of ours that it runs."""

    def __init__(self) -> None:
        self.calls: dict[str, Any] = {}
        self.seen: dict[types.CodeType, set[int]] = defaultdict(set)
        self.shared: dict[str, list[dict[types.CodeType, set[int]]]] = defaultdict(list)

    def _called(self, frame: types.FrameType, *_: Any) -> Any:
        """Follow the lines of a function of ours until all were seen."""
        code = frame.f_code
        if PACKAGE not in code.co_filename:
            return None
        seen = self.seen[code]
        seen.add(code.co_firstlineno)
        return self._line if len(seen) < n_lines(code) else None

    def _line(self, frame: types.FrameType, event: str, _: Any) -> Any:
        self.seen[frame.f_code].add(frame.f_lineno)
        return self._line

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> Any:
        """Note the lines of a fixture that several tests share, once for all of them."""
        outer, self.seen = self.seen, defaultdict(set)
        try:
            return (yield)
        finally:
            for code, lines in self.seen.items():
                outer[code] |= lines
            if fixturedef.scope != "function":
                self.shared[fixturedef.argname].append(self.seen)
            self.seen = outer

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        """Run a test."""
        self.seen = defaultdict(set)
        start = time.process_time()
        threading.settrace(self._called)
        sys.settrace(self._called)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]
            shared = [one for name in getattr(item, "fixturenames", ()) for one in self.shared[name]]
            lines: dict[str, set[int]] = defaultdict(set)
            for seen in (self.seen, *shared):
                for code, some in seen.items():
                    lines[code.co_filename.rpartition(PACKAGE)[2]] |= some
            run = {name: sorted(some) for name, some in sorted(lines.items())}
            self.calls[item.nodeid] = [time.process_time() - start, run]


class Chosen:
    """Pytest's plugin that runs some tests, in their order."""

    def __init__(self, names: list[str]) -> None:
        self.order = {name: place for place, name in enumerate(names)}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out the other tests."""
        items[:] = sorted((one for one in items if one.nodeid in self.order), key=lambda one: self.order[one.nodeid])


def inside(task: str, file: str, arguments: list[str]) -> int:
    """Record or run tests in this process."""
    if task == "record":
        plugin: Recorder | Chosen = Recorder()
    else:
        seconds, names = json.loads(Path(file).read_text())
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        plugin = Chosen(names)
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
        done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, check=False)
        return done.returncode, file.read_text()


def recorded(processes: int) -> dict[str, Any]:
    """Return the seconds of each test, and the lines that it runs."""
    files = [f"tests/{path.name}" for path in sorted((ROOT / "tests").glob("test_*.py"))]
    files = ["src", *(name for name in files if not any(word in name for word in LEFT_OUT.split()))]
    calls: dict[str, Any] = {}
    with ThreadPoolExecutor(processes) as pool:
        for status, found in pool.map(lambda file: in_copy({}, "record", None, [file]), files):
            if status:
                raise SystemExit("The tests fail without a change.")
            calls |= json.loads(found)
    return calls


def stages(mutant: Mutant, calls: dict[str, Any]) -> list[list[str]]:
    """Return the tests that run the changed statement, in two parts: the fast and near ones, and the others."""
    work, chosen = {}, []
    for name, (seconds, lines) in calls.items():
        if not mutant.lines or any(line in lines.get(file, ()) for file, line in mutant.lines):
            chosen.append(name)
            work[name] = seconds * sum(map(len, lines.values()))
    chosen.sort(key=work.__getitem__)
    n_first = int(np.searchsorted(np.cumsum([calls[name][0] for name in chosen]), FIRST, side="right"))
    return [part for part in (chosen[:n_first], chosen[n_first:]) if part]


def survives(mutant: Mutant, calls: dict[str, Any]) -> bool:
    """Tell whether all tests that run the changed statement pass."""
    for names in stages(mutant, calls):
        files = sorted({name.partition("::")[0] for name in names})
        limit = round(MORE + TIMES * sum(calls[name][0] for name in names))
        status, _ = in_copy({mutant.path: mutant.text}, "run", [limit, names], ["-x", *files])
        if status in {USAGE, NO_TESTS}:
            raise SystemExit("The recorded tests are not there: delete the file of lines.")
        if status:
            return False
    return True


def main() -> None:
    """Print the survivors and the share that was noticed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutants", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", type=int, nargs="*", help="numbers of mutants to run")
    parser.add_argument("--lines", type=Path, default=ROOT / "build" / "lines.json")
    given = parser.parse_args()
    if not given.lines.exists():
        given.lines.parent.mkdir(exist_ok=True)
        given.lines.write_text(json.dumps(recorded(given.processes)))
    calls = json.loads(given.lines.read_text())
    made = mutants(random.Random(given.seed), given.mutants)
    numbers = list(range(len(made))) if given.only is None else given.only
    alive = []
    with ThreadPoolExecutor(given.processes) as pool:
        found = pool.map(lambda number: survives(made[number], calls), numbers)
        for number, survived in zip(numbers, found, strict=True):
            alive += [number] if survived else []
            print(f"{number:3} {'passes' if survived else 'killed'} {made[number].name}", flush=True)
    print(f"{len(numbers) - len(alive)} of {len(numbers)} were noticed. Survivors: {alive}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        sys.exit(inside(*sys.argv[2:4], sys.argv[4:]))
    main()
