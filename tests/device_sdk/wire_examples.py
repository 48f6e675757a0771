"""One example of every message; the golden files beside hold their exact bytes."""

import numpy as np

from device_sdk import wire

CTL = {
    "hello": wire.Hello(protocols=[1], boot="k3f9", pos=16000, t=812345678901, capabilities={"out_rate": 24000}),
    "welcome": wire.Welcome(protocol=1, session="S-1", unit_ms=200),
    "error": wire.Error(code="bad_field", message="field pos: Input should be a valid integer", allowed="0..2**53", re="gate"),
    "ping": wire.Ping(n=7),
    "pong": wire.Pong(n=7, pos=16160, t=812345688901),
    "gate_open": wire.Gate(open=True, pos=27200, withheld=4416),
    "gate_close": wire.Gate(open=False, pos=52800),
    "vad": wire.Vad(on=True, pos=30208),
    "reflex": wire.Reflex(action="duck", reason="vad", pos=30400, seg="01J9ZQ4T7N3V8B6X2C5D1F0GHK", played=38240),
    "flush": wire.Flush(seg="01J9ZQ4T7N3V8B6X2C5D1F0GHK", id="f1"),
    "restore": wire.Restore(id="r1", reason="backchannel"),
    "volume": wire.Volume(level=0.6),
    "screen": wire.Screen(id="i1", task="task-1", kind="result", text="The nearest one is on Rue Grimaldi.", reason="declined"),
    "ack": wire.Ack(boot="k3f9", n=17),
    "bye": wire.Bye(reason="closed"),
}
REPORT = {
    "report_progress": wire.PlayoutReport(
        boot="k3f9", n=17, seg="01J9ZQ4T7N3V8B6X2C5D1F0GHK", r=24000, played=38240, buf=9600, rx=47840, t=812345678901, pos=1234567,
        st="playing", dac=960, gaps=[[16000, 800]], vol=0.6, first_pos=1200000),
    "report_flushed": wire.PlayoutReport(
        boot="k3f9", n=18, seg="01J9ZQ4T7N3V8B6X2C5D1F0GHK", r=24000, played=40000, buf=7840, rx=47840, t=812345778901, pos=1236167,
        st="flushed", dac=960, why="cloud", first_pos=1200000, lost=[[100, 20]]),
}
EFFECT = {
    "effect_get": wire.EffectRequest(key="k1", op="get", paths=["Vehicle.Speed"], timeout_s=1.0, zone="driver", provenance="live_speech"),
    "effect_stop": wire.EffectRequest(key="k3", op="stop", path="Vehicle.Cabin.Door.Row1.DriverSide.Window.Position"),
    "effect_actuate": wire.EffectRequest(
        key="k2", op="actuate", path="Vehicle.Body.Trunk.Rear.IsOpen", value=True, timeout_s=5.0,
        task=wire.TaskRef(id="T-1", version=1)),
    "answer_signals": wire.EffectAnswer(ok=True, signals={"Vehicle.Speed": wire.SignalValue(value=50.0, age_s=0.1)}),
    "answer_effect": wire.EffectAnswer(
        ok=True, effect=wire.EffectDone(path="Vehicle.Body.Trunk.Rear.IsOpen", target=True, value=True, reached=True, took_s=1.5)),
    "answer_error": wire.EffectAnswer(
        ok=False, error=wire.EffectError(code="unsafe_now", message="not while driving", data={"reason": "moving"})),
}
MIC = {
    "mic_live": wire.MicPacket(seq=3, boot=33921333, pos=5_000_000_000, samples=np.arange(-160, 160, dtype=np.int16)),
    "mic_preroll": wire.MicPacket(seq=0, boot=33921333, pos=832, samples=np.full(4, -32768, np.int16), gap=True, preroll=True),
}


def encoded() -> dict[str, bytes]:
    """File name -> the bytes that this version writes."""
    files = {f"{name}.json": wire.encode_ctl(m) for name, m in CTL.items()}
    files |= {f"{name}.json": wire.encode_report(m) for name, m in REPORT.items()}
    files |= {f"{name}.json": wire.encode_effect(m) for name, m in EFFECT.items()}
    return files | {f"{name}.bin": m.pack() for name, m in MIC.items()}
