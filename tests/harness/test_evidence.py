"""Evidence: only what was consumed and heard when the request opened."""
import dataclasses

import pytest

from harness import Evidence, HeardWords, UserWords

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
