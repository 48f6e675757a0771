"""Whole conversations through step(), with the real models on a virtual stream in cabin noise."""
import time

import numpy as np
import pytest

from cloud_core.cascade.errors import BadOptions, BadUnit, SessionClosed
from cloud_core.cascade.runtime import create
from cloud_core.cascade.testing import HeldPool, VirtualDevice, cabin_noise
from cloud_core.front_end import AdmittedReply, AudioPatch, Kind, PlayoutMark, SessionOptions, UnitInput, Verdict
from cascade_fixtures import cabin, cascade, device, gather, play, speaking_device, wave


@pytest.mark.parametrize("parts, capability, arguments", [
    (("Set the temperature to twenty-two degrees.",), "vehicle.set_temperature", {"celsius": 22.0, "zone": "speaker"}),
    (("Take me to the casino.",), "navigation.go", {"destination": "casino"}),
    (("Close the driver's window.",), "vehicle.set_window", {"position": 0, "window": "driver"}),
])
def test_a_spoken_command_becomes_its_request(parts, capability, arguments):
    """Invariant: one delegate with the right arguments, opened at what had been consumed, and the user's own words with it."""
    dev = device()
    decisions = play(dev, cabin(parts))
    (request,), (user,) = gather(decisions, "delegates"), gather(decisions, "user")
    assert (request.capability, request.arguments, request.repair) == (capability, arguments, "new")
    at = next(d for d in decisions if d.delegates)
    assert request.opened_seq == at.seq and request.opened_pos == (at.seq + 1) * dev.unit and request.prose == user.text
    assert at.kind is Kind.END_TURN and {"endpoint_ms", "recognition_ms", "policy_ms"} <= set(at.timings)
    assert user.final and user.start < user.end <= request.opened_pos


@pytest.mark.parametrize("parts, capability", [(("Set the temperature to", "twenty-two degrees."), "vehicle.set_temperature"),
                                               (("Take me to", "the casino."), "navigation.go")])
@pytest.mark.parametrize("pause_s", [0.65, 1.0])
def test_a_pause_at_an_incomplete_place_does_not_cut_the_turn(parts, capability, pause_s):
    """Invariant: one turn, one request, decided only after the last word."""
    sound = cabin(parts, pause_s=pause_s)
    decisions = play(device(), sound)
    assert [g.capability for g in gather(decisions, "delegates")] == [capability]
    assert len(gather(decisions, "user")) == 1
    spoken_until = len(sound) - int(1.8 * 16_000)
    assert gather(decisions, "delegates")[0].opened_pos > spoken_until


def test_an_answer_is_spoken_in_one_segment_that_spells_it():
    """Invariant: the reply's words are spoken as they are, once, in one segment that carries its id and tiles its samples."""
    text = "Okay. It's set to 22 degrees, and the fan is on."
    dev = device()
    decisions = play(dev, cabin(("Set the temperature to twenty-two degrees.",), tail_s=4.5), answer=text)
    chunks = gather(decisions, "segments")
    assert len({c.seg for c in chunks}) == 1 and dev.spoken() == [text]
    assert [c.last for c in chunks] == [False] * (len(chunks) - 1) + [True]
    assert all(a.start + len(a.samples) == b.start for a, b in zip(chunks, chunks[1:]))
    assert chunks[0].reply_id == gather(decisions, "delegates")[0].span


def test_the_time_of_day_is_answered_by_itself():
    """Invariant: no delegate; the injected clock's time is spoken."""
    dev = device()
    decisions = play(dev, cabin(("What time is it?",)))
    assert not gather(decisions, "delegates")
    clock = time.localtime(cascade().parts.clock.wall())
    assert f"{clock.tm_min:02d}" in dev.spoken()[0]


@pytest.mark.parametrize("voice, text", [("jm_kumo", t) for t in ("mm-hmm.", "uh-huh.", "okay.", "right.", "yeah.")]
                         + [("jf_alpha", t) for t in ("mm-hmm.", "okay.", "I see.")])
def test_a_backchannel_does_not_stop_the_assistant(voice, text):
    """Invariant: the verdict is restore, nothing is asked for, and the segment goes on."""
    dev = speaking_device()
    decisions = play(dev, cabin((text,), voice=voice, lead_s=0.3, tail_s=1.2))
    assert [o.verdict for o in gather(decisions, "overlaps")] == [Verdict.RESTORE]
    assert not gather(decisions, "delegates") and all(u.backchannel for u in gather(decisions, "user"))
    assert dev.playing


