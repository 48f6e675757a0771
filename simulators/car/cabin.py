"""The simulated car's sound in real time: the device SDK between a loudspeaker and a microphone in a cabin full of people and noise.

    cabin = Cabin(device, ScriptedPeople(lines, trace), CabinSettings(), clock=clock)
    await cabin.run(max_s=60)            # every 10 ms one block each way, paced by the clock

As a process (`python -m simulators.car.cabin`, see cabin_process.py) it plays a scenario into the room.
"""
import wave
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from simulators.car.acoustics import BLOCK, MIC_RATE, SPEAKER_BLOCK, SPEAKER_RATE, CabinSettings, Loudspeaker, RoadNoise, Seats
from simulators.car.script import Ear, Script
from simulators.people.catalogue import hum_kind
from venus_edge.clock import Clock
from venus_edge.metrics import METRICS

BLOCK_S = BLOCK / MIC_RATE
LATE_S = 0.01
"""A block done this long after its time counts as late."""
IN_A_ROW = 8
"""Blocks worked off without letting the event loop run: about 15 ms."""
QUIET_AT_END_S = 3.0
RAISED_DB = 5.0
"""How much louder people speak who talk over the loudspeaker; a listener's signal stays as it is."""


class AudioDevice(Protocol):
    """What the cabin needs of device_sdk.Device."""

    pos: int

    def render(self, n_out: int) -> np.ndarray: ...

    def capture(self, mic: np.ndarray) -> None: ...


@dataclass
class Figures:
    """How the loop kept time. `late`: blocks more than LATE_S behind; none is ever left out."""

    blocks: int = 0
    late: int = 0
    late_max_ms: float = 0.0
    clipped: int = 0
    utterances: int = 0

    def row(self) -> dict[str, Any]:
        return {"blocks": self.blocks, "late": self.late, "max_late_ms": round(self.late_max_ms, 1), "clipped": self.clipped,
                "utterances": self.utterances}


class Recorder:
    """A mono int16 WAV that grows block by block; `path` None records nothing."""

    def __init__(self, path: Path | None, rate: int):
        self._file = None
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = wave.open(str(path), "wb")
            self._file.setnchannels(1)
            self._file.setsampwidth(2)
            self._file.setframerate(rate)

    def write(self, block: np.ndarray) -> None:
        if self._file is not None:
            self._file.writeframesraw(block.astype("<i2", copy=False).tobytes())

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


