"""Concepts in a text: words of both languages that mean the same for a planner (lexicon.toml), and the plain words left over."""
import re
import tomllib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

FILE = Path(__file__).with_name("lexicon.toml")
_LATIN = re.compile(r"[a-zà-ɏ]+(?:'[a-z]+)?")
_STOP = frozenset(
    "a an the to of in on at for by with from as is are was were be been am do does did i you he she we they it its me us him her them this that "
    "these those there here and or but so if then than too very please can could would will shall may might must have has had my your our their "
    "what where when who how which why not no yes just some any more it's i'm i'd i'll we're we'll let lets let's what's where's how's turn "
    "set make put switch give change adjust s t re ll d ve up down".split())
_LITTLE_HAN = frozenset("的了吗呢吧啊呀把给我你他她它们这那个一下是有在到就都也还再和跟请帮要想不没点来去上下里让对会能可以什么怎多少几哪谁两三四五六七八九十百千万半零")
_IRREGULAR = {"sent": "send", "written": "write", "wrote": "write", "driving": "drive", "drove": "drive", "took": "take",
              "found": "find", "bought": "buy",
              "booked": "book", "ate": "eat", "left": "left", "heard": "hear"}


@dataclass(frozen=True)
class Hit:
    """A concept ("#go") or a plain word's stem in text[start:end]."""

    start: int
    end: int
    name: str


def stem(word: str) -> str:
    """A crude stem: enough that "windows" meets "window" and "charging" meets "charge"."""
    word = _IRREGULAR.get(word, word).removesuffix("'s")
    for suffix, least in (("ing", 5), ("ies", 5), ("ed", 5), ("es", 6), ("s", 4)):
        if word.endswith(suffix) and len(word) >= least and not word.endswith(("ss", "us", "is")):
            word = word[:-len(suffix)] + ("y" if suffix == "ies" else "")
            break
    if len(word) > 4 and word[-1] == word[-2] and word[-1] not in "lse":
        word = word[:-1]
    return word.removesuffix("e") if len(word) > 3 else word


class Lexicon:
    """Finds concepts. Loading reads one small file; use `lexicon()`."""

    def __init__(self, path: Path = FILE):
        with open(path, "rb") as f:
            whole = tomllib.load(f)
        table = whole["concept"]
        self.latin: dict[str, set[str]] = {}
        self.han: dict[str, set[str]] = {}
        for concept, line in table.items():
            english, _, chinese = line.partition("|")
            english += "," + ",".join(p.replace("do not ", "don't ") for p in english.split(",") if "do not " in p)
            for phrase in filter(None, (p.strip() for p in english.split(","))):
                self.latin.setdefault(" ".join(stem(w) for w in phrase.split()), set()).add("#" + concept)
            for phrase in filter(None, (p.strip() for p in chinese.split(","))):
                self.han.setdefault(phrase, set()).add("#" + concept)
        for phrase in whole["skip"]["en"].split(","):
            self.latin.setdefault(" ".join(stem(w) for w in phrase.split()), set())
        for phrase in whole["skip"]["zh"].split(","):
            self.han.setdefault(phrase.strip(), set())
        self.phrases = {c: tuple(p for p, cs in (self.latin | self.han).items() if c in cs) for c in {"#" + c for c in table}}
        self._latin_longest = max(len(p.split()) for p in self.latin)
        self._han_longest = max(map(len, self.han))

    def hits(self, text: str) -> tuple[Hit, ...]:
        """Concepts by longest match, and the stems of the Latin content words that belong to none."""
        return _hits(self, text)

    def _find(self, text: str) -> list[Hit]:
        low = text.lower() if len(text.lower()) == len(text) else text
        found: list[Hit] = []
        words = [(m.start(), m.end(), stem(m.group())) for m in _LATIN.finditer(low)]
        i = 0
        while i < len(words):
            for n in range(min(self._latin_longest, len(words) - i), 0, -1):
                phrase = " ".join(w for _, _, w in words[i:i + n])
                if phrase in self.latin and (n == 1 or not re.search(r"[,.?!;:]", low[words[i][0]:words[i + n - 1][1]])):
                    found += [Hit(words[i][0], words[i + n - 1][1], c) for c in sorted(self.latin[phrase])]
                    i += n
                    break
            else:
                start, end, word = words[i]
                if low[start:end] not in _STOP and word not in _STOP and len(word) > 1:
                    found.append(Hit(start, end, word))
                i += 1
        i, loose = 0, []
        while i < len(low):
            if "㐀" <= low[i] <= "鿿":
                for n in range(min(self._han_longest, len(low) - i), 0, -1):
                    if low[i:i + n] in self.han:
                        found += [Hit(i, i + n, c) for c in sorted(self.han[low[i:i + n]])]
                        i += n - 1
                        break
                else:
                    loose.append(i)
            i += 1
        # Chinese writes no spaces: two neighbouring characters that belong to no concept are taken for a word.
        found += [Hit(a, a + 2, low[a:a + 2]) for a, b in zip(loose, loose[1:]) if b == a + 1 and not set(low[a:a + 2]) & _LITTLE_HAN]
        return sorted(found, key=lambda h: h.start)


@lru_cache(maxsize=512)
def _hits(book: Lexicon, text: str) -> tuple[Hit, ...]:
    return tuple(book._find(text))


@lru_cache(maxsize=1)
def lexicon() -> Lexicon:
    return Lexicon()
