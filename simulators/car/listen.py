"""Plays the cabin live on this machine's loudspeaker: what the microphone hears, people, road and assistant together."""
from collections import deque

import numpy as np

from venus_edge.errors import ConfigError
from venus_edge.metrics import METRICS

RATE, BLOCK = 16_000, 160
WAITING_BLOCKS = 30
"""0.3 s may wait for the sound card; more are dropped, oldest first, and counted."""


class LiveOut:
    """`play(block)` never blocks. Raises ConfigError when made where there is nothing to play on."""

    def __init__(self):
        try:
            import sounddevice
        except (ImportError, OSError) as err:  # OSError: the package is there, PortAudio itself is not
            raise ConfigError(f"VENUS_LISTEN: needs a loudspeaker and the sounddevice package ({err}); "
                              "without it both recordings can be heard in the report") from None
        self._waiting: deque[np.ndarray] = deque(maxlen=WAITING_BLOCKS)
        try:
            self._stream = sounddevice.OutputStream(samplerate=RATE, channels=1, dtype="int16", blocksize=BLOCK,
                                                    callback=self._callback)
            self._stream.start()
        except sounddevice.PortAudioError as err:
            raise ConfigError(f"VENUS_LISTEN: no loudspeaker to play on ({err})") from None

    def play(self, block: np.ndarray) -> None:
        if len(self._waiting) == WAITING_BLOCKS:
            METRICS.add("venus_cabin_listen_dropped_total")
        self._waiting.append(block)

    def _callback(self, out, frames, time, status) -> None:
        try:
            out[:, 0] = self._waiting.popleft()
        except IndexError:
            out.fill(0)

    def close(self) -> None:
        self._stream.stop()
        self._stream.close()