class Cabin:
    """One device in one cabin. `step` does one block; `run` paces them. Everything counts in device samples from 0.

    `speed()` gives km/h. `out_dir` gets speaker.wav (24 kHz, what left the loudspeaker) and mic.wav (16 kHz, before the device),
    both starting at device sample 0. `keep`: hold the loudspeaker's sound in memory too, at most `keep_s` seconds of it.
    `listen(block)` hears the microphone live.
    """

    def __init__(self, device: AudioDevice, script: Script, settings: CabinSettings | None = None, *, clock: Clock, seed: int = 0,
                 speed: Callable[[], float] = lambda: 0.0, out_dir: Path | None = None, keep: bool = False, keep_s: float = 1800.0,
                 listen: Callable[[np.ndarray], None] | None = None):
        settings = settings or CabinSettings()
        self.device, self.script, self.clock, self.figures, self.ear = device, script, clock, Figures(), Ear()
        self._speed, self._listen = speed, listen
        seats = Seats(settings)
        self._at_microphone = {id(line): seats.at_microphone(line.samples, line.seat) for line in script.lines()}
        self._echo, self._noise = Loudspeaker(settings), RoadNoise(settings, seed)
        self._line = np.zeros(round(settings.dac_delay_ms * SPEAKER_RATE / 1000), np.int16)
        self._talking: list[tuple[int, np.ndarray]] = []  # (first position, sound at the microphone); few speak at a time
        self._speaker_file = Recorder(out_dir / "speaker.wav" if out_dir else None, SPEAKER_RATE)
        self._mic_file = Recorder(out_dir / "mic.wav" if out_dir else None, MIC_RATE)
        self._kept: list[np.ndarray] = []
        self._keep_blocks = round(keep_s / BLOCK_S) if keep else 0
        self._ending = False

    @property
    def pos(self) -> int:
        return self.device.pos

    @property
    def loudspeaker(self) -> np.ndarray:
        """What left the loudspeaker so far (int16, 24 kHz), if it was asked to be kept; sample i at position i * 2 / 3."""
        return np.concatenate(self._kept) if self._kept else np.zeros(0, np.int16)

    def begin(self) -> None:
        """The script's time begins now."""
        self.script.start(self.pos)

    @property
    def finished(self) -> bool:
        """All is said and the loudspeaker has been quiet for QUIET_AT_END_S."""
        if not self.script.done:
            self._ending = False
            return False
        if not self._ending:
            self._ending, self._said_all = True, self.pos
        return self.pos - max(self._said_all, self.ear.last_sound) >= QUIET_AT_END_S * MIC_RATE

    def step(self) -> None:
        """10 ms: loudspeaker, people, noise, microphone. About 0.2 ms beside the device's own work."""
        pos = self.device.pos
        line = np.concatenate([self._line, self.device.render(SPEAKER_BLOCK)])
        leaving, self._line = line[:SPEAKER_BLOCK], line[SPEAKER_BLOCK:]
        kmh = self._speed()
        for spoken in self.script.tick(self.ear.facts(pos, kmh)):
            sound = self._at_microphone[id(spoken)]
            if self.ear.sounding and hum_kind(spoken.text) is None:
                sound = sound * np.float32(10 ** (RAISED_DB / 20))
            self._talking.append((pos, sound))
            self.figures.utterances += 1
        mic = self._noise(kmh) + self._echo(leaving)
        for first, sound in self._talking:
            part = sound[pos - first:pos - first + BLOCK]
            mic[:len(part)] += part
        self._talking = [(first, sound) for first, sound in self._talking if pos + BLOCK < first + len(sound)]
        self.ear.hear(leaving, pos, BLOCK)
        if np.abs(mic).max() > 32767:
            self.figures.clipped += 1
        block = np.clip(np.rint(mic), -32768, 32767).astype(np.int16)
        self.device.capture(block)
        self._speaker_file.write(leaving)
        self._mic_file.write(block)
        if len(self._kept) < self._keep_blocks:
            self._kept.append(leaving)
        if self._listen is not None:
            self._listen(block)
        self.figures.blocks += 1

    async def run(self, max_s: float, until: Callable[[], bool] | None = None) -> Figures:
        """Blocks at their absolute times until `until()` (default: `finished`) or `max_s` seconds of sound.

        A block is handled when its 10 ms are over. Late ones are caught up, a few in a row, and none is left out.
        """
        until = until or (lambda: self.finished)
        start, first, in_a_row = self.clock.now(), self.figures.blocks, 0
        while self.figures.blocks - first < max_s / BLOCK_S and not until():
            due = start + (self.figures.blocks - first + 1) * BLOCK_S
            wait = due - self.clock.now()
            if wait > 0 or in_a_row >= IN_A_ROW:
                await self.clock.sleep(max(0.0, wait))
                in_a_row = 0
            late = self.clock.now() - due
            if late > LATE_S:
                self.figures.late += 1
                METRICS.add("venus_cabin_late_blocks_total")
            self.figures.late_max_ms = max(self.figures.late_max_ms, late * 1000)
            METRICS.peak("venus_cabin_late_max_ms", late * 1000)
            self.step()
            in_a_row += 1
        return self.figures

    def close(self) -> None:
        """Finish the recordings."""
        self._speaker_file.close()
        self._mic_file.close()


if __name__ == "__main__":
    from simulators.car.cabin_process import main
    from venus_edge.process import run

    run(main)