@pytest.mark.parametrize("text, capability", [("No, take me to the casino instead.", "navigation.go"), ("Wait, take me to the museum.", "navigation.go")])
def test_an_interruption_takes_the_floor_and_is_understood(text, capability):
    """Invariant: flush while the user still speaks, then the same speech is a normal turn, as a correction."""
    dev = speaking_device()
    decisions = play(dev, cabin((text,), lead_s=0.3))
    (overlap,) = gather(decisions, "overlaps")
    assert overlap.verdict is Verdict.FLUSH and overlap.seg in dev.segments
    flushed = next(d.seq for d in decisions if d.overlaps)
    assert all(c.seg != overlap.seg for d in decisions if d.seq >= flushed for c in d.segments)
    assert [(g.capability, g.repair) for g in gather(decisions, "delegates")] == [(capability, "update")]
    at_ms = ((flushed + 1) * dev.unit - overlap.onset) / 16
    assert at_ms < 700


def test_stop_silences_and_asks_for_nothing():
    """Invariant: "stop" over the assistant's speech ends the speech; no task is touched."""
    dev = speaking_device()
    decisions = play(dev, cabin(("Stop.",), lead_s=0.3))
    assert [o.verdict for o in gather(decisions, "overlaps")] == [Verdict.FLUSH]
    assert not gather(decisions, "delegates") and not dev.playing


def test_a_turn_that_goes_on_after_an_early_end_is_one_turn_with_an_update():
    """Invariant: "find me a pharmacy … and take me there" ends early, is recognised again as a whole, and updates the request."""
    decisions = play(device(), cabin(("Find me a museum nearby", "and take me there."), pause_s=0.8))
    requests, users = gather(decisions, "delegates"), gather(decisions, "user")
    assert [(g.capability, g.repair) for g in requests] == [("poi.find", "new"), ("navigation.find_and_go", "update")]
    assert users[0].turn == users[1].turn and users[1].start == users[0].start and requests[0].key != requests[1].key


def test_a_reply_is_never_begun_while_the_user_speaks():
    """Invariant: no segment begins in a unit in which the user speaks or has an open turn."""
    dev = device()
    sound = cabin(("Take me to the train station.",), lead_s=0.3)
    decisions, sent = [], False
    for k in range(0, len(sound) - dev.unit, dev.unit):
        replies = ()
        if not sent and decisions and decisions[-1].user_speaking:
            replies, sent = (AdmittedReply("late", "You asked for chargers earlier."),), True
        decisions.append(dev.step(sound[k:k + dev.unit], replies=replies))
    begun = [d for d in decisions if any(c.start == 0 for c in d.segments)]
    assert sent and begun and not any(d.user_speaking or d.turn_open for d in begun)


def test_noise_alone_is_nobody():
    """Invariant: five seconds of road noise give no turn, no text, no request."""
    dev = device()
    sound = (cabin_noise(5 * 16_000, 3) * 0.03 * 32767).astype(np.int16)
    decisions = play(dev, sound)
    assert not gather(decisions, "user") and not gather(decisions, "delegates")


