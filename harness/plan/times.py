"""Dates and times as people say them: where they stand in a sentence, and whether they name a day, an hour or a span.

The words are kept as spoken; nothing is resolved against a calendar.
"""
import re
from dataclasses import dataclass

DAY, HOUR, SPAN = "day", "hour", "span"

_N = (r"(?:\d{1,4}|(?:twenty|thirty|forty|fifty)(?:[ -](?:one|two|three|four|five|six|seven|eight|nine))?|zero|one|two|three|four|five|six"
      r"|seven|eight"
      r"|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen|sixty|ninety|an?|a couple of|a few|half an?)")
_H = r"(?:1[0-9]|2[0-4]|0?[0-9]|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)"
_M = (r"(?:[0-5][0-9]|oh[ -](?:one|two|three|four|five|six|seven|eight|nine)|(?:twenty|thirty|forty|fifty)(?:[ -](?:one|two|three|four|five|six"
      r"|seven|eight|nine))?"
      r"|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen)")
_ORD = (r"(?:\d{1,2}(?:st|nd|rd|th)|first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth|thirteenth|fourteenth|fifteenth"
        r"|sixteenth|seventeenth|eighteenth|nineteenth|twentieth|thirtieth|(?:twenty|thirty)[ -](?:first|second|third|fourth|fifth|sixth"
        r"|seventh|eighth|ninth))")
_MONTH = r"(?:january|february|march|april|may|june|july|august|september|october|november|december)"
_WEEKDAY = r"(?:mondays?|tuesdays?|wednesdays?|thursdays?|fridays?|saturdays?|sundays?)"
_PART = r"(?:morning|afternoon|evening|night|lunchtime|noon|midday)"
_DAY_EN = (rf"(?:(?:the )?day after tomorrow|tomorrow|today|tonight|yesterday"
           rf"|(?:this|next|coming|last|every|the following) (?:{_WEEKDAY}|weekend|week|month|year|day)"
           rf"|a week (?:on|from) {_WEEKDAY}|{_WEEKDAY} week|(?:in )?{_N} (?:days?|weeks?|months?)(?: from (?:now|today)| time)?"
           rf"|{_WEEKDAY},? (?:the )?{_ORD}(?: of {_MONTH})?|{_WEEKDAY}"
           rf"|(?:the )?{_ORD} of (?:{_MONTH}|next month|this month)|(?:the )?{_ORD} {_MONTH}|{_MONTH} (?:the )?(?:{_ORD}|\d{{1,2}}(?! ?:))"
           rf"|\d{{1,2}} {_MONTH}|the {_ORD}(?= |$)(?! (?:one|of|floor|exit|time|turn|street|avenue|option|place|restaurant|hotel))"
           rf"|(?:christmas|new year'?s?|easter|valentine'?s)(?: eve| day)?|(?:the |this |next )?weekend)")
_PARTDAY_EN = rf"(?:(?:in )?the {_PART}|this {_PART}|at night|at (?:noon|midday|midnight|lunchtime)|first thing(?: in the morning)?)"
_HOUR_EN = (rf"(?:half past {_H}|(?:a )?quarter (?:past|to) {_H}|{_M} (?:minutes )?(?:past|to) {_H}|(?:five|ten|twenty) (?:past|to) {_H}"
            rf"|{_H} ?o'?clock|{_H}(?:[:.]| )?{_M}? ?(?:a\.?m\.?|p\.?m\.?)(?![a-z])|\d{{1,2}}[:.][0-5]\d|{_H} {_M}(?! ?(?:degrees|percent"
            rf"|minutes|hours|people|per cent|%))|noon|midday|midnight)"
            rf"(?: sharp)?(?: in the (?:{_PART})| at night)?")
_BARE_EN = (rf"{_H}(?: in the (?:{_PART})| at night)?(?! ?(?:degrees?|percent|per cent|%|people|persons?|guests?|of us|minutes?|hours?"
            rf"|days?|weeks?|seconds?|kilomet\w+|met\w+"
            rf"|miles?|euros?|dollars?|avenue|rue|street|bottles?|and a half|point|hundred|thousand|[a-z]*teen\b|\d))")
_SPAN_EN = (rf"(?:in|after|within) (?:about |around )?(?:{_N}(?: and a half)?|{_N} {_N}) ?(?:seconds?|minutes?|mins?|hours?|days?|weeks?"
            rf"|months?|quarters? of an hour)(?: and a half)?(?: (?:and )?{_N} minutes?)?(?: from now|'? time)?"
            rf"|in (?:three quarters of an hour|a while|a bit|a moment)"
            rf"|{_N} (?:minutes?|hours?|days?|weeks?) (?:from now|before [a-z' ]+)|an hour from now|half an hour from now"
            rf"|(?:when|once|as soon as|before|after) (?:i|we|you|they|he|she)(?:'m|'re| am| are|'ve)? (?:get|arrive|arrived|reach|leave|left"
            rf"|land|park|come|am|are|go|start|stop|back|home|finish|done)[a-z' ]*?(?= (?:to|that|remind)\b|$|,)"
            rf"|(?:before|after) (?:lunch|dinner|breakfast|work|school|noon|midnight|the meeting)|later(?: today| on| tonight)?"
            rf"|every (?:day|morning|evening|night|week|hour|month|{_WEEKDAY})")
