"""A small drive as a timeline and a recording, for the tests of judge, report and console.

The recording is spoken in tones: 20 ms for each character, its frequency by its code. `recognise` reads them back from the
samples, so a segment that was cut off is heard up to where it was cut, and silence holds no words.
"""
import json
import wave
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np

from simulators.timeline import Event, ordered

RATE, MIC = 24_000, 16_000
CHAR_S = 0.02


def tones(text: str, rate: int = RATE) -> np.ndarray:
    """`text` (ASCII) as int16 tones at `rate`."""
    n = int(CHAR_S * rate)
    t = np.arange(n) / rate
    parts = [0.5 * np.sin(2 * np.pi * (400 + 75 * (ord(c) - 32)) * t) for c in text.encode("ascii", "replace").decode()]
    return (np.concatenate(parts) * 32767).astype(np.int16)


def recognise(samples: np.ndarray) -> str:
    """The characters of tones at 16 kHz, from the first loud sample on; pauses become spaces."""
    loud = np.flatnonzero(np.abs(samples) > 0.05)
    if not len(loud):
        return ""
    n = int(CHAR_S * MIC)
    samples = samples[max(0, loud[0] - 1):loud[-1] + 1]
    text = ""
    for i in range(0, len(samples) - n // 2, n):
        frame = samples[i:i + n]
        if np.abs(frame).max() < 0.2:
            text += " "
            continue
        peak = np.abs(np.fft.rfft(frame * np.hanning(len(frame)), MIC // 5)).argmax() * 5
        text += chr(32 + round((peak - 400) / 75))
    return " ".join(text.split())


@dataclass
class Run:
    """Build events at seconds of the run; `t` is the same clock with an offset of 100 s."""

    events: list[Event] = field(default_factory=list)
    speaker: np.ndarray = field(default_factory=lambda: np.zeros(60 * RATE, np.int16))
    voice: Callable[[str], np.ndarray] = tones

    def add(self, src: str, ev: str, at: float, pos: bool = True, late: float = 0.0, **fields) -> None:
        self.events.append(Event(src, round(100 + at + late, 6), round(at * MIC) if pos else None, ev, fields))

    def start(self) -> None:
        self.add("worker", "session.ready", 0.5)
        self.add("device", "gate.open", 0.5, withheld=0)

    def say(self, id: str, text: str, at: float, turn: int, who: str = "driver", seconds: float = 2.0, heard: str | None = None,
            backchannel: bool = False) -> None:
        self.add("people", "utter.begin", at, id=id, who=who, text=text)
        self.add("device", "vad.on", at, late=0.09)
        self.add("device", "vad.off", at + seconds)
        self.add("people", "utter.end", at + seconds, id=id, who=who, text=text)
        self.add("worker", "user.text", at + seconds, late=0.3, turn=turn, text=heard or text, start=round(at * MIC),
                 end=round((at + seconds) * MIC), final=True, backchannel=backchannel)

    def delegate(self, task: str, at: float, turn: int, capability: str, arguments: dict, repair: str = "new") -> None:
        self.add("worker", "delegate", at, span=f"s-{task}", turn=turn, task=task, capability=capability, arguments=arguments,
                 repair=repair, prose="")
        self.state(task, "execution", "", "queued", at, capability)
        self.state(task, "execution", "queued", "running", at + 0.01, capability)

    def state(self, task: str, machine: str, src: str, to: str, at: float, capability: str = "", reason: str = "") -> None:
        self.add("worker", f"task.{machine}", at, pos=False, task=task, version=1, capability=capability,
                 **{"from": src, "to": to, "reason": reason})

    def speak(self, seg: str, text: str, at: float, turn: int, task: str = "", kind: str = "", cut: float | None = None,
              heard: str | None = None) -> None:
        """A segment of the assistant; `cut` = seconds of it that were played before it was flushed, `heard` = its words by then."""
        sound = self.voice(text)
        played = len(sound) if cut is None else min(len(sound), round(cut * RATE))
        end = at + played / RATE
        reply = f"r-{seg}" if task else None
        if task:
            self.add("worker", "reply.admit", at - 0.2, reply=reply, task=task, kind=kind, turn=turn, text=text)
        self.add("worker", "segment", at - 0.1, seg=seg, reply=reply, turn=turn, text=text, rate=RATE)
        self.add("device", "seg.first", at, seg=seg, played=0, len=len(sound), state="playing")
        state = "ended" if cut is None else "flushed"
        if cut is not None:
            self.add("device", "flush", end, reason="cloud", seg=seg, played=played)
        self.add("device", "seg.last", end, seg=seg, played=played, len=len(sound), state=state)
        letters = int(played / RATE / CHAR_S + 1e-9)
        whole = heard or (text if cut is None else text[:letters].rpartition(" ")[0])
        self.add("worker", "segment.end", end, seg=seg, reply=reply, state=state, played=played, len=len(sound), rate=RATE,
                 heard=whole, unheard=text[len(whole):].strip(), confirmed=True)
        i = round(at * RATE)
        self.speaker[i:i + played] = sound[:played]

    def done(self, at: float) -> None:
        self.add("people", "script.done", at)

    def merged(self) -> list[Event]:
        return ordered(self.events)

    def recording(self) -> tuple[np.ndarray, int]:
        return self.speaker, RATE

    def write(self, directory) -> None:
        """The traces and both recordings as a run leaves them."""
        for src in {e.src for e in self.events}:
            rows = [e.row() for e in sorted(self.events, key=lambda e: e.t) if e.src == src]
            (directory / f"{src}.trace.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
        for name, rate, samples in (("speaker", RATE, self.speaker), ("mic", MIC, self.speaker[::3] // 4)):
            with wave.open(str(directory / f"{name}.wav"), "wb") as out:
                out.setparams((1, 2, rate, 0, "NONE", ""))
                out.writeframes(samples.tobytes())


HVAC = "Vehicle.Cabin.HVAC.Station.Row1.Driver.Temperature"
CHARGER = "I found Charge Point Fontvieille, four minutes away. Turn right into Boulevard des Moulins, then left at the port."


def drive() -> Run:
    """A drive in which everything went well: a temperature, a refusal, a superseded search, a backchannel, a slow task."""
    run = Run()
    run.start()
    for second in range(50):
        run.add("signals", "signal", second + 0.0, pos=False, path="Vehicle.Speed", value=50.0)
    run.add("signals", "signal", 0.6, pos=False, path="Vehicle.Body.Trunk.Rear.IsOpen", value=False)
    run.add("signals", "signal", 0.6, pos=False, path=HVAC, value=20.0)

    run.say("temperature", "Set the temperature to twenty-two degrees", 2, turn=1)
    run.delegate("t1", 4.1, 1, "vehicle.set_temperature", {"celsius": 22.0, "zone": "speaker"})
    run.add("carhost", "effect", 4.2, pos=False, op="actuate", path=HVAC, value=22.0, verdict="allow", reason="", task="t1",
            took_s=0.2)
    run.add("signals", "signal", 4.3, pos=False, path=HVAC, value=22.0)
    run.state("t1", "execution", "running", "completed", 4.35, "vehicle.set_temperature")
    run.speak("g1", "It's set to 22 degrees.", 4.5, turn=1, task="t1", kind="result")
    run.state("t1", "delivery", "pending", "delivered", 5.2, "vehicle.set_temperature")

    run.say("tailgate", "Open the tailgate", 8, turn=2, seconds=1.5)
    run.delegate("t2", 9.6, 2, "vehicle.set_tailgate", {"open": True})
    run.add("carhost", "effect", 9.7, pos=False, op="actuate", path="Vehicle.Body.Trunk.Rear.IsOpen", value=True,
            verdict="refuse", reason="unsafe_now", task="t2", took_s=0.0)
    run.state("t2", "execution", "running", "failed", 9.75, "vehicle.set_tailgate", "unsafe_now")
    run.speak("g2", "I can't open the tailgate while we are driving.", 10.1, turn=2, task="t2", kind="notice")
    run.state("t2", "delivery", "pending", "delivered", 11.2, "vehicle.set_tailgate")

    run.say("charger", "Find me a charging station nearby and take me there", 14, turn=3, seconds=2.5)
    run.delegate("t3", 16.6, 3, "navigation.find_and_go", {"query": "charging station"})
    run.speak("g3", CHARGER, 17.1, turn=3, task="t3", kind="result", cut=1.6)
    run.add("device", "duck", 18.0, reason="vad", seg="g3", played=21600)
    run.say("casino", "No, take me to the casino instead", 17.9, turn=4, seconds=1.5)
    run.add("worker", "overlap", 17.9, seg="g3", verdict="flush", reason="interruption", onset=round(17.9 * MIC))
    run.delegate("t4", 19.5, 4, "navigation.go", {"destination": "casino"}, repair="update")
    run.state("t3", "execution", "running", "superseded", 19.55, "navigation.find_and_go")
    run.state("t3", "delivery", "delivering", "dropped", 19.55, "navigation.find_and_go", "superseded")
    run.state("t4", "execution", "running", "completed", 19.7, "navigation.go")
    run.speak("g4", "Okay, going to the casino. It takes 6 minutes by Avenue d'Ostende.", 20.1, turn=4, task="t4", kind="result")
    run.say("mhm", "mm-hmm", 20.6, turn=5, seconds=0.4, backchannel=True)
    run.add("device", "duck", 20.7, reason="vad", seg="g4", played=14400)
    run.add("worker", "overlap", 20.6, seg="g4", verdict="restore", reason="backchannel", onset=round(20.6 * MIC))
    run.add("device", "restore", 21.1, reason="cloud", seg="g4", played=24000)
    run.state("t4", "delivery", "delivering", "delivered", 21.6, "navigation.go")

    run.say("pharmacy", "Is there a pharmacy nearby", 25, turn=6)
    run.delegate("t6", 27.1, 6, "poi.find", {"query": "pharmacy", "open_now": False})
    run.speak("g6", "Let me look for that.", 27.4, turn=6, task="t6", kind="ack")
    run.say("speed", "How fast are we going", 29, turn=7, seconds=1.2)
    run.delegate("t7", 30.3, 7, "vehicle.status", {"what": "speed"})
    run.state("t7", "execution", "running", "completed", 30.4, "vehicle.status")
    run.speak("g7", "We're going 50 kilometers per hour.", 30.7, turn=7, task="t7", kind="result")
    run.state("t7", "delivery", "delivering", "delivered", 31.5, "vehicle.status")
    run.state("t6", "execution", "running", "completed", 32.0, "poi.find")
    run.speak("g8", "About the pharmacy: Pharmacie du Rocher is 300 meters away.", 33.0, turn=7, task="t6", kind="result")
    run.state("t6", "delivery", "delivering", "delivered", 34.3, "poi.find")
    run.add("worker", "loop.block", 35.0, pos=False, late_ms=41.5)
    run.done(38.0)
    return run


def scenario(**steps) -> SimpleNamespace:
    """Steps by id, each with the fields it expects."""
    return SimpleNamespace(steps=[SimpleNamespace(id=i, expect=SimpleNamespace(**e)) for i, e in steps.items()])


GOOD = dict(
    temperature=dict(heard=["set to twenty-two degrees"], heard_numbers=[22], within_s=1.0,
                     understood={"capability": "vehicle.set_temperature", "arguments": {"celsius": 22}},
                     task={"execution": "completed", "delivery": "delivered"}, signal={"path": HVAC, "equals": 22}),
    tailgate=dict(refused=True, heard=["driving"], not_heard=["tailgate is open"],
                  signal=[{"path": "Vehicle.Speed", "between": [45, 55]},
                          {"path": "Vehicle.Body.Trunk.Rear.IsOpen", "equals": False}]),
    casino=dict(heard=["casino", "Avenue d'Ostende"], heard_numbers=[6], assistant="stops", supersedes="charger",
                not_heard=["Charge Point"]),
    mhm=dict(assistant="goes_on"),
    pharmacy=dict(heard=["let me look"], then_heard=["Pharmacie du Rocher"]),
    speed=dict(heard=["fifty kilometers per hour"], within_s=1.0))
