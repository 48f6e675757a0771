"""Whether a name or phrase was heard, judged by its sound: an American voice says French names, the recogniser spells its guess.

"Boulevard des Moulins" comes back as "boulevard day moolans". Both are turned into phonemes (hibari's grapheme-to-phoneme
rules, the same that the voice reads with) and compared by rapidfuzz's partial ratio, twice: with near sounds made equal, and
with all vowels made equal. The mean is the score. THRESHOLD was set on 200 sentences with 250 names of Monaco, synthesised
and recognised by the models of the product (tests/simulators/phonetic_pairs.json): 2.4 % of names that were said are missed
and 0.3 % of names that were not said are found. Short phrases are easily found by chance, so they need more.
"""
import re
from functools import cache, lru_cache

from hibari.g2p import G2P
from rapidfuzz import fuzz

THRESHOLD = 76.0
"""Score (0-100) from which a phrase counts as heard."""
SHORT_THRESHOLD = 84.0
"""The same for phrases of fewer than SHORT phonemes."""
SHORT = 8

_NEAR_VOWELS = {"iɪIAeɛ": "i", "æaɑ": "a", "əʌɐɜᵊᵻ": "ə", "uʊOQoɔWY": "o"}
_VOWEL = {sound: group for sounds, group in _NEAR_VOWELS.items() for sound in sounds}
_CONSONANT = {"z": "s", "ʒ": "ʃ", "ʤ": "ʃ", "ʧ": "ʃ", "d": "t", "ð": "t", "θ": "t", "T": "t", "ɾ": "t", "b": "p", "v": "f",
              "ɡ": "k", "g": "k", "ŋ": "n", "m": "m"}
_UNITS = [(r"km\s*/\s*h|kph|kmh", " kilometers per hour"), (r"km", " kilometers"), (r"kw", " kilowatts"), (r"min", " minutes"),
          (r"m", " meters"), (r"°\s*c\b|℃", " degrees"), (r"°", " degrees"), (r"%", " percent")]
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split()
_ROMAN = {"II": 2, "III": 3, "IV": 4, "VI": 6, "VII": 7, "VIII": 8, "IX": 9, "XI": 11, "XII": 12}


@cache
def _g2p() -> G2P:
    return G2P()


def _ordinal(number: int, otherwise: str) -> str:
    return _ORDINALS[number - 1] if 1 <= number <= len(_ORDINALS) else otherwise


def normalise(text: str) -> str:
    """One spelling for what is said alike: units and ordinals in words, "St." as saint, roman numerals after a name.

    Cardinal numbers stay as they are: the phoneme rules read digits and words alike.
    """
    text = text.replace("’", "'").replace("&", " and ")
    text = re.sub(r"\b(St|Ste)\b\.?(?=\s*-?[A-Z])", "Saint", text)
    text = re.sub(r"(?<=\w)(\s+|-)(VIII|VII|III|XII|II|IV|VI|IX|XI)\b",
                  lambda m: " the " + _ordinal(_ROMAN[m[2]], m[2]), text)
    text = re.sub(r"\b(?:the\s+)?(\d+)(?:st|nd|rd|th)\b", lambda m: "the " + _ordinal(int(m[1]), m[0]), text)
    text = re.sub(r"\b(\d+)(?:er|ère|re|r)\b", lambda m: "the " + _ordinal(int(m[1]), m[0]), text)
    for pattern, words in _UNITS:
        text = re.sub(rf"(?<=\d)\s*(?:{pattern})(?!\w)", words, text, flags=re.IGNORECASE)
    return re.sub(r"\s+", " ", text).strip()


@lru_cache(maxsize=4096)
def phonemes(text: str) -> str:
    """The sounds of `text` in the voice's alphabet, without stress, pauses and word boundaries."""
    text = normalise(text)
    return re.sub(r"[\Wˈˌː]", "", _g2p()(text)) if re.search(r"\w", text) else ""


def _near(sounds: str) -> str:
    return "".join(_VOWEL.get(s, _CONSONANT.get(s, s)) for s in sounds)


def _skeleton(sounds: str) -> str:
    return "".join("a" if s in _VOWEL else _CONSONANT.get(s, s) for s in sounds)


def _partial(wanted: str, heard: str) -> float:
    # The shorter string is slid over the longer one, so text shorter than the phrase must not be found inside the phrase.
    return fuzz.partial_ratio(wanted, heard.ljust(len(wanted)))


def score(phrase: str, heard: str) -> float:
    """0-100: how well the sounds of `phrase` are found somewhere in `heard`; 100 when its very words are there."""
    if _words(phrase) and f" {_words(phrase)} " in f" {_words(heard)} ":
        return 100.0
    wanted, sounds = phonemes(phrase), phonemes(heard)
    if not wanted or not sounds:
        return 0.0
    return (_partial(_near(wanted), _near(sounds)) + _partial(_skeleton(wanted), _skeleton(sounds))) / 2


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", normalise(text).casefold()))


def threshold(phrase: str) -> float:
    return SHORT_THRESHOLD if len(phonemes(phrase)) < SHORT else THRESHOLD


def heard_phrase(phrase: str, heard: str) -> bool:
    """Whether `phrase` was heard in `heard`, by its sound."""
    return score(phrase, heard) >= threshold(phrase)


def same_sentence(a: str, b: str) -> bool:
    """Whether two recognised sentences are the same words said twice; small slips of the recogniser don't matter."""
    return fuzz.ratio(_near(phonemes(a)), _near(phonemes(b))) >= 90
