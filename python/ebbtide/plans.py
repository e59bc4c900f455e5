"""Memory plans: in words, and as a picture in a notebook."""

from __future__ import annotations

import html
from typing import Any, Optional

from . import _native


def in_words(size: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} B" if unit == "B" else f"{size:.2f} {unit}"
        size /= 1024
    return f"{size:.2f} TiB"


class Plan:
    """What a gradient run will do: ``print(plan)``; in a notebook it is a picture."""

    def __init__(self, plan: _native.Plan) -> None:
        self._plan = plan

    def explain(self) -> str:
        """The plan in words."""
        return self._plan.explain()

    @property
    def peak_bytes(self) -> int:
        """The most bytes that the run will hold beyond the caller's arrays and the results."""
        return self._plan.peak_bytes

    @property
    def fixed_bytes(self) -> int:
        """Bytes that every plan needs: working copies, shadows, temporaries."""
        return self._plan.fixed_bytes

    @property
    def store_all_bytes(self) -> int:
        """What keeping every tape would take."""
        return self._plan.store_all_bytes

    @property
    def budget(self) -> Optional[int]:
        """The budget, where there is one."""
        return self._plan.budget

    @property
    def recompute_factor(self) -> float:
        """Forward work per work of the program itself: 1 means that nothing is recomputed."""
        return self._plan.recompute_factor

    @property
    def loops(self) -> list[dict[str, Any]]:
        """The reversed loops, in program order."""
        names = ("depth", "steps", "state_bytes", "tape_bytes", "schedule", "states", "peak_bytes", "executions")
        return [dict(zip(names, loop)) for loop in self._plan._loops]

    def __str__(self) -> str:
        return self.explain()

    def __repr__(self) -> str:
        return f"<plan: {in_words(self.peak_bytes)}, recompute factor {self.recompute_factor:.3f}>"

    def svg(self) -> str:
        """A picture: what the run holds, beside its budget and what keeping every tape would take."""
        bars: list[tuple[str, list[tuple[float, str, str]]]] = []
        parts = [(float(self.fixed_bytes), "#8a8f98", "working copies, shadows, temporaries")]
        colours = ["#2a6f97", "#c8553d", "#588b8b", "#f28f3b"]
        for k, loop in enumerate(l for l in self.loops if l["depth"] == 0):
            text = f"loop {k}: {loop['schedule']}, {loop['states']} states"
            parts.append((float(loop["peak_bytes"]), colours[k % len(colours)], text))
        bars.append((f"this run: {in_words(self.peak_bytes)}", parts))
        if self.budget is not None:
            bars.append((f"budget: {in_words(self.budget)}", [(float(self.budget), "#d9dce1", "budget")]))
        bars.append((f"every tape: {in_words(self.store_all_bytes)}", [(float(self.store_all_bytes), "#d9dce1", "every tape")]))
        most = max(sum(size for size, _, _ in bar) for _, bar in bars) or 1.0
        width, height = 640, 46 * len(bars) + 24
        lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" font-family="sans-serif" font-size="12">']
        for row, (label, bar) in enumerate(bars):
            y, x = 18 + 46 * row, 0.0
            lines.append(f'<text x="0" y="{y - 4}">{html.escape(label)}</text>')
            for size, colour, text in bar:
                w = max(size / most * width, 0.0)
                lines.append(f'<rect x="{x:.1f}" y="{y}" width="{w:.1f}" height="18" fill="{colour}"><title>{html.escape(text)}: {in_words(size)}</title></rect>')
                x += w
        factor = f"recompute factor {self.recompute_factor:.3f}"
        lines.append(f'<text x="0" y="{height - 6}">{factor}</text></svg>')
        return "\n".join(lines)

    def _repr_svg_(self) -> str:
        return self.svg()

    def _repr_html_(self) -> str:
        return f"<div>{self.svg()}<pre>{html.escape(self.explain())}</pre></div>"
