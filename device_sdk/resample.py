"""Streaming resampler by a small rational ratio: windowed-sinc polyphase FIR in numpy, for blocks of 10 ms."""

from math import gcd

import numpy as np

from device_sdk.errors import AudioFormatError

TAPS_PER_PHASE = 32


class Resampler:
    """int16 in at `rate_in`, int16 out at `rate_out`; the state carries over from block to block.

    A block's length must be a multiple of `step_in`, and gives `len / step_in * step_out` samples. The filter delays the
    signal by `delay_s` (about a millisecond). Pass band to 0.42 of the lower rate, Kaiser window, 70 dB stop band.
    """

    def __init__(self, rate_in: int, rate_out: int):
        common = gcd(rate_in, rate_out)
        self.step_in, self.step_out = rate_in // common, rate_out // common
        up, down = self.step_out, self.step_in
        self.identity = up == down
        width = TAPS_PER_PHASE * max(1.0, down / up)
        taps = int(np.ceil(width)) * up
        at = np.arange(taps) - (taps - 1) / 2
        edge = 0.46 / max(up, down)  # of the intermediate rate; a little below Nyquist of the lower one
        kernel = 2 * edge * up * np.sinc(2 * edge * at) * np.kaiser(taps, 7.0)
        self.delay_s = (taps - 1) / 2 / (rate_in * up)
        length = taps // up
        self._history = np.zeros(length - 1, np.float32)
        # output m lies at m * down of the intermediate rate: phase (m * down) % up, newest input (m * down) // up
        self._phases = []
        for m in range(up):
            phase, newest = (m * down) % up, (m * down) // up
            self._phases.append((newest, kernel[phase::up][::-1].astype(np.float32).copy()))
        self._length = length

    def __call__(self, block: np.ndarray) -> np.ndarray:
        """Resample one block; raises AudioFormatError on another type or a length that is no multiple of `step_in`."""
        if block.dtype != np.int16 or block.ndim != 1 or len(block) % self.step_in:
            raise AudioFormatError(f"block: must be int16 of a multiple of {self.step_in} samples, not {block.dtype}[{block.shape}]")
        if self.identity or not len(block):
            return block
        x = np.concatenate([self._history, block])
        if len(self._history):
            self._history = x[-len(self._history):]
        periods = len(block) // self.step_in
        windows = np.lib.stride_tricks.sliding_window_view(x, self._length)
        out = np.empty(periods * self.step_out, np.float32)
        for m, (newest, kernel) in enumerate(self._phases):
            out[m::self.step_out] = windows[newest::self.step_in][:periods] @ kernel
        return np.clip(np.rint(out), -32768, 32767).astype(np.int16)
