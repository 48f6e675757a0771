"""User speech over the assistant's: does the user take the floor, or only signal that they listen? Replaceable: `OverlapJudge.judge`.

Measured on synthetic voices in road noise: backchannels last 0.24 to 0.68 s, interruptions 0.5 to 2 s, and no spectral shape
tells a hummed "mm-hmm" from "no" or "never". The recogniser, given a hum, writes any short word, but hardly ever one that
opens an interruption. So an opening word decides early (partial recognitions from a fifth of a second on), length decides
late, and short speech takes the floor only with positive evidence: a request, a stop word, or four clear words.
"""
import re
from dataclasses import dataclass

from cloud_core.cascade.endpoint import Heard, is_noise
from cloud_core.cascade.words import is_ghost, normalise
from cloud_core.front_end import Verdict

_STOP = re.compile(r"^(?:stop|start|no|wait|way|hold on|cancel|quiet|be quiet|shut up|enough|actually|never ?mind|never|forget|hang on|excuse me|venus|hey venus)\b")
_PLAIN_STOP = re.compile(r"^(?:stop|wait|hold on|hang on|shut up|be quiet)\b")
"""What a hum was never heard as."""
_OPENING = re.compile(r"^(?:set|turn|open|close|take me|take us|find|make it|what (?!is\b)\w+|where|how|when|is there|are there|navigate|drive"
                      r"|can you|could you|please|show|tell me|go to|lock|unlock|i want|i need|i meant|not)\b")


@dataclass(frozen=True)
class OverlapSettings:
    """Milliseconds of voice, but for `settle_ms` (silence) and `decide_ms` (since the onset)."""

    partial_ms: float = 160
    """Voice after which the first partial recognition starts; the next ones follow while nothing is decided."""
    partials: int = 4
    long_ms: float = 720
    """Voice longer than this takes the floor."""
    hum_ms: float = 820
    """The same where the words began as a backchannel."""
    settle_ms: float = 96
    """Silence behind short speech before its words count."""
    decide_ms: float = 1300
    """At the latest; by then silence restores and speech flushes."""
    stop_confidence: float = 0.08
    opening_confidence: float = 0.08
    clear_confidence: float = 0.45
    words_per_s: float = 7.0
    """Nobody speaks faster: more words than that in a short sound are the recogniser's, not the user's."""
    doubtful_confidence: float = 0.3
    """A "no …" below this may be a hum ("mm-hmm" over the assistant's own echo is heard as "No." or "No more" at 0.03 to 0.23)."""
    doubtful_ms: float = 450
    """It counts all the same when the voice has gone on for that long: what is left of a hum never does."""


@dataclass(frozen=True)
class OverlapView:
    """What is known so far of one stretch of user speech over the assistant's."""

    elapsed_ms: float
    voiced_ms: float
    silence_ms: float
    partial: Heard | None = None
    """The newest partial recognition."""
    final: Heard | None = None
    """Recognition of the whole stretch, from a moment of silence on."""
    acts: bool = False
    """The final words are a request or a stop."""


class OverlapJudge:
    """Stateless: asked at every unit until it answers."""

    def __init__(self, settings: OverlapSettings = OverlapSettings()):
        self.settings = settings

    def judge(self, view: OverlapView) -> tuple[Verdict, str] | None:
        s, final, partial = self.settings, view.final, view.partial
        if final is not None and view.silence_ms >= s.settle_ms:
            return self._words(final, view)
        if partial is not None and not is_noise(partial):
            words = normalise(partial.text)
            if self._stops(words, partial.confidence, view):
                return Verdict.FLUSH, "stop"
            if _OPENING.match(words) and partial.confidence >= s.opening_confidence:
                return Verdict.FLUSH, "interruption"
            if partial.backchannel and view.silence_ms >= s.settle_ms:
                return Verdict.RESTORE, "backchannel"
        if view.voiced_ms >= (s.hum_ms if partial is not None and partial.backchannel else s.long_ms):
            return Verdict.FLUSH, "interruption"
        if view.elapsed_ms >= s.decide_ms:
            return (Verdict.RESTORE, "noise") if view.silence_ms >= s.settle_ms else (Verdict.FLUSH, "interruption")
        return None

    def _stops(self, words: str, confidence: float, view: OverlapView) -> bool:
        if not _STOP.match(words):
            return False
        if _PLAIN_STOP.match(words):
            return confidence >= self.settings.stop_confidence
        return confidence >= self.settings.doubtful_confidence or view.voiced_ms >= self.settings.doubtful_ms

    def _words(self, final: Heard, view: OverlapView) -> tuple[Verdict, str]:
        s, words = self.settings, normalise(final.text)
        if final.backchannel:
            return Verdict.RESTORE, "backchannel"
        if is_noise(final) or is_ghost(final.text):
            return Verdict.RESTORE, "noise"
        if self._stops(words, final.confidence, view):
            return Verdict.FLUSH, "stop"
        if len(words.split()) > s.words_per_s * max(view.voiced_ms, 200) / 1e3:
            return Verdict.RESTORE, "short"
        if view.acts or (len(words.split()) >= 4 and final.confidence >= s.clear_confidence):
            return Verdict.FLUSH, "interruption"
        return Verdict.RESTORE, "short"
