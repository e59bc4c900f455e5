"""From the source of a Python function to a program.

Input: a function's syntax tree and what its parameters are. Output: calls of the builder, in the order in which Rust's
macro makes them, so that one program written in both languages is the same program. Invariant: what is built has the
meaning that the function has in Python with NumPy arrays, or there is an error at the line.
"""

from .translate import build

__all__ = ["build"]
