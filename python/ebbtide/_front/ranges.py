"""Which integers cannot be negative: then `//` and `%` of Python are those of the machine.

Input: sums of atoms (lengths, loop variables) with known bounds. Output: a lower bound, or `None`.
"""

from __future__ import annotations

from typing import Hashable, Optional


class Linear:
    """A constant plus integer multiples of atoms."""

    __slots__ = ("constant", "terms")

    def __init__(self, constant: int = 0, terms: Optional[dict[Hashable, int]] = None) -> None:
        self.constant = constant
        self.terms = terms or {}

    @staticmethod
    def atom(name: Hashable) -> "Linear":
        return Linear(0, {name: 1})

    def plus(self, other: "Linear", sign: int = 1) -> "Linear":
        terms = dict(self.terms)
        for name, factor in other.terms.items():
            terms[name] = terms.get(name, 0) + sign * factor
        return Linear(self.constant + sign * other.constant, {n: f for n, f in terms.items() if f})

    def times(self, factor: int) -> "Linear":
        return Linear(self.constant * factor, {n: f * factor for n, f in self.terms.items() if factor})


class Bounds:
    """What is known of atoms here: a lower bound, and an upper bound that is a sum itself."""

    def __init__(self) -> None:
        self.low: dict[Hashable, int] = {}
        self.high: dict[Hashable, Linear] = {}

    def copy(self) -> "Bounds":
        other = Bounds()
        other.low, other.high = dict(self.low), dict(self.high)
        return other

    def enter_loop(self, variable: Hashable, start: Optional[Linear], stop: Optional[Linear]) -> None:
        """In the body of a loop over `start..stop`: the variable is within, and the range is not empty."""
        first = None if start is None else self.lower(start)
        if first is not None:
            self.low[variable] = first
        if stop is not None:
            self.high[variable] = stop.plus(Linear(1), -1)
            if first is not None and len(stop.terms) == 1:
                ((name, factor),) = stop.terms.items()
                if factor == 1:
                    least = first + 1 - stop.constant
                    self.low[name] = max(self.low.get(name, least), least)

    def lower(self, sum: Optional[Linear]) -> Optional[int]:
        """A number that the sum is never below."""
        if sum is None:
            return None
        # Each round replaces a variable by its upper bound, which has outer variables alone.
        for _ in range(8):
            negative = next((n for n, f in sum.terms.items() if f < 0 and n in self.high), None)
            if negative is None:
                break
            factor = sum.terms[negative]
            rest = Linear(sum.constant, {n: f for n, f in sum.terms.items() if n != negative})
            sum = rest.plus(self.high[negative].times(factor))
        bound = sum.constant
        for name, factor in sum.terms.items():
            if factor < 0 or name not in self.low:
                return None
            bound += factor * self.low[name]
        return bound

    def not_negative(self, sum: Optional[Linear]) -> bool:
        low = self.lower(sum)
        return low is not None and low >= 0
