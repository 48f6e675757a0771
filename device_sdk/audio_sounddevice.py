"""An audio backend over PortAudio (the `sounddevice` package, extra `device-audio`): one duplex stream, one device clock.

PortAudio calls back on its own thread; the Device lives on the event loop's thread. Between them lie two short queues: the
callback leaves the microphone block and takes the oldest rendered one. A block is rendered only when the queue to the
loudspeaker has room, so `render` is called once per block that the DAC consumes and the playout clock stays exact.
"""

import asyncio
from collections import deque

import numpy as np

from device_sdk.device import Device
from device_sdk.errors import BackendMissing
from device_sdk.resample import Resampler
from device_sdk.wire.topics import MIC_RATE
from venus_edge.metrics import METRICS

STREAM_RATE = 48_000
BLOCK = STREAM_RATE // 100
AHEAD_BLOCKS = 2
"""Rendered blocks that wait for the callback: 20 ms against a late event loop."""
MAX_WAITING = 50
"""Microphone blocks (0.5 s) that may wait for the event loop; more are dropped and counted."""
SETTLE_BLOCKS = 50
DELAY_STEP_S = 0.005


class DuplexBridge:
    """Carries 10 ms blocks of int16 at 48 kHz between an audio callback and a Device. `callback` is the only method of the other thread."""

    def __init__(self, device: Device, loop: asyncio.AbstractEventLoop):
        self._device, self._loop = device, loop
        self._mic: deque[tuple[np.ndarray, float]] = deque()
        self._speaker: deque[np.ndarray] = deque()
        self._down = Resampler(STREAM_RATE, MIC_RATE)
        self._up = Resampler(device.settings.out_rate, STREAM_RATE)
        self._blocks = 0
        self._delay_s = device.settings.dac_delay_s

    def callback(self, indata: np.ndarray, dac_latency_s: float) -> np.ndarray:
        """One block from the microphone in, one for the loudspeaker out. `dac_latency_s`: until its first sample is heard."""
        if len(self._mic) >= MAX_WAITING:
            self._mic.popleft()
            METRICS.add("venus_device_mic_blocks_dropped")
        self._mic.append((indata.copy(), dac_latency_s))
        self._loop.call_soon_threadsafe(self.pump)
        if self._speaker:
            return self._speaker.popleft()
        METRICS.add("venus_device_speaker_starved_blocks")
        return np.zeros(BLOCK, np.int16)

    def pump(self) -> None:
        """On the event loop: work off what the callback left."""
        while self._mic:
            block, dac_latency_s = self._mic.popleft()
            self._learn_delay(dac_latency_s + AHEAD_BLOCKS * 0.01)
            while len(self._speaker) < AHEAD_BLOCKS:
                self._speaker.append(self._up(self._device.render()))
            self._device.capture(self._down(block))

    def _learn_delay(self, delay_s: float) -> None:
        """Follow the measured delay slowly; a figure that jitters would make `played` jitter."""
        self._blocks += 1
        if self._blocks % SETTLE_BLOCKS == 0 and abs(delay_s - self._delay_s) > DELAY_STEP_S:
            self._delay_s = min(max(delay_s, 0.0), 0.4)
            self._device.set_dac_delay(self._delay_s)


class SoundDeviceAudio:
    """Opens microphone and loudspeaker and runs a Device on them: `start()`, later `stop()`. Raises BackendMissing."""

    def __init__(self, device: Device, *, input_device=None, output_device=None):
        try:
            import sounddevice
        except (ImportError, OSError) as err:  # OSError: the package is there, PortAudio itself is not
            raise BackendMissing(f"sounddevice: {err}; install it with pip install 'venus-edge[device-audio]'") from None
        self._bridge = DuplexBridge(device, asyncio.get_running_loop())
        self._stream = sounddevice.Stream(
            samplerate=STREAM_RATE, blocksize=BLOCK, channels=1, dtype="int16", latency="low",
            device=(input_device, output_device), callback=self._callback)

    def _callback(self, indata, outdata, frames, time, status) -> None:
        if status:
            METRICS.add("venus_device_audio_status")
        outdata[:, 0] = self._bridge.callback(indata[:, 0], max(0.0, time.outputBufferDacTime - time.currentTime))

    def start(self) -> None:
        self._stream.start()

    def stop(self) -> None:
        self._stream.stop()
        self._stream.close()
