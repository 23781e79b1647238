"""Plots of results as SVG, in a grey that is legible on light and dark pages."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor, log10

WIDTH = 748
OURS = "#0072b2"
COLOURS = (OURS, "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9")
_GREY = "#8b949e"
_BAR, _TOP, _LABELS = 16, 56, 128
_HEIGHT, _LEFT = 190, 56


@dataclass(frozen=True)
class Panel:
    """One of the diagrams of lines: its series of points, on linear or logarithmic axes."""

    title: str
    x_label: str
    series: Mapping[str, Iterable[tuple[float, float]]]
    logarithmic: bool = True


def bars(title: str, panels: Mapping[str, list[tuple[str, float | None]]], ours: set[str]) -> str:
    """Return horizontal bars: a panel for each case, a bar for each name; None has none."""
    names = list(dict.fromkeys(name for rows in panels.values() for name, _ in rows))
    width = (WIDTH - _LABELS) / max(len(panels), 1)
    height = _TOP + _BAR * len(names) + 12

    def body() -> Iterator[str]:
        for row, name in enumerate(names):
            weight = ' font-weight="600"' if name in ours else ""
            middle = _TOP + _BAR * row + _BAR - 4
            yield f'<text x="{_LABELS - 6}" y="{middle}" text-anchor="end"{weight}>{name}</text>'
        for number, (case, rows) in enumerate(panels.items()):
            left = _LABELS + number * width
            longest = max((value for _, value in rows if value is not None), default=1) or 1
            yield f'<text x="{left:.0f}" y="44">{case}</text>'
            for name, value in rows:
                top = _TOP + _BAR * names.index(name)
                length = 0 if value is None else max((width - 62) * value / longest, 1)
                colour = OURS if name in ours else _GREY
                size = f'width="{length:.1f}" height="{_BAR - 4}"'
                yield f'<rect x="{left:.0f}" y="{top}" {size} fill="{colour}"/>'
                label = "failed" if value is None else seconds(value)
                yield f'<text x="{left + length + 4:.0f}" y="{top + _BAR - 6}">{label}</text>'

    return _picture(title, height, body())


def lines(title: str, panels: list[Panel]) -> str:
    """Return lines with points: up to two panels in a row, with a legend in each."""
    rows = [panels[at : at + 2] for at in range(0, len(panels), 2)]
    legend = max((len(panel.series) for panel in panels), default=0)
    tall = _HEIGHT + 62 + 15 * legend

    def body() -> Iterator[str]:
        for number, row in enumerate(rows):
            for column, panel in enumerate(row):
                at = f"{_LEFT + column * WIDTH // 2} {56 + number * tall}"
                yield f'<g transform="translate({at})">'
                yield from _panel(panel, WIDTH // 2 - _LEFT - 24)
                yield "</g>"

    return _picture(title, 44 + tall * len(rows), body())


def _panel(panel: Panel, width: int) -> Iterator[str]:
    """Draw the axes, lines and legend of a panel, whose upper left corner is the origin."""
    series = {name: sorted(points) for name, points in panel.series.items()}
    points = [point for line in series.values() for point in line]
    if not points:
        return
    across = _Axis([x for x, _ in points], width, logarithmic=panel.logarithmic)
    down = _Axis([y for _, y in points], _HEIGHT, logarithmic=panel.logarithmic)
    yield f'<text x="0" y="-10">{panel.title}</text>'
    yield f'<path d="M0 0V{_HEIGHT}H{width}" fill="none" stroke="currentColor"/>'
    for value in down.ticks:
        y = _HEIGHT - down.position(value)
        yield f'<text x="-6" y="{y + 4:.0f}" text-anchor="end">{_short(value)}</text>'
        yield f'<path d="M0 {y:.1f}H{width}" stroke="currentColor" stroke-opacity=".2"/>'
    for value in across.ticks:
        x = across.position(value)
        yield f'<text x="{x:.0f}" y="{_HEIGHT + 16}" text-anchor="middle">{_short(value)}</text>'
    yield f'<text x="{width}" y="{_HEIGHT + 32}" text-anchor="end">{panel.x_label}</text>'
    for number, (name, line) in enumerate(series.items()):
        colour = COLOURS[number % len(COLOURS)]
        places = [(across.position(x), _HEIGHT - down.position(y)) for x, y in line]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
        yield f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
        for x, y in places:
            yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>'
        y = _HEIGHT + 40 + 15 * number
        yield f'<rect x="0" y="{y - 9}" width="10" height="10" fill="{colour}"/>'
        yield f'<text x="16" y="{y}">{name}</text>'


class _Axis:
    """Where values lie along an axis, linear from zero or logarithmic by whole decades."""

    def __init__(self, values: list[float], length: float, *, logarithmic: bool) -> None:
        self.length, self.logarithmic = length, logarithmic
        if logarithmic:
            positive = [value for value in values if value > 0] or [1.0]
            self.start, end = floor(log10(min(positive))), ceil(log10(max(positive)))
            self.end = max(end, self.start + 1)
            self.ticks = [10.0**n for n in range(self.start, self.end + 1)]
        else:
            step = _step(max(values) or 1)
            self.start, self.end = 0, step * ceil((max(values) or 1) / step)
            self.ticks = [step * n for n in range(round(self.end / step) + 1)]

    def position(self, value: float) -> float:
        """Return how far from the start of the axis a value is."""
        at = log10(value) if self.logarithmic and value > 0 else value
        at = max(at, self.start)
        return self.length * (at - self.start) / (self.end - self.start)


def _step(most: float) -> float:
    """Return a round distance between ticks, of which there are at most six."""
    power = 10.0 ** floor(log10(most))
    return next(power * step for step in (0.2, 0.5, 1, 2) if most / (power * step) <= 6)


def exponents(points: Iterable[tuple[float, float]]) -> list[float]:
    """Return the slopes between neighbouring points on logarithmic axes: 1 where y grows as x."""
    return [
        log10(y1 / y0) / log10(x1 / x0)
        for (x0, y0), (x1, y1) in pairwise(sorted(points))
        if x0 > 0 and y0 > 0 and y1 > 0
    ]


def seconds(value: float) -> str:
    """Return a time with its unit, in three digits."""
    factor, unit = (1, "s") if value >= 1 else (1e3, "ms") if value >= 1e-3 else (1e6, "µs")
    return f"{value * factor:.3g} {unit}"


def _short(value: float) -> str:
    """Return the label of a tick."""
    if value == 0 or 1e-3 < value < 1e4:
        return f"{value:.4g}"
    power = floor(log10(value) + 1e-9)
    digits = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
    factor = value / 10.0**power
    head = "" if round(factor, 6) == 1 else f"{factor:.3g}·"
    return f"{head}10{str(power).translate(digits)}"


def _picture(title: str, height: float, body: Iterable[str]) -> str:
    """Return the drawing with its title."""
    style = 'fill="currentColor" color="#7d8590" font-family="system-ui, sans-serif" font-size="11"'
    size = f'width="{WIDTH}" height="{height:.0f}" viewBox="0 0 {WIDTH} {height:.0f}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style} role="img"'
    text = f'<text x="0" y="18" font-size="13" font-weight="600">{title}</text>'
    return "\n".join([f'{head} aria-label="{title}">', text, *body, "</svg>", ""])
