"""Spans of OpenTelemetry for reads and writes, if the program has loaded its API."""

import sys
from collections.abc import Mapping
from typing import Any


def start_span(name: str, labels: Mapping[str, str]) -> Any:
    """Start a span, to which attributes are added when it ends."""
    attributes = {f"zarrdask.{label}": text for label, text in labels.items()}
    tracer = sys.modules["opentelemetry.trace"].get_tracer("zarrdask")
    return tracer.start_span(name, attributes=attributes)


def end_span(span: Any, numbers: Mapping[str, float]) -> None:
    """End a span, with what was counted."""
    span.set_attributes({f"zarrdask.{name}": number for name, number in numbers.items()})
    span.end()
