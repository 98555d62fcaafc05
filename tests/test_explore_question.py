"""The questions of an exploration: sides, steps, the way back, sessions, and the code that repeats them."""

import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from standout.explorer import Engine, Explored, Groups, History, RowSet, applied, blank, inside, open_session, python

NAMES = ["ill", "old", "well"]
N = 90
RNG = np.random.default_rng(3)
X = RNG.normal(size=(N, 4)) * np.array([5.0, 1.0, 1.0, 1.0])
X[:30, 3] *= 4
GROUPS = Groups(tuple(NAMES), np.repeat([0, 1, 2], 30))
COLUMNS = ["a", "b", "c", "d"]
HEAD = "X, groups = given"


def engine():
    return Engine(Explored(COLUMNS, GROUPS, X))


def rows(*numbers):
    return RowSet.numbered(numbers, N)


def after(*steps):
    return History(GROUPS, steps).state.question


TARGET = {"do": "choose", "side": "target", "groups": ["ill"]}
BACKGROUND = {"do": "choose", "side": "background", "groups": ["old", "well"]}


def by_hand(side, how, numbers):
    return {"do": "rows", "side": side, "how": how, "rows": numbers}


def test_sets_of_rows_are_sets():
    first, second = rows(0, 1, 2, 89), rows(2, 3)
    assert (first | second).mask.nonzero()[0].tolist() == [0, 1, 2, 3, 89]
    assert (first & second) == rows(2)
    assert (first - second) == rows(0, 1, 89)
    assert ~~first == first
    assert (~first).count == N - 4
    assert RowSet.read(first.written(), N) == first


def test_the_first_question_is_pca_of_all_rows():
    question = blank(GROUPS).question
    assert [part.count for part in question.rows(GROUPS)] == [N]
    with pytest.raises(ValueError, match="there are 0"):
        applied(blank(GROUPS), {"do": "swap"}, GROUPS)


def test_the_first_target_is_compared_with_all_other_rows():
    for step in (TARGET, by_hand("target", "set", rows(*range(30)))):
        assert [part.count for part in after(step).rows(GROUPS)] == [30, 60]
    assert after(TARGET, BACKGROUND, {"do": "choose", "side": "target", "groups": NAMES}).backgrounds == ()


def test_a_row_is_on_one_side_only():
    question = after(TARGET, BACKGROUND, by_hand("target", "add", rows(30, 31)))
    target, old, well = question.rows(GROUPS)
    assert target.count == 32
    assert old.count == 28
    assert well.count == 30
    question = after(TARGET, BACKGROUND, {"do": "choose", "side": "target", "groups": ["ill", "old"]})
    assert [side.name for side in question.backgrounds] == ["well"]


def test_set_operations_of_a_side():
    base = [TARGET, BACKGROUND]
    assert after(*base, by_hand("target", "remove", rows(0, 1))).rows(GROUPS)[0].count == 28
    assert after(*base, by_hand("target", "keep", rows(0, 1, 40))).rows(GROUPS)[0] == rows(0, 1)
    assert [part.count for part in after(*base, by_hand("background", "keep", rows(0, 40))).rows(GROUPS)] == [30, 1]
    chosen = after(*base, by_hand("background", "set", rows(0, 40)))
    assert [part.count for part in chosen.rows(GROUPS)] == [29, 2]
    assert len(after(*base, by_hand("background", "add", rows(0, 1))).backgrounds) == 3
    twice = after(*base, by_hand("background", "add", rows(0)), by_hand("background", "add", rows(1)))
    assert [part.count for part in twice.rows(GROUPS)] == [28, 30, 30, 2]


def test_the_rest_follows_the_target():
    question = after({"do": "rest"}, by_hand("target", "set", rows(1, 2, 3)), {"do": "leave", "rows": [3, 50]})
    assert [part.count for part in question.rows(GROUPS)] == [2, N - 4]
    swapped = after({"do": "rest"}, by_hand("target", "set", rows(1, 2, 3)), {"do": "swap"})
    assert [part.count for part in swapped.rows(GROUPS)] == [N - 3, 3]


