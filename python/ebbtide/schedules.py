"""Schedules: when to keep a state and when to run steps again.

Each is an iterator of actions. ``str(schedule)`` between two actions writes the rest down; ``parse`` reads it back, in
another process if need be.
"""

from __future__ import annotations

from typing import Any, Iterable, Iterator

from ._native import Action, Schedule

store_all = Schedule.store_all
revolve = Schedule.revolve
periodic = Schedule.periodic
mixed = Schedule.mixed
online = Schedule.online
multistage = Schedule.multistage
best = Schedule.best
parse = Schedule.parse


def to_checkpoint_schedules(actions: Iterable[Action]) -> Iterator[Any]:
    """The same schedule as actions of the package ``checkpoint_schedules``, for drivers that know those.

    There a `Forward` both runs steps and says what it keeps, so a `store` and the `advance` or `record` after it are one
    action. Only steps recorded one at a time can be said there: use ``block=1``.
    """
    from checkpoint_schedules import Copy, EndForward, EndReverse, Forward, Move, Reverse, StorageType

    def storage(slot: Any) -> Any:
        return StorageType.DISK if slot[0] == "disk" else StorageType.RAM

    waiting = [*actions]
    last_use = {(action.slot, action.start): k for k, action in enumerate(waiting) if action.kind == "load"}
    store: Any = None
    for k, action in enumerate(waiting):
        if action.kind == "store":
            store = action
        elif action.kind == "advance":
            yield Forward(action.start, action.stop, store is not None, False, storage(store.slot) if store else StorageType.NONE)
            store = None
        elif action.kind == "record":
            if store is not None:
                # There is no action that keeps both a state and a tape.
                yield Forward(action.start, action.start, True, False, storage(store.slot))
                store = None
            yield Forward(action.start, action.stop, False, True, StorageType.WORK)
        elif action.kind == "load":
            last = last_use[(action.slot, action.start)] == k
            yield (Move if last else Copy)(action.start, storage(action.slot), StorageType.WORK)
        elif action.kind == "turn":
            yield EndForward()
        elif action.kind == "reverse":
            yield Reverse(action.stop, action.start, True)
    yield EndReverse()


__all__ = ["Action", "Schedule", "best", "mixed", "multistage", "online", "parse", "periodic", "revolve", "store_all", "to_checkpoint_schedules"]
