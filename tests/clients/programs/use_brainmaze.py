"""Find seizures and sleep spindles in an EEG."""

from __future__ import annotations

import numpy as np
from brainmaze_eeg_models.seizure import predict_channel_seizure_probability
from brainmaze_eeg_models.spindles import SpindleDetector
from client import main

MODELS = ("modelA", "modelB")
T = np.arange(250 * 60) / 250
NOISE = np.cumsum(np.random.default_rng(3).standard_normal(len(T)))
SPINDLES = 30 * np.sin(2 * np.pi * 13 * T) * np.exp(-(((T % 7 - 3) / 0.4) ** 2))
EEG = 2 * (NOISE - np.convolve(NOISE, np.ones(250) / 250, "same")) + SPINDLES


def start():
    return SpindleDetector(model="eeg")


def call(made):
    found = made.detect(EEG, 250)
    options = {"window_s": 30, "step_s": 5}
    seizures = [predict_channel_seizure_probability(EEG, 250, model=name, **options)[1] for name in MODELS]
    return [found.channel_intervals(0), [np.nan_to_num(each, nan=-1) for each in seizures]]


main(start, call)
