"""Does the turn sound finished? smart-turn v3.2 (ONNX, 8.7 MB) on the last 8 s of the user's audio."""
import threading

import numpy as np
import onnxruntime

from cloud_core.speech.log_mel import RATE, log_mel
from venus_edge.models import model_dir

SECONDS = 8


class SmartTurn:
    """Call with float32 mono 16 kHz; answers the probability that the speaker has finished. About 50 ms on one thread."""

    def __init__(self, threads: int = 1):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = threads, 1, 3
        self._net = onnxruntime.InferenceSession(str(model_dir("smart-turn") / "smart-turn-v3.2-cpu.onnx"), options,
                                                 providers=["CPUExecutionProvider"])
        self._input = self._net.get_inputs()[0].name
        self._lock = threading.Lock()
        self(np.zeros(RATE, np.float32))

    def __call__(self, samples: np.ndarray) -> float:
        sound = samples[-SECONDS * RATE:]
        sound = np.pad(sound, (SECONDS * RATE - len(sound), 0))  # the model wants the end of the speech at the end
        sound = (sound - sound.mean()) / np.sqrt(sound.var() + 1e-7)
        features = log_mel(sound.astype(np.float32))
        with self._lock:
            return float(self._net.run(None, {self._input: features[None]})[0].reshape(-1)[0])
