"""Who may speak and what they may be given to say: the occupants' voices by name, and texts with pauses. Loads no model."""
import re
from dataclasses import dataclass

from venus_edge.errors import ConfigError

RATE = 16_000
"""Samples per second of every utterance."""
VERSION = 8
"""Raise when anything changes what a text sounds like: cached utterances of another version are made anew."""
MAX_TEXT = 400
MAX_PAUSE_S = 5.0
_PAUSE = re.compile(r"\[pause\s+([0-9.]+)\s*\]")
HUMS = {"mmhmm": True, "mhm": True, "mmhm": True, "uhhuh": False}
"""Listener's signals by their letters: True for a closed mouth."""


@dataclass(frozen=True)
class Take:
    """One way for a voice to say something: styles of the model blended by weight, and the tempo."""

    timbre: tuple[tuple[str, float], ...]
    prosody: tuple[tuple[str, float], ...] = ()
    """Where it differs from the timbre: the model's style vector holds 128 values of each."""
    speed: float = 1.0


@dataclass(frozen=True)
class Voice:
    """A person. The first take is the usual one; the others are tried where the recogniser mishears it."""

    name: str
    pitch_hz: float
    takes: tuple[Take, ...]


_KUMO, _WOMEN = (("jm_kumo", 1.0),), (("jf_tebukuro", 0.5), ("jf_gongitsune", 0.5))
_MIXED = (("jm_kumo", 0.6), ("jf_alpha", 0.2), ("jf_tebukuro", 0.2))
_GONGITSUNE, _ALPHA, _NEZUMI = (("jf_gongitsune", 1.0),), (("jf_alpha", 1.0),), (("jf_nezumi", 1.0),)
VOICES = {v.name: v for v in (
    Voice("marc", 118, (Take(_KUMO), Take(_KUMO, speed=1.1), Take(_KUMO, _ALPHA), Take(_KUMO, _MIXED, 1.05), Take(_KUMO, speed=0.9))),
    Voice("claire", 215, (Take(_WOMEN, speed=1.1), Take(_WOMEN), Take(_WOMEN, _KUMO), Take(_GONGITSUNE), Take(_WOMEN, speed=0.9))),
    Voice("sofia", 230, (Take(_ALPHA, _KUMO, 1.1), Take(_ALPHA, _KUMO), Take(_ALPHA, _WOMEN), Take(_ALPHA, _KUMO, 0.9))),
    Voice("nina", 245, (Take(_NEZUMI, speed=1.1), Take(_NEZUMI), Take(_NEZUMI, _KUMO), Take(_NEZUMI, _WOMEN, 0.9))),
)}


def voice(name: str) -> Voice:
    if name not in VOICES:
        raise ConfigError(f"voice: {name!r} is unknown; allowed: {', '.join(VOICES)}")
    return VOICES[name]


def pieces(text: str) -> list[str | float]:
    """The text cut at its pauses: strings to say and seconds of silence. Raises ConfigError for a wrong pause or length."""
    if not text.strip() or len(text) > MAX_TEXT:
        raise ConfigError(f"text of {len(text)} characters; allowed: 1 to {MAX_TEXT}")
    out: list[str | float] = []
    for k, part in enumerate(_PAUSE.split(text)):
        if k % 2:
            try:
                seconds = float(part)
            except ValueError:
                seconds = -1.0
            if not 0 < seconds <= MAX_PAUSE_S:
                raise ConfigError(f"[pause {part}]: allowed: above 0 to {MAX_PAUSE_S:g} seconds")
            out.append(seconds)
        elif part.strip():
            out.append(part.strip())
    if not out or isinstance(out[0], float) or isinstance(out[-1], float) or "[" in "".join(p for p in out if isinstance(p, str)):
        raise ConfigError(f"text {text!r}: write a pause as [pause 0.7], between words")
    return out


def spoken(text: str) -> str:
    """The words alone, as they are to be heard."""
    return " ".join(p for p in pieces(text) if isinstance(p, str))


def hum_kind(text: str) -> bool | None:
    """For a listener's signal ("mm-hmm", "uh-huh") whether the mouth is closed; None for words."""
    return HUMS.get(re.sub(r"[^a-z]", "", text.lower()))