_CN = r"(?:\d+|[零〇一二两三四五六七八九十百]+)"
_ZH_WEEK = r"(?:下下|(?<!一)下|这|本|上)?(?:个)?(?:周|星期|礼拜)[一二三四五六日天末]"
_ZH_PART = r"(?:凌晨|清晨|一大早|一早|大清早|早上|早晨|上午|中午|正午|下午|傍晚|晚上|夜里|半夜|晚间|午后)"
_ZH_DAY = (rf"(?:大后天|后天|明天|今天|昨天|明日|今日|明儿|今儿|后儿|{_ZH_WEEK}|周末|下下周|(?<!一)下周|这周|本周|(?:下|这|本)个?(?:星期|礼拜|月)|(?:下|这|本)个?周末"
           rf"|(?:下个?月|这个?月|本月|{_CN}月){_CN}(?:号|日)|{_CN}月(?!{_CN})(?:初|底|中旬)?|{_CN}(?:号|日)(?!线|楼|店|门|院|桌|公路|航站)|圣诞节?|元旦|春节|除夕|国庆节?|中秋节?|情人节|平安夜|每天)")
_ZH_TODAY = r"(?:今晚|明晚|后晚|今早|明早|当晚|今夜)"
_ZH_MINUTES = r"(?:[零过][一二三四五六七八九]分?|过?(?:[二三四五]?十[一二三四五六七八九]?|[0-5]\d)分?(?![个位人名口]))"
_ZH_HOUR = (rf"(?:{_CN}点(?:半|钟|整|{_CN}分|[一三]刻|{_ZH_MINUTES})?(?![零-鿿]?(?:儿|些))|\d{{1,2}}[:：]\d{{2}}"
            rf"|中午十二点|正午|零点|差{_CN}分{_CN}点)")
_ZH_SPAN = (rf"(?:过|再过)(?:{_CN}个?半?|半个?|几)(?:分钟|小时|个小时|个钟头|钟头|天|个星期|星期|周|个礼拜|个月|刻钟)(?:之后|以后|后)?|(?:{_CN}个?半?|半个?|几)(?:分钟|小时|个小时|个钟头|钟头|天|个星期|星期"
            rf"|周|个礼拜|个月|刻钟)(?:半)?(?:钟)?(?:之后|以后|后|过后)"
            rf"|(?:等?(?:我们?|他|她|大家)?(?:到|回)[^\s，,。提叫]{{0,6}}?(?:的时候|之后|以后|后|时))|(?:下班|放学|吃完饭|出门|下车|上车|会议|开会|午饭|晚饭)(?:之?后|以后|的时候|之?前|以前)|待会儿?"
            rf"|等会儿?|一会儿?后?|等一下|过一会儿?|每(?:天|周|个?月)(?:{_ZH_PART})?(?:{_ZH_HOUR})?")

_KINDS = (
    (SPAN, _SPAN_EN), (HOUR, _HOUR_EN), (DAY, rf"{_DAY_EN}(?: (?:{_PART}))?"), (DAY, _PARTDAY_EN),
    (SPAN, _ZH_SPAN), (DAY, _ZH_TODAY), (DAY, _ZH_DAY), (HOUR, rf"(?:{_ZH_PART})?{_ZH_HOUR}"), (DAY, _ZH_PART),
)
# English words end at letters; Chinese ones stand anywhere. The first kind that matches a place keeps it.
_PATTERNS = tuple((kind, re.compile(rf"(?<![a-z])(?:{p})(?![a-z])" if k < 4 else p)) for k, (kind, p) in enumerate(_KINDS))
_BARE = re.compile(rf"(?<![a-z0-9])(?:(?P<lead>at|by|around|about|until|till|from|to|near) )?(?P<hour>{_BARE_EN})(?![a-z0-9])")
_LEAD = re.compile(r"(?:(?:at|on|for|by|around|about|from|until|till|这个?|在|于) ?|(?:at )?(?:about|around) )$")


@dataclass(frozen=True)
class Time:
    """A date or time in text[start:end]; `outer` is where its preposition starts."""

    start: int
    end: int
    kind: str
    outer: int

    def of(self, text: str) -> str:
        return text[self.start:self.end]


def times_said(text: str, bare_hours: bool = False) -> list[Time]:
    """Every day, hour and span of `text` in order, not overlapping. `bare_hours`: "at eight" and "for eight" are hours too."""
    low = text.lower() if len(text.lower()) == len(text) else text
    taken: list[Time] = []
    for kind, pattern in _PATTERNS:
        for m in pattern.finditer(low):
            start, end = m.span()
            if end > start and not any(start < t.end and t.start < end for t in taken):
                taken.append(_time(low, start, end, kind))
    if bare_hours:
        for m in _BARE.finditer(low):
            start, end = m.span("hour")
            if m["lead"] in (None, "to", "from", "near") and not re.search(r" in the | at night", m["hour"]):
                continue
            if not any(start < t.end and t.start < end for t in taken):
                taken.append(Time(start, end, HOUR, m.start()))
    return sorted(taken, key=lambda t: t.start)


def _time(text: str, start: int, end: int, kind: str) -> Time:
    said = text[start:end]
    cut = re.match(r"(?:at |on )(?=noon|midday|midnight|night|lunchtime)", said)
    outer = start
    if cut and "night" != said[cut.end():]:
        start += cut.end()
    lead = _LEAD.search(text[:outer])
    if lead and not re.search(r"[a-z]$", text[:lead.start()]):
        outer = lead.start()
    return Time(start, end, kind, outer)
