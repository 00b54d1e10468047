"""Fits cost models to measured points: a·n, a·n·log2 n and a·n^p, with the error of each."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

# Beyond this exponent a cost grows faster than n log n does between a thousand and some millions (there n^1.1 about).
SUPERLINEAR = 1.25


@dataclasses.dataclass(frozen=True)
class Fit:
    model: str  # as formula
    factor: float
    exponent: float | None  # of a·n^p
    at: Callable[[float], float]
    residuals: tuple[float, ...]  # by point: measured over modelled, less 1

    @property
    def off(self) -> float:
        """The root mean square of the residuals' logarithms: 0.1 is about 10 %."""
        return math.sqrt(sum(math.log1p(residual) ** 2 for residual in self.residuals) / len(self.residuals))


def _fit(model: str, shape: Callable[[float], float], points: Sequence[tuple[float, float]], exponent: float | None = None) -> Fit:
    """Least squares of the logarithms: each point has the same weight, whatever its size."""
    factor = math.exp(sum(math.log(cost / shape(n)) for n, cost in points) / len(points))
    return Fit(model, factor, exponent, lambda n: factor * shape(n),
               tuple(cost / (factor * shape(n)) - 1 for n, cost in points))


def power(points: Sequence[tuple[float, float]]) -> Fit:
    xs, ys = [math.log(n) for n, _ in points], [math.log(cost) for _, cost in points]
    middle_x, middle_y = sum(xs) / len(xs), sum(ys) / len(ys)
    spread = sum((x - middle_x) ** 2 for x in xs)
    exponent = sum((x - middle_x) * (y - middle_y) for x, y in zip(xs, ys)) / spread
    return _fit("a·n^p", lambda n: n ** exponent, points, exponent)


def fits(points: Sequence[tuple[float, float]]) -> list[Fit]:
    """Returns the linear, n log n and power models of at least two points (n > 1, cost > 0) with different n."""
    return [_fit("a·n", lambda n: n, points), _fit("a·n·log2 n", lambda n: n * math.log2(n), points), power(points)]


def best(candidates: Sequence[Fit]) -> Fit:
    """Returns the one-factor model with the least error; the power law, which always fits best, only if it is much
    better."""
    simple = min((fit for fit in candidates if fit.exponent is None), key=lambda fit: fit.off)
    law = next(fit for fit in candidates if fit.exponent is not None)
    return law if law.off < simple.off / 2 and abs(law.exponent - 1) > 0.2 else simple


def superlinear(points: Sequence[tuple[float, float]]) -> bool:
    """Returns whether the model grows faster than n log n."""
    return power(points).exponent > SUPERLINEAR
