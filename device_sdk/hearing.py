"""What the device hears: the microphone without the echo of its own loudspeaker, gated."""

from collections import deque

import numpy as np

from device_sdk.echo import EchoCanceller
from device_sdk.gates.audio import AudioGate, GateMode, GateOutput
from device_sdk.gates.silero import SileroVad
from device_sdk.gates.speech import SpeechDetector
from device_sdk.resample import Resampler
from device_sdk.settings import DeviceSettings
from device_sdk.wire import topics

MIC_BLOCK = topics.MIC_RATE // 100


class Hearing:
    """`rendered` with every loudspeaker block, then `feed` with the microphone block of the same 10 ms."""

    def __init__(self, settings: DeviceSettings, vad=None):
        self._settings = s = settings
        detector = SpeechDetector(s.vad_on, s.vad_off, hangover_s=s.hangover_s)
        self.gate = AudioGate(vad or SileroVad(), detector, mode=GateMode(s.gate), preroll_s=s.preroll_s, floor_dbfs=s.vad_floor_dbfs)
        self.gate.enabled = False
        self._to_mic_rate = Resampler(s.out_rate, topics.MIC_RATE)
        self._echo = EchoCanceller(self._echo_delay(s.dac_delay_s), noise_suppression=s.noise_suppression) if s.echo_cancellation else None
        self._references: deque[np.ndarray] = deque(maxlen=8)
        self._silence = np.zeros(MIC_BLOCK, np.int16)
        self._guard_until: int | None = None  # end of the echo guard; None before the very first speech

    def rendered(self, block: np.ndarray, pos: int, sounding: bool) -> None:
        """`block` goes to the DAC at `pos`; the first speech ever starts the guard while the canceller warms up."""
        if self._guard_until is None and sounding:
            self._guard_until = pos + round((self._settings.echo_guard_s + self._settings.dac_delay_s) * topics.MIC_RATE)
        if self._echo is not None:
            self._references.append(self._to_mic_rate(block))

    def feed(self, mic: np.ndarray, pos: int) -> list[GateOutput]:
        """The microphone block at `pos`: what the gate makes of it."""
        if self._echo is not None:
            mic = self._echo.process(mic, self._references.popleft() if self._references else self._silence)
        return self.gate.feed(mic, pos, self._guard_until is not None and pos < self._guard_until)

    def set_dac_delay(self, seconds: float) -> None:
        if self._echo is not None:
            self._echo.set_delay(self._echo_delay(seconds))

    def _echo_delay(self, dac_delay_s: float) -> float:
        # a block is handed over before the microphone block of the same 10 ms has ended
        return dac_delay_s + self._settings.adc_delay_s + 0.01 - min(self._to_mic_rate.delay_s, 0.01)
