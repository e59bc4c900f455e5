"""Schedules, and reversals of steps that are written in Python."""

import collections
import dataclasses
import os
import signal
import subprocess
import sys
import textwrap

import ebbtide as eb
import numpy as np
import pytest
from ebbtide import schedules


def step(k, x):
    return np.sin(x) + 0.01 * k


def adjoint(k, x, bar):
    return np.cos(x) * bar


X = np.linspace(0.1, 1.0, 5)


def by_hand(steps):
    states = [X]
    for k in range(steps):
        states.append(step(k, states[-1]))
    bar = np.ones(5)
    for k in reversed(range(steps)):
        bar = adjoint(k, states[k], bar)
    return states[-1], bar


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"slots": 3},
        {"memory": 400},
        {"schedule": "periodic"},
        {"schedule": "mixed"},
        {"schedule": "online"},
        {"schedule": "multistage"},
        {"schedule": "blocks"},
        {"slots": 3, "in_place": True},
    ],
    ids=str,
)
def test_every_schedule_gives_the_same_bits(options):
    made = {
        "periodic": lambda: schedules.periodic(37, 5),
        "mixed": lambda: schedules.mixed(37, 4),
        "online": lambda: schedules.online(4),
        "multistage": lambda: schedules.multistage(37, 2, 3),
        "blocks": lambda: schedules.revolve(37, 3, block=4, primal_first=True),
    }
    options = {key: made[value]() if key == "schedule" else value for key, value in options.items()}
    last, bar = by_hand(37)
    found = eb.reverse(step, adjoint, X, 37, **options)
    assert (found.state == last).all() and (found.adjoint == bar).all()
    assert found.recorded == 37


def test_a_reversal_does_what_its_schedule_says():
    found = eb.reverse(step, adjoint, X, 1000, slots=10)
    assert found.advanced + found.recorded == 4636 == schedules.revolve(1000, 10).executions()


def test_steps_in_place_are_saved_by_copies():
    def in_place(k, x):
        np.sin(x, out=x)
        return x

    first = X.copy()
    found = eb.reverse(in_place, lambda k, x, bar: np.cos(x) * bar, first, 20, slots=3, in_place=True)
    states = [X]
    for _ in range(20):
        states.append(np.sin(states[-1]))
    bar = np.ones(5)
    for x in reversed(states[:-1]):
        bar = np.cos(x) * bar
    assert (found.adjoint == bar).all() and (first == X).all()


@dataclasses.dataclass
class State:
    x: np.ndarray
    t: float


Pair = collections.namedtuple("Pair", "x more")


def tree_step(k, s):
    return Pair(State(np.sin(s.x.x), s.x.t + 0.1), {"y": s.more["y"] * s.x.t, "z": [s.more["z"][0]]})


def tree_adjoint(k, s, bar):
    return Pair(
        State(np.cos(s.x.x) * bar.x.x, bar.x.t + float((bar.more["y"] * s.more["y"]).sum())),
        {"y": bar.more["y"] * s.x.t, "z": [bar.more["z"][0]]},
    )


def tree():
    return Pair(State(X, 0.5), {"y": np.ones(3), "z": [np.float32(2.0)]})


def tree_turn(s):
    return Pair(State(np.ones(5), 0.0), {"y": np.ones(3), "z": [np.float32(1.0)]})


def test_states_are_trees_of_arrays():
    a = eb.reverse(tree_step, tree_adjoint, tree(), 20, turn=tree_turn)
    b = eb.reverse(tree_step, tree_adjoint, tree(), 20, turn=tree_turn, slots=2)
    assert (a.adjoint.x.x == b.adjoint.x.x).all() and a.adjoint.x.t == b.adjoint.x.t


def test_a_durable_reversal_continues_after_a_kill(tmp_path):
    script = textwrap.dedent(
        """
        import os, signal, sys
        sys.path.insert(0, sys.argv[1])
        import ebbtide as eb
        from test_reversal import tree, tree_adjoint, tree_step, tree_turn
        calls = 0

        def counted(k, s, bar):
            global calls
            calls += 1
            if calls == int(sys.argv[3]):
                os.kill(os.getpid(), signal.SIGKILL)
            return tree_adjoint(k, s, bar)

        found = eb.reverse(tree_step, counted, tree(), 30, turn=tree_turn, slots=4, durable=sys.argv[2], every=0.0, name="tree")
        print(found.adjoint.x.x.tobytes().hex(), found.adjoint.x.t.hex(), calls)
        """
    )
    here = os.path.dirname(__file__)

    def process(kill_at):
        command = [sys.executable, "-c", script, here, str(tmp_path / "run"), str(kill_at)]
        return subprocess.run(command, capture_output=True, text=True, timeout=300)

    assert process(20).returncode == -signal.SIGKILL
    again = process(-1)
    x, t, calls = again.stdout.split()
    expected = eb.reverse(tree_step, tree_adjoint, tree(), 30, turn=tree_turn)
    assert (x, t) == (expected.adjoint.x.x.tobytes().hex(), expected.adjoint.x.t.hex())
    assert int(calls) < 30, "what was durable is not done again"
    with pytest.raises(eb.StorageError):
        eb.reverse(step, adjoint, X, 30, slots=4, durable=tmp_path / "run", name="another")


def test_exceptions_of_steps_come_through(tmp_path):
    def fails(k, x):
        raise ArithmeticError("step failed")

    with pytest.raises(ArithmeticError, match="step failed"):
        eb.reverse(fails, adjoint, X, 3)
    with pytest.raises(ArithmeticError, match="step failed"):
        eb.reverse(fails, adjoint, X, 3, durable=tmp_path / "run", slots=1)


def test_schedules_are_iterators_that_can_be_written_down():
    schedule = schedules.revolve(10, 3)
    kinds = [action.kind for action in schedules.revolve(10, 3)]
    assert kinds[0] == "store" and kinds.count("turn") == 1 and kinds.count("record") == 10
    head = [next(schedule) for _ in range(7)]
    rest = list(schedules.parse(str(schedule)))
    assert head + rest == list(schedules.revolve(10, 3))
    action = head[0]
    assert (action.kind, action.start, action.stop, action.slot) == ("store", 0, None, ("memory", 0))
    assert repr(action) == "<store 0 in memory[0]>"
    with pytest.raises(ValueError, match="slot"):
        schedules.revolve(10, 0)
    with pytest.raises(ValueError, match="for 10 steps"):
        eb.reverse(step, adjoint, X, 11, schedule=schedules.revolve(10, 3))


def test_schedules_become_actions_of_checkpoint_schedules():
    cs = pytest.importorskip("checkpoint_schedules")
    actions = list(schedules.to_checkpoint_schedules(schedules.revolve(12, 3)))
    reversed_steps = [(a.n1, a.n0) for a in actions if isinstance(a, cs.Reverse)]
    assert reversed_steps == [(k + 1, k) for k in reversed(range(12))]
    assert sum(isinstance(a, cs.EndForward) for a in actions) == 1 and isinstance(actions[-1], cs.EndReverse)
    forwards = sum(a.n1 - a.n0 for a in actions if isinstance(a, cs.Forward))
    assert forwards == schedules.revolve(12, 3).executions()
