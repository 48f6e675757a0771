"""The cascade with real models for tests: loaded once; jobs run inside submit, so that a virtual stream is deterministic."""
from functools import cache

import numpy as np

from cloud_core.cascade.runtime import create
from cloud_core.cascade.testing import InlinePool, SpokenPhrases, VirtualDevice, in_cabin
from cloud_core.front_end import AdmittedReply, SessionOptions
from venus_edge.testing import VirtualClock

LONG_REPLY = ("I found three charging stations nearby. The nearest one is on Boulevard Princesse Charlotte, four minutes away, and two of "
              "its six chargers are free. Shall I take you there, or would you like to hear about the other two?")


@cache
def cascade():
    front_end = create(clock=VirtualClock())
    front_end.parts.hearing_pool.shutdown()
    front_end.parts.speaking_pool.shutdown()
    front_end.parts.hearing_pool = front_end.parts.speaking_pool = InlinePool()
    return front_end


@cache
def phrases(voice="jm_kumo"):
    return SpokenPhrases(voice)


def wave(*parts, pause_s=0.7, voice="jm_kumo"):
    out = phrases(voice).wave(*parts, pause_s=pause_s)
    phrases(voice).keep()
    return out


def device():
    return VirtualDevice(cascade().open(SessionOptions("test")))


def play(dev: VirtualDevice, sound: np.ndarray, answer: str = "") -> list:
    """Feed int16 sound; with `answer`, each delegate is answered in the next unit. Returns the decisions."""
    out, replies = [], ()
    sound = np.pad(sound, (0, -len(sound) % dev.unit))
    for k in range(0, len(sound), dev.unit):
        out.append(dev.step(sound[k:k + dev.unit], replies=replies))
        replies = tuple(AdmittedReply(g.span, answer) for g in out[-1].delegates) if answer else ()
    return out


def gather(decisions, name):
    return [x for d in decisions for x in getattr(d, name)]


def speaking_device():
    """A device in whose loudspeaker a long reply has been playing for almost a second."""
    dev = device()
    quiet = np.zeros(dev.unit, np.int16)
    dev.step(quiet, gated=True, replies=(AdmittedReply("r1", LONG_REPLY),))
    for _ in range(22):
        dev.step(quiet, gated=True)
    assert dev.playing
    return dev


def cabin(parts, snr_db=10.0, lead_s=0.6, tail_s=1.8, seed=1, **more):
    return in_cabin(wave(*parts, **more), snr_db, lead_s, tail_s, seed)
