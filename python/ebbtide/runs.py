"""Runs of programs that yield."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterator, Optional

from ._native import Yielded

if TYPE_CHECKING:
    from .program import Program


class Run:
    """A run that stops wherever the program yields: iterate over it, repair, and it continues.

    >>> with step.run(pairs, overflow, ...) as run:      # doctest: +SKIP
    ...     for at in run:
    ...         overflow[()] = 0

    ``run.to(Stage.DETECT)`` continues at another label. Leaving the loop leaves the program where it stands; ``run.at`` can
    be saved, or resumed later with ``program.resume(at, ...)``. ``run.args`` may be replaced between yields (longer arrays).
    """

    def __init__(self, program: "Program", args: tuple[Any, ...]) -> None:
        self.program = program
        self.args = args
        #: Where the program stands; ``None`` before the first yield and at the end.
        self.at: Optional[Yielded] = None
        self.done = False

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, *_: Any) -> None:
        pass

    def to(self, label: Any) -> None:
        """Continues at another label: loops around both keep their iteration."""
        if self.at is not None:
            self.at = self.at.to(label)

    def __iter__(self) -> Iterator[Yielded]:
        if self.at is None and not self.done:
            self.at = self.program(*self.args)
        while self.at is not None:
            yield self.at
            self.at = self.program.resume(self.at, *self.args)
        self.done = True
