"""Log-mel features for Whisper-family models, in numpy: 16 kHz, 25 ms Hann windows every 10 ms, 80 Slaney mel bands."""
import numpy as np

RATE, N_FFT, HOP, N_MELS = 16_000, 400, 160, 80
_SLICE = 1000  # frames transformed at once: bounds the memory of a long recording


def _mel_filters() -> np.ndarray:
    """Slaney's mel scale (linear below 1 kHz, logarithmic above), each band of unit area: float32 [80, 201]."""
    step = np.log(6.4) / 27

    def hertz(mel):
        return np.where(mel < 15, mel * 200 / 3, 1000 * np.exp(step * (mel - 15)))

    edges = hertz(np.linspace(0, 15 + np.log(8) / step, N_MELS + 2))
    bins = np.fft.rfftfreq(N_FFT, 1 / RATE)
    width = np.diff(edges)
    ramps = edges[:, None] - bins[None]
    triangles = np.maximum(0, np.minimum(-ramps[:-2] / width[:-1, None], ramps[2:] / width[1:, None]))
    return (triangles * (2 / (edges[2:] - edges[:-2]))[:, None]).astype(np.float32)


_FILTERS = _mel_filters()
_WINDOW = np.hanning(N_FFT + 1)[:-1].astype(np.float32)


def log_mel(samples: np.ndarray, total: int | None = None) -> np.ndarray:
    """float32 mono in, float32 [80, total // 160] out, scaled as Whisper was trained.

    `total` pads with silence to that many samples; only the frames that touch sound are computed, because silence is the
    same floor everywhere.
    """
    total = total or len(samples)
    sound = min(len(samples), total)
    frames = total // HOP
    live = min(frames, (sound + N_FFT // 2) // HOP + 2)
    padded = np.zeros(live * HOP + N_FFT, np.float32)
    head = N_FFT // 2
    padded[head:head + sound] = samples[:sound]
    if sound > head:
        padded[:head] = samples[head:0:-1]
        if live == frames:  # no silence behind: reflect, as the models' own features do
            tail = samples[sound - 2:sound - head - 2:-1]
            space = padded[head + sound:head + sound + len(tail)]
            space[:] = tail[:len(space)]
    view = np.lib.stride_tricks.sliding_window_view(padded, N_FFT)[::HOP][:live]
    out = np.full((N_MELS, frames), -10.0, np.float32)  # log10 of the floor, 1e-10
    for first in range(0, live, _SLICE):
        power = np.abs(np.fft.rfft(view[first:first + _SLICE] * _WINDOW, axis=1)) ** 2
        out[:, first:first + len(power)] = np.log10(np.maximum(_FILTERS @ power.T.astype(np.float32), 1e-10))
    np.maximum(out, out.max() - 8.0, out=out)
    out += 4.0
    out /= 4.0
    return out
