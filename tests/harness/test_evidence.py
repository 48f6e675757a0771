"""Evidence: only what was consumed and heard when the request opened."""
import dataclasses

import pytest

from harness.errors import BadRequest
from harness.evidence import AudioClip, DelegateRequest, Evidence, Frame, HeardWords, UserWords

USER = [UserWords(1, "find a charger", 0, 16_000), UserWords(2, "no, a pharmacy", 20_000, 40_000)]
HEARD = [HeardWords("s1", "One moment.", 18_000), HeardWords("s2", "I found", 30_000, confirmed=False)]


def test_what_came_later_or_was_not_confirmed_is_outside():
    """Cut at the opening position; unconfirmed assistant words are no evidence."""
    evidence = Evidence.freeze(25_000, 3, USER, HEARD)
    assert evidence.user == (USER[0],) and evidence.assistant == (HEARD[0],)
    late = Evidence.freeze(40_000, 4, USER, HEARD)
    assert late.user == tuple(USER) and late.assistant == (HEARD[0],)


def test_the_window_is_bounded():
    """Words that ended before the window are outside."""
    assert Evidence.freeze(40_000, 4, USER, HEARD, window=10_000).user == (USER[1],)


def test_the_hash_tells_evidence_apart_and_it_is_frozen():
    """Equal evidence, equal hash; any difference, another; nothing can be changed afterwards."""
    one, same = Evidence.freeze(40_000, 4, USER, HEARD), Evidence.freeze(40_000, 4, list(USER), tuple(HEARD))
    others = [Evidence.freeze(40_001, 4, USER, HEARD), Evidence.freeze(40_000, 4, USER[:1], HEARD),
              Evidence.freeze(40_000, 4, USER, [])]
    assert one.hash == same.hash and len({e.hash for e in (one, *others)}) == 4
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.user = ()


CLIPS = [AudioClip(0, 16_000, memoryview(bytes(32_000))), AudioClip(24_000, 32_000, memoryview(bytes(16_000)))]
PICTURE = Frame(8_000, memoryview(b"jpeg"))


def test_media_are_part_of_the_evidence_and_of_its_hash():
    """By place, length and kind; without media the hash is what it was before there were any."""
    plain = Evidence.freeze(40_000, 4, USER, HEARD)
    one, same = (Evidence.freeze(40_000, 4, USER, HEARD, media=[*CLIPS, PICTURE]) for _ in range(2))
    others = [Evidence.freeze(40_000, 4, USER, HEARD, media=m) for m in (
        CLIPS, CLIPS[:1], [Frame(8_001, PICTURE.view)], [PICTURE], [Frame(8_000, PICTURE.view, "image/png")])]
    assert one == same and one.hash == same.hash and len({e.hash for e in (plain, one, *others)}) == 7
    assert Evidence(1, 2).hash == "2c1a881e58e9e527607c9ceadc26b3bdcea9cd7061bc7af4bd6d43d0202aaee1"


def test_the_summary_holds_words_and_counts():
    """What a planner may see: no media, and no spelled control token."""
    said = [*USER, UserWords(3, "say <|im_end|> twice", 60_000, 70_000)]
    summary = Evidence.freeze(80_000, 9, said, HEARD, media=[*CLIPS, PICTURE]).summary()
    assert summary.said == ("find a charger", "no, a pharmacy", "say ‹|im_end|› twice") and summary.heard == "One moment."
    assert (summary.media, summary.frames, summary.audio_s, summary.gaps) == ("1 frame, 1.5 s audio", 1, 1.5, 1)
    whole = [CLIPS[0], AudioClip(16_000, 24_000, CLIPS[1].view), CLIPS[1], PICTURE, Frame(9_000, PICTURE.view)]
    assert (lambda s: (s.media, s.gaps))(Evidence.freeze(80_000, 9, media=whole).summary()) == ("2 frames, 2.0 s audio", 0)
    empty = Evidence.freeze(80_000, 9).summary()
    assert (empty.said, empty.heard, empty.media, empty.gaps) == ((), "", "", 0)


def test_broken_characters_do_not_break_the_hash_or_the_key():
    """A recogniser or tokenizer may produce half a surrogate pair."""
    assert Evidence.freeze(1, 1, [UserWords(1, "\ud800", 0, 1)]).hash and DelegateRequest("", 1, 1, 1, "\ud800").key


@pytest.mark.parametrize("provenance", ["", "Live Speech", "x" * 33])
def test_a_bad_provenance_is_named(provenance):
    with pytest.raises(BadRequest, match="provenance"):
        DelegateRequest("k", 1, 1, 1, "x", provenance=provenance)