def test_whole_groups_stay_groups():
    question = after({"do": "choose", "side": "target", "groups": NAMES}, BACKGROUND)
    assert question.target.groups == ("ill",)


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ({"do": "choose", "side": "target", "groups": ["dead"]}, "no group 'dead'"),
        ({"do": "choose", "side": "target", "groups": []}, "no rows"),
        ({"do": "choose", "side": "background", "groups": ["ill"]}, "no row of the target would be left"),
        ({"do": "choose", "side": "background", "groups": ["dead"]}, "no group 'dead'"),
        ({"do": "leave", "rows": [N]}, "no step"),
        ({"do": "method", "method": "magic"}, "no step"),
        ({"do": "set", "name": "colour", "value": 1}, "no step"),
        ({"do": "dance"}, "no step"),
        ({"do": "rows", "side": "target", "how": "set", "rows": "AAAA"}, "no step"),
        ({"do": "view", "picture": "nice"}, "no step"),
    ],
)
def test_wrong_steps_are_refused_in_words(step, words):
    with pytest.raises(ValueError, match=words):
        applied(applied(blank(GROUPS), TARGET, GROUPS), step, GROUPS)


def test_every_step_can_be_undone_and_redone():
    history = History(GROUPS, [TARGET])
    steps = BACKGROUND, by_hand("target", "remove", rows(4)), {"do": "method", "method": "cpca"}
    questions = [history.state, *(history.take(step) for step in steps)]
    for state in questions[-2::-1]:
        assert history.undo()
        assert history.state == state
    assert not history.undo(), "the first steps are those of the command"
    for state in questions[1:]:
        assert history.redo()
        assert history.state == state
    assert not history.redo()
    history.undo()
    history.take({"do": "rest"})
    assert not history.redo(), "another way was taken"


def test_a_slider_that_is_dragged_is_one_step():
    history = History(GROUPS, [TARGET, BACKGROUND])
    for value in (0.1, 0.2, 0.3):
        history.take({"do": "set", "name": "shrinkage", "value": value})
    history.take({"do": "set", "name": "alpha", "value": 1.0})
    assert len(history.steps) == 4
    history.undo()
    assert history.state.question.settings == {"shrinkage": 0.3}


def test_weights_of_other_backgrounds_are_not_used():
    history = History(GROUPS, [TARGET, BACKGROUND, {"do": "set", "name": "background_weights", "value": [1.0, 3.0]}])
    assert history.state.question.settings == {"background_weights": (1.0, 3.0)}
    history.take({"do": "rest"})
    assert history.state.question.settings == {}


# --- sessions ---------------------------------------------------------------------------------------------------------


def test_a_session_opens_as_it_was_saved(tmp_path):
    history = History(GROUPS, [TARGET, BACKGROUND])
    history.take(by_hand("target", "remove", rows(4, 5)))
    history.take({"do": "set", "name": "shrinkage", "value": 0.5})
    history.take({"do": "view", "colour": "group"})
    history.undo()
    history.save(tmp_path / "session.json", COLUMNS)
    opened = open_session(tmp_path / "session.json", GROUPS, COLUMNS)
    assert opened.state == history.state
    assert opened.redo()
    assert opened.state.view.colour == "group"
    assert opened.undo()
    assert opened.undo()
    assert opened.undo()
    assert not opened.undo()


def test_a_session_of_other_data_is_refused(tmp_path):
    path = tmp_path / "session.json"
    History(GROUPS).save(path, COLUMNS)
    with pytest.raises(OSError, match="is of other data"):
        open_session(path, GROUPS, ["a", "b", "c", "e"])
    with pytest.raises(OSError, match="is of other data"):
        open_session(path, Groups(tuple(NAMES), np.repeat([0, 1, 2], [31, 29, 30])), COLUMNS)


def test_damaged_sessions_are_refused_and_other_files_are_not_replaced(tmp_path):
    path = tmp_path / "session.json"
    with pytest.raises(FileNotFoundError, match="no file"):
        open_session(path, GROUPS, COLUMNS)
    path.write_text("notes of mine")
    with pytest.raises(OSError, match="no session"):
        open_session(path, GROUPS, COLUMNS)
    with pytest.raises(OSError, match="not replaced"):
        History(GROUPS).save(path, COLUMNS)
    assert path.read_text() == "notes of mine"
    path.unlink()
    history = History(GROUPS, [TARGET, by_hand("target", "remove", rows(4))])
    history.save(path, COLUMNS)
    record = json.loads(path.read_text())
    for name, value in (("steps", 7), ("place", 9), ("steps", [{"do": "rows", "side": "target"}]), ("n_first", None)):
        path.write_text(json.dumps({**record, name: value}))
        with pytest.raises((OSError, ValueError), match="damaged|no step"):
            open_session(path, GROUPS, COLUMNS)


