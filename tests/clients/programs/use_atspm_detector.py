"""Infer the phase and the function of traffic detectors from a log that the package contains."""

from __future__ import annotations

from importlib.resources import files

from atspm_detector import predict
from client import main


def _number(value):
    try:
        return float(value)
    except (TypeError, ValueError):
        return str(value)


def start():
    return str(files("atspm_detector") / "data" / "sample_events.parquet")


def call(made):
    table = predict(made)
    return {name: [str(each) if isinstance(each, str) else _number(each) for each in table[name]] for name in table}


main(start, call)
