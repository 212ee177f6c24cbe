"""The README's main job.  Runs in environments that contain relvm, NumPy and nothing else.

usage: python main_job.py MODEL.onnx.  Prints the signature, and the results as JSON.
"""

import json
import sys

import numpy as np

import relvm

model = relvm.load_model(sys.argv[1])
rows = np.arange(2 * 3 * 8 * 8, dtype=np.float32).reshape(2, 3, 8, 8) % 7 - 3
print(model)
print(json.dumps(model(rows).numpy().tolist()))
