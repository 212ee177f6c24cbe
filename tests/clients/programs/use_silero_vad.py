"""Tell speech from silence with plain sessions, of several forms of one model, and with an IOBinding."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnxruntime as ort
from client import main, voice

SOUND = voice(1.5)
FOLDER = Path(find_spec("silero_vad").submodule_search_locations[0]) / "data"


def start():
    options = ort.SessionOptions()
    options.inter_op_num_threads = options.intra_op_num_threads = 1
    names = "silero_vad.onnx", "silero_vad_half.onnx", "silero_vad_16k_op15.onnx"
    return [ort.InferenceSession(str(FOLDER / name), options, providers=["CPUExecutionProvider"]) for name in names]


def call(made):
    return [[run(session) for session in made] for run in (speech, bound)]


def chunks():
    padded = np.concatenate([np.zeros(64, np.float32), SOUND])
    return [padded[None, at : at + 576] for at in range(0, len(SOUND) - 511, 512)]


def speech(session):
    state, found = np.zeros((2, 1, 128), np.float32), []
    for chunk in chunks():
        feed = {"input": chunk, "state": state, "sr": np.array(16000, np.int64)}
        probability, state = session.run(None, {each.name: feed[each.name] for each in session.get_inputs()})
        found.append(float(probability[0, 0]))
    return found


def bound(session):
    binding, found = session.io_binding(), []
    state = ort.OrtValue.ortvalue_from_numpy(np.zeros((2, 1, 128), np.float32))
    if any(each.name == "sr" for each in session.get_inputs()):
        binding.bind_cpu_input("sr", np.array(16000, np.int64))
    for chunk in chunks():
        binding.bind_cpu_input("input", chunk)
        binding.bind_ortvalue_input("state", state)
        for output in session.get_outputs():
            binding.bind_output(output.name)
        session.run_with_iobinding(binding)
        probability, state = binding.get_outputs()
        found.append(float(probability.numpy()[0, 0]))
    return found


main(start, call)
