"""Numbers as people say them, so that no synthesiser misreads a digit: English words and Chinese numerals."""

_ONES = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
         "eighteen nineteen").split()
_TENS = "zero ten twenty thirty forty fifty sixty seventy eighty ninety".split()
_ZH = "零一二三四五六七八九"


def say_number(value: float, lang: str = "en") -> str:
    """A number in words, rounded to one decimal: 22.5 -> "twenty-two point five" / "二十二点五". |value| < 1,000,000."""
    value = round(float(value), 1)
    if not abs(value) < 1_000_000:
        raise ValueError(f"{value} can't be said: the range is -999,999 to 999,999")
    whole, tenth = divmod(round(abs(value) * 10), 10)
    if lang == "zh":
        words = _zh(whole) + (f"点{_ZH[tenth]}" if tenth else "")
        return ("负" if value < 0 else "") + words
    words = _en(whole) + (f" point {_ONES[tenth]}" if tenth else "")
    return ("minus " if value < 0 else "") + words


def _en(n: int) -> str:
    if n < 20:
        return _ONES[n]
    if n < 100:
        return _TENS[n // 10] + (f"-{_ONES[n % 10]}" if n % 10 else "")
    for size, name in ((1000, "thousand"), (100, "hundred")):
        if n >= size:
            rest = n % size
            joint = " and " if rest and rest < 100 else " "
            return f"{_en(n // size)} {name}" + (joint + _en(rest) if rest else "")
    raise AssertionError(n)


def _zh(n: int) -> str:
    if n < 10:
        return _ZH[n]
    if n < 20:
        return "十" + (_ZH[n - 10] if n > 10 else "")
    for size, name in ((10_000, "万"), (1000, "千"), (100, "百"), (10, "十")):
        if n >= size:
            rest = n % size
            gap = "零" if rest and rest < size // 10 else ""
            tail = ("一" if 10 <= rest < 20 else "") + _zh(rest) if rest else ""
            return f"{_zh(n // size)}{name}{gap}{tail}"
    raise AssertionError(n)
