"""Silero's voice-activity model on onnxruntime: 512 samples at 16 kHz in, probability of speech out; about 0.15 ms a frame."""

from functools import cache

import numpy as np
import onnxruntime as ort

from device_sdk.errors import AudioFormatError
from venus_edge.models import model_dir

FRAME = 512
CONTEXT = 64
"""The model looks at the last 64 samples of the frame before."""


@cache
def _session() -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # the model is too small to share
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return ort.InferenceSession(str(model_dir("silero") / "silero_vad.onnx"), options, providers=["CPUExecutionProvider"])


class SileroVad:
    """One stream's voice activity: call it with consecutive frames. The weights are shared by all streams of a process."""

    def __init__(self):
        self._session = _session()
        self._rate = np.array(16_000, np.int64)
        self._input = np.zeros((1, CONTEXT + FRAME), np.float32)
        self.reset()

    def reset(self) -> None:
        """Forget the past, as before the first frame."""
        self._state = np.zeros((2, 1, 128), np.float32)
        self._context = np.zeros(CONTEXT, np.float32)

    def __call__(self, frame: np.ndarray) -> float:
        """Probability of speech in `frame`: 512 samples, float32 in -1..1 or int16. Raises AudioFormatError."""
        if frame.shape != (FRAME,):
            raise AudioFormatError(f"frame: must be {FRAME} samples, not {frame.shape}")
        row = self._input[0]
        row[:CONTEXT] = self._context
        row[CONTEXT:] = frame * np.float32(1 / 32768) if frame.dtype == np.int16 else frame
        out, self._state = self._session.run(None, {"input": self._input, "state": self._state, "sr": self._rate})
        self._context[:] = row[-CONTEXT:]
        return float(out[0, 0])

    def skip(self, frame: np.ndarray) -> None:
        """Pass over a frame that is known to be silent, without running the model."""
        self._context[:] = frame[-CONTEXT:] * np.float32(1 / 32768) if frame.dtype == np.int16 else frame[-CONTEXT:]
