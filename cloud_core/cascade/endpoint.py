"""When is the user's turn over? One pure judgement: what has been understood, and how much silence that needs.

Words that parse as a complete request need little silence; a sentence that sounds finished needs more; one that breaks off
("take me to the …") waits for its rest. The parts that measure (voice activity, recogniser, smart-turn) live elsewhere.
"""
import re
from dataclasses import dataclass


@dataclass(frozen=True)
class EndpointSettings:
    """Silence is measured from the last voiced sample."""

    speculate_ms: float = 64
    """Recognition starts on speculation after this much silence."""
    complete_ms: float = 240
    """Needed when the words parse as a complete request."""
    may_go_on_ms: float = 440
    """Needed when the request is complete but often continued."""
    finished_ms: float = 500
    """Needed when they don't, but the turn model hears a finished sentence."""
    plain_ms: float = 900
    """Needed otherwise."""
    broken_off_ms: float = 1400
    """Needed when the words end where no sentence ends."""
    finished_above: float = 0.6
    """Probability of the turn model that counts as finished."""
    rejoin_ms: float = 1000
    """A user who goes on within this long after a turn's last voice, before hearing an answer, continues that turn."""
    max_turn_ms: float = 22_000
    preroll_ms: float = 300
    """Audio before the onset that is recognised with it."""


@dataclass(frozen=True)
class Heard:
    """One recognition of the turn so far: audio [start, end), its words, and what they amount to."""

    start: int
    end: int
    text: str
    confidence: float = 1.0
    no_speech: float = 0.0
    complete: bool = False
    may_go_on: bool = False
    backchannel: bool = False
    finished: float | None = None
    """The turn model's probability, where it was asked."""
    recognition_ms: float = 0.0
    policy_ms: float = 0.0


_OPEN_ENDS = frozenset("""to the a an and or but my your our at of for with from by into is are was am it's i'm i'd i let's
    could can would will some any that's what's how what where when which because so if um uh erm er hmm maybe about near than
    between""".split())
_OPEN_VERBS = frozenset("set make turn find open close take bring navigate drive show tell put lower raise rear front no".split())
"""Alone they begin something."""
_OPEN_PHRASES = ("find me", "take me", "take me to", "set the temperature", "turn the temperature", "show me", "how about",
                 "set the fan", "set the volume", "i want to go", "i want", "i need", "i would like", "can you", "could you",
                 "what about", "hey venus", "venus", "tell me", "give me", "drive me", "let me", "set it", "make it")


def breaks_off(text: str) -> bool:
    """True where no request ends: a trailing function word (also one that was written as a number: "set the temperature
    to …" is heard as "to 2"), an opening phrase alone, or the recogniser's own dots."""
    text = text.strip().lower()
    if text.endswith(("...", "…", "-", "--")):
        return True
    words = re.sub(r"[^\w' ]", " ", text).split()
    if not words:
        return False
    misheard = words[-1] in ("2", "two", "too", "4", "four") and words[0] in ("set", "turn", "take", "put") and "seat" not in words
    return misheard or (len(words) == 1 and words[0] in _OPEN_VERBS) or words[-1] in _OPEN_ENDS or " ".join(words) in _OPEN_PHRASES


def is_noise(heard: Heard) -> bool:
    """Nothing that was said: no letters, a bracketed sound, or the recogniser doubts that it was speech at all."""
    words = re.sub(r"[\[(*].*?[\])*]", " ", heard.text)
    return not re.search(r"[^\W\d_]|\d", words) or (heard.no_speech > 0.6 and heard.confidence < 0.45)


def needed_silence_ms(heard: Heard, settings: EndpointSettings) -> float:
    """How much silence behind the last voice ends the turn that was heard like this."""
    if is_noise(heard) or heard.backchannel:
        return settings.finished_ms
    if heard.complete:
        return settings.may_go_on_ms if heard.may_go_on else settings.complete_ms
    if breaks_off(heard.text):
        return settings.broken_off_ms
    if heard.finished is not None and heard.finished > settings.finished_above:
        return settings.finished_ms
    return settings.plain_ms
