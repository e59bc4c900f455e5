"""Exceptions, with the text that users of Rust get and the line of Python that it is about."""

from __future__ import annotations

import linecache
from typing import Optional, Sequence

Spot = tuple[str, int, int, str]


class Error(Exception):
    """Any error of Ebbtide.

    ``spots`` has the places in the source that it is about: file, line, column (both from 1) and message.
    """

    spots: Sequence[Spot] = ()


class BuildError(Error):
    """The program is not valid, or has no derivative."""


class LaunchError(Error):
    """The arguments do not fit the program."""


class RunError(Error):
    """The data led the program where it may not go: an index out of bounds, an integer division by zero."""


class Cancelled(Error):
    """The run was asked to stop."""


class DeviceError(Error):
    """A device could not be had, or failed."""


class StorageError(Error):
    """A file or a run directory could not be read or written, or belongs to something else."""


def excerpt(spot: Spot) -> str:
    """The line of the source, with a mark under the column."""
    file, line, column, _ = spot
    text = linecache.getline(file, line).rstrip("\n")
    if not text.strip():
        return ""
    stripped = text.lstrip()
    mark = max(column - 1 - (len(text) - len(stripped)), 0)
    number = str(line)
    return f"\n    {number} | {stripped}\n    {' ' * len(number)} | {' ' * mark}^"


def _make(kind: str, text: str, spots: Sequence[Spot]) -> Error:
    """The exception of class ``kind``; its traceback ends at the user's line, where there is one."""
    spots = list(spots)
    shown = {(spot[0], spot[1]): spot for spot in reversed(spots)}
    error: Error = globals()[kind](text + "".join(excerpt(spot) for spot in reversed(shown.values())))
    error.spots = spots
    return error if not spots else _at(error, spots[0])


def at(kind: str, message: str, spot: Spot) -> Error:
    """An error of the front end at a place of the source."""
    file, line, column, _ = spot
    text = f"build error: {file}:{line}:{column}: {message}"
    return _make(kind, text, [(file, line, column, message)])


def _at(error: Error, spot: Spot) -> Error:
    """Gives the exception a traceback that ends at a line of the user's."""
    file, line, _, _ = spot
    scope: dict[str, object] = {"error": error}
    frame: Optional[object] = None
    try:
        code = compile("\n" * (line - 1) + "raise error", file, "exec")
        exec(code, scope)  # noqa: S102 - two words of our own, at the user's file and line
    except Error as raised:
        traceback = raised.__traceback__
        frame = traceback.tb_next if traceback else None
    except (ValueError, MemoryError):
        return error
    return error.with_traceback(frame)  # type: ignore[arg-type]