# --- the code ---------------------------------------------------------------------------------------------------------


def run(code):
    words = np.array(NAMES)[GROUPS.codes]
    known = {"given": (X, words)}
    exec(code, known)
    return known["model"]


def lassoed(explorer, history, side, how, polygon):
    """A step as the page takes it: the lasso is drawn in the picture that is shown."""
    state = history.state
    found = explorer.lassoed(state.pictured, (state.view.x, state.view.y), polygon)
    return {"do": "rows", "side": side, "how": how, "rows": found, "polygon": polygon}


@st.composite
def journeys(draw):
    """Steps as a user takes them, those that make no sense included."""
    kinds = st.sampled_from(
        ["target", "background", "lasso", "rest", "swap", "leave", "restore", "method", "set", "view"]
    )
    corner = st.floats(-8, 8).map(lambda value: round(value, 3))
    steps = []
    for kind in draw(st.lists(kinds, min_size=1, max_size=7)):
        names = st.lists(st.sampled_from(NAMES), min_size=1, max_size=2, unique=True)
        if kind in ("target", "background"):
            steps.append({"do": "choose", "side": kind, "groups": draw(names)})
        elif kind == "lasso":
            polygon = draw(st.lists(st.tuples(corner, corner), min_size=3, max_size=6))
            side, how = (
                draw(st.sampled_from(["target", "background"])),
                draw(st.sampled_from(["set", "add", "remove", "keep"])),
            )
            steps.append(("lasso", side, how, polygon))
        elif kind == "leave":
            steps.append({"do": "leave", "rows": draw(st.lists(st.integers(0, N - 1), min_size=1, max_size=3))})
        elif kind == "method":
            steps.append({"do": "method", "method": draw(st.sampled_from(["dpca", "cpca", "pca", "kdpca"]))})
        elif kind == "set":
            steps.append({"do": "set", "name": "shrinkage", "value": draw(st.sampled_from([0.1, 0.9]))})
        elif kind == "view":
            steps.append({"do": "view", "picture": draw(st.sampled_from(["answer", "pca", "held"]))})
        else:
            steps.append({"do": kind})
    return steps


@pytest.mark.filterwarnings("ignore::standout._messages.CautionWarning")
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(journeys())
def test_the_code_of_any_journey_gives_its_answer(steps):
    explorer, history = engine(), History(GROUPS, [TARGET, {"do": "set", "name": "alpha", "value": 1.0}])
    for step in steps:
        try:
            if isinstance(step, tuple):
                step = lassoed(explorer, history, *step[1:])
            trial = applied(history.state, step, GROUPS)
            explorer.answer(trial.question)
        except ValueError:
            # The page says why, and takes no such step.
            continue
        history.take(step)
    answer = explorer.answer(history.state.question)
    model = run(python(history, HEAD))
    assert type(model) is type(answer.model)
    values = answer.model.eigenvalues_
    # Rounding grows with the ratio, and directions that the background does not have are of rounding alone.
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-10 * max(1.0, min(values[0], 1e4)))
    for name in ("mean_", "background_variance_") if np.isfinite(values).all() else ():
        np.testing.assert_allclose(getattr(model, name, 0), getattr(answer.model, name, 0), rtol=1e-6, atol=1e-9)


def test_code_without_effect_is_left_out():
    history = History(GROUPS, [{"do": "choose", "side": "target", "groups": ["old"]}, TARGET, {"do": "rest"}])
    history.take({"do": "leave", "rows": [3]})
    history.take({"do": "restore"})
    code = python(history, HEAD)
    assert "'old'" not in code
    assert "left_out" not in code
    assert code.count("\n") == 6


def test_a_lasso_takes_what_is_inside():
    points = RNG.uniform(-1, 1, size=(500, 2))
    circle = [(np.cos(angle), np.sin(angle)) for angle in np.linspace(0, 2 * np.pi, 400, endpoint=False)]
    lengths = np.hypot(*points.T)
    clear = np.abs(lengths - 1) > 1e-3
    assert np.array_equal(inside(points, circle)[clear], (lengths < 1)[clear])
    star = [(0, 1), (0.6, -0.8), (-0.95, 0.3), (0.95, 0.3), (-0.6, -0.8)]
    assert not inside(np.zeros((1, 2)), star)[0], "twice around is outside, as the page draws it"
    with pytest.raises(ValueError, match="3 corners"):
        inside(points, circle[:2])
