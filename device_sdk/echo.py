"""Echo cancellation: WebRTC's processing module on 10 ms blocks, with what was really rendered as its reference."""

import numpy as np
from livekit import rtc

from device_sdk.errors import AudioFormatError
from device_sdk.wire.topics import MIC_RATE

BLOCK = MIC_RATE // 100
MAX_DELAY_S = 0.5


class EchoCanceller:
    """`process(mic, reference)` block by block; both int16 mono, 160 samples at 16 kHz.

    `delay_s`: from handing a block to the DAC until its echo is handed to `process`, that is the DAC's delay plus one block.
    Every length is checked here, because a wrong one aborts the whole process inside the native module.
    """

    def __init__(self, delay_s: float, *, noise_suppression: bool = False):
        self._apm = rtc.AudioProcessingModule(
            echo_cancellation=True, noise_suppression=noise_suppression, high_pass_filter=True, auto_gain_control=False)
        self._mic, self._reference = bytearray(2 * BLOCK), bytearray(2 * BLOCK)
        self._mic_frame = rtc.AudioFrame(self._mic, MIC_RATE, 1, BLOCK)
        self._reference_frame = rtc.AudioFrame(self._reference, MIC_RATE, 1, BLOCK)
        self.set_delay(delay_s)

    def set_delay(self, delay_s: float) -> None:
        """Raises AudioFormatError outside 0..0.5 s."""
        if not 0 <= delay_s <= MAX_DELAY_S:
            raise AudioFormatError(f"delay_s: must be 0..{MAX_DELAY_S}, not {delay_s}")
        self._apm.set_stream_delay_ms(round(delay_s * 1000))

    def process(self, mic: np.ndarray, reference: np.ndarray) -> np.ndarray:
        """The microphone block without the echo. Raises AudioFormatError on a wrong type or length."""
        for name, block in (("mic", mic), ("reference", reference)):
            if block.dtype != np.int16 or block.shape != (BLOCK,):
                raise AudioFormatError(f"{name}: must be int16[{BLOCK}], not {block.dtype}{list(block.shape)}")
        self._reference[:] = reference.tobytes()
        self._apm.process_reverse_stream(self._reference_frame)
        self._mic[:] = mic.tobytes()
        self._apm.process_stream(self._mic_frame)
        return np.frombuffer(bytes(self._mic), np.int16)