def test_the_gates_preroll_is_recognised_with_the_rest():
    """Invariant: speech that the gate held back and sent late as backfill is heard as if it had come in time."""
    sound = cabin(("Take me to the casino.",), snr_db=40, lead_s=0.6)
    dev = device()
    unit = dev.unit
    opened = int(0.6 * 16_000) // unit + 7  # the gate opens 280 ms into the words
    out = []
    for k in range(len(sound) // unit):
        piece = sound[k * unit:(k + 1) * unit]
        if k < opened:
            out.append(dev.step(np.zeros(unit, np.int16), gated=True))
        else:
            patch = (AudioPatch((opened - 12) * unit, sound[(opened - 12) * unit:opened * unit]),) if k == opened else ()
            out.append(dev.step(piece, backfill=patch))
    assert [g.arguments for g in gather(out, "delegates")] == [{"destination": "casino"}]


def test_speech_that_resumes_makes_a_running_recognition_stale():
    """Invariant: what was recognised before the user went on is thrown away; only the whole turn counts."""
    held = HeldPool()
    front_end, inline = cascade(), cascade().parts.hearing_pool
    front_end.parts.hearing_pool = held
    try:
        dev = device()
        sound = cabin(("Take me to", "the casino."), pause_s=0.4, tail_s=1.0)
        decisions = play(dev, sound)
        assert not gather(decisions, "user") and len(held.jobs) >= 2
        held.run()
        decisions = play(dev, np.zeros(dev.unit * 6, np.int16))
        assert [g.arguments for g in gather(decisions, "delegates")] == [{"destination": "casino"}]
    finally:
        front_end.parts.hearing_pool = inline


GOOD = np.zeros(320, np.int16)


@pytest.mark.parametrize("unit, field", [
    (UnitInput(5, 320, np.zeros(319, np.int16)), "audio"), (UnitInput(5, 320, np.zeros(320, np.float32)), "audio"),
    (UnitInput(5, 320, [0] * 320), "audio"), (UnitInput(5, 0, GOOD), "pos"), (UnitInput(0, 320, GOOD), "seq"),
    (UnitInput(5, 320, GOOD, backfill=(AudioPatch(0, np.zeros(9, np.float32)),)), "backfill"),
    (UnitInput(5, 320, GOOD, playout=(PlayoutMark("s", 0, 24_000, "dancing"),)), "playout"),
    (UnitInput(5, 320, GOOD, playout=(PlayoutMark("s", 0, 0, "playing"),)), "playout"),
    (UnitInput(5, 320, GOOD, replies=(AdmittedReply("", "x"),)), "replies"),
])
def test_a_bad_unit_is_refused_by_field_and_the_session_lives(unit, field):
    """Invariant: one clear error that names the field; nothing has changed, and the next good unit is answered."""
    session = cascade().open(SessionOptions("bad"))
    session.step(UnitInput(0, 0, GOOD))
    with pytest.raises(BadUnit, match=field):
        session.step(unit)
    assert session.step(UnitInput(1, 320, GOOD)).seq == 1


def test_a_gap_in_positions_is_silence():
    """Invariant: units that never came don't shift what follows."""
    session = cascade().open(SessionOptions("gap"))
    session.step(UnitInput(0, 0, GOOD))
    assert session.step(UnitInput(1, 16_000 * 100, GOOD)).kind is Kind.LISTEN
    assert session.activity.pos == 16_000 * 100 + 320


def test_a_reply_repeated_is_spoken_once():
    """Invariant: the same reply id twice is one reply."""
    dev = device()
    for _ in range(2):
        dev.step(GOOD, gated=True, replies=(AdmittedReply("same", "Okay."),))
    for _ in range(60):
        dev.step(GOOD, gated=True)
    assert dev.spoken() == ["Okay."]


def test_a_long_segment_stays_ours_while_it_plays_and_expires_without_reports():
    """Invariant: as long as the device reports progress the segment is being spoken; one never reported ends by itself, so
    that the next reply isn't lost."""
    dev = speaking_device()
    seen = []
    while dev.playing:
        seen.append(dev.session.speaker.active)
        dev.step(GOOD, gated=True)
    assert len(seen) > 150 and all(seen)
    deaf = cascade().open(SessionOptions("deaf"))
    spoken = []
    for k in range(200):
        replies = (AdmittedReply("a", "Okay."), AdmittedReply("b", "Done.")) if k == 0 else ()
        spoken += [c.reply_id for c in deaf.step(UnitInput(k, k * 320, GOOD, True, replies=replies)).segments]
    assert spoken == ["a", "b"]


def test_too_many_replies_are_declined_and_told():
    """Invariant: the queue is bounded; what it declines is named in `dropped`."""
    dev = device()
    decision = dev.step(GOOD, replies=tuple(AdmittedReply(f"r{k}", f"Reply {k}.") for k in range(12)))
    assert decision.dropped == tuple(f"r{k}" for k in range(8, 12))


def test_bad_options_name_the_option_and_what_is_allowed():
    """Invariant: language, setting name and range are refused before anything is loaded or opened."""
    with pytest.raises(BadOptions, match="lang.*allowed: en"):
        cascade().open(SessionOptions("x", lang="xx"))
    with pytest.raises(BadOptions, match="unit_ms"):
        create({"unit_ms": 7})
    with pytest.raises(BadOptions, match="colour.*unit_ms"):
        create({"colour": 1})


def test_a_closed_session_refuses_and_has_forgotten():
    """Invariant: after close nothing of the audio is left."""
    dev = VirtualDevice(cascade().open(SessionOptions("close")))
    play(dev, (wave("Lock the doors.") * 9000).astype(np.int16))
    dev.session.close()
    assert not dev.session.activity.ring.read(0, dev.pos).any()
    with pytest.raises(SessionClosed):
        dev.step(GOOD)
