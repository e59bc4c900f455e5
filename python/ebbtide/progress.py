"""Callbacks that show how far a gradient is."""

from __future__ import annotations

from typing import Any, Callable, Optional


def tqdm(**options: Any) -> Callable[[int, Optional[int]], None]:
    """A callback that moves a bar of the package ``tqdm``: ``g.progress(ebbtide.progress.tqdm())(...)``."""
    from tqdm.auto import tqdm as make

    bar = make(**{"unit": " passes", **options})

    def tell(done: int, total: Optional[int]) -> None:
        if total is not None and bar.total != total:
            bar.total = total
        bar.update(done - bar.n)
        if total is not None and done >= total:
            bar.close()

    return tell
