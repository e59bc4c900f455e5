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

    waiting = [*actions]
    stored: dict[Any, int] = {}
    last_use: dict[Any, int] = {}
    for k, action in enumerate(waiting):
        if action.kind == "load":
            last_use[(action.slot, action.start)] = k
    pending_store = None
    at_end = True
    for k, action in enumerate(waiting):
        kind = action.kind
        if kind == "store":
            pending_store = action
            stored[action.slot] = action.start
        elif kind in ("advance", "record"):
            to_disk = pending_store is not None and pending_store.slot[0] == "disk"
            storage = StorageType.WORK if kind == "record" else StorageType.NONE
            if pending_store is not None:
                storage = StorageType.DISK if to_disk else StorageType.RAM
            if kind == "record" and pending_store is not None:
                # It has no action that keeps both a state and a tape.
                yield Forward(action.start, action.start, True, False, storage)
                storage = StorageType.WORK
                pending_store = None
            yield Forward(action.start, action.stop, pending_store is not None, kind == "record", storage)
            pending_store = None
        elif kind == "load":
            source = StorageType.DISK if action.slot[0] == "disk" else StorageType.RAM
            last = last_use[(action.slot, action.start)] == k
            yield (Move if last else Copy)(action.start, source, StorageType.WORK)
        elif kind == "turn":
            yield EndForward()
        elif kind == "reverse":
            yield Reverse(action.stop, action.start, True)
            at_end = action.start == 0
    if at_end:
        yield EndReverse()


__all__ = ["Action", "Schedule", "best", "mixed", "multistage", "online", "parse", "periodic", "revolve", "store_all", "to_checkpoint_schedules"]
