"""Who a message goes to and what it says: "text my brother that we're late", "跟老李说会议改到三点"."""
import re
from dataclasses import dataclass

_TITLE = r"(?:mr|mrs|ms|dr|doctor|professor|prof|uncle|aunt|auntie|grandma|grandpa|granny|sir|captain|coach|cousin|nurse|father|sister|brother)\.?"
_KIN_EN = r"(?:my|our|the|his|her|their) (?:(?:best|old|younger|older|little|big|new|step) )?[\w'-]+(?: in law|-in-law)?(?:(?<='s) \w+)?"
_START = (r"i|i'm|i'll|i've|i'd|we|we're|we'll|we've|you|you're|he|he's|she|she's|they|they're|it|it's|the|a|an|my|our|your|that|there|there's"
          r"|happy|good|thanks|thank|sorry"
          r"|please|see|don't|can|could|will|would|what|where|when|how|if|whether|to|not|no|yes|ok|okay|just|this|everything|dinner|lunch|his"
          r"|her|call|bring|come|pick|get|is|are|running")
_PERSON_EN = rf"(?:{_KIN_EN}|{_TITLE} [\w'-]+|(?!(?:{_START})\b)[\w'.-]+(?: (?!I(?:'|\b))(?-i:[A-Z])[\w'-]+)?)"
_THING = r"(?:(?:quick|short|little|new) )?(?:text message|message|text|sms|whatsapp|email|mail|line|note|dm)"
_SAY = (r"(?:[:,]? ?(?:saying(?: that)?|that says|which says|to say(?: that)?|telling (?:him|her|them)(?: that)?|and (?:say|tell (?:him|her"
        r"|them))(?: that)?|with the (?:words|text)|with|that reads)[:,]?"
        r"|[:,]? that[:,]?|[:,])")
_EN = tuple(re.compile(p, re.I) for p in (
    rf"(?:let|make sure) (?P<who>{_PERSON_EN}|.{{1,30}}?) know(?:s)?(?:{_SAY})? (?:about )?(?P<text>.+)",
    rf"(?:send|shoot|drop|write|fire off|do|get)(?: out| off)? (?:a |an |this |the )?{_THING} (?:over |out |off )?(?:to"
    rf"|for) (?P<who>{_PERSON_EN})(?:{_SAY})? (?P<text>.+)",
    rf"(?:send|shoot|drop|write|give) (?P<who>{_PERSON_EN}|.{{1,30}}?) (?:a |an |this |the ){_THING}(?:{_SAY})? (?P<text>.+)",
    rf"(?:text|message|ping|whatsapp|sms|tell|email|dm|inform|notify|drop|reply to|answer)(?: to| back)? (?P<who>{_PERSON_EN}"
    rf"|.{{1,30}}?){_SAY} ?(?P<text>.+)",
    rf"write(?: to)? (?P<who>{_PERSON_EN}){_SAY} ?(?P<text>.+)",
    rf"(?:text|message|write|ping|whatsapp|sms|tell|email|dm|inform|notify|reply to|answer|ask)(?: to| back)? (?P<who>{_PERSON_EN}) (?P<text>.+)",
    rf"(?:send|say|text|write|message)(?: a message)? (?P<text>.+) to (?P<who>{_PERSON_EN})",
    rf"send (?P<who>{_PERSON_EN}) (?P<text>(?:{_START})\b.+)",
))
_EN_WHO = tuple(re.compile(p, re.I) for p in (
    rf"(?:send|shoot|drop|write|do)(?: out| off)? (?:a |an |this |the )?{_THING} (?:over )?(?:to|for) (?P<who>{_PERSON_EN})",
    rf"(?:send|shoot|drop|write|give) (?P<who>{_PERSON_EN}) (?:a |an |this |the ){_THING}",
    rf"(?:text|message|ping|whatsapp|sms|tell|email|dm|inform|notify|reply to|let)(?: to| back)? (?P<who>{_PERSON_EN})(?: something| know)?",
))
_SURNAME = ("赵钱孙李周吴郑王冯陈蒋沈韩杨朱秦许何吕张孔曹严金魏姜谢邹苏潘葛范彭鲁韦马方俞任袁柳唐费薛雷贺倪汤罗毕郝安常于傅齐康伍余顾孟黄萧尹姚邵汪毛米戴宋庞熊纪舒屈项祝董梁杜阮蓝季贾江童"
            "颜郭梅林钟徐邱骆高夏蔡田胡凌霍万柯卢莫房丁邓洪包石崔龚程邢裴陆翁侯叶龙史陶黎温尚曾关刘欧")
_KIN_ZH = (r"(?:我|咱|我们)?(?:家)?(?:妈妈|老妈|爸爸|老爸|老婆|老公|太太|先生|媳妇儿?|哥哥|姐姐|弟弟|妹妹|大哥|大姐|儿子|女儿|爷爷|奶奶|外公|外婆|姥姥|姥爷|叔叔|阿姨|舅舅|姑姑|同事|老板|房东|领导|秘书|助理"
           r"|客户|司机|朋友|老师|医生|室友|邻居|闺蜜|女朋友|男朋友|女友|男友|经理|同学|岳父|岳母|公公|婆婆|表哥|表姐|表弟|表妹|堂哥|物业|保姆|妈|爸|哥|姐|弟|妹)")
_NAME_ZH = (rf"(?:{_KIN_ZH}|[老小阿大][㐀-鿿](?:[总哥姐])?|[{_SURNAME}](?:总|经理|老师|医生|师傅|先生|女士|小姐|太太|阿姨|叔叔?|[哥姐]|教授|律师|主任|局长|工|董|大夫|秘书|老板|队|导)"
            rf"|[{_SURNAME}][㐀-鿿]{{1,2}}?|[A-Z][a-zA-Z]+(?: [A-Z][a-zA-Z]+)?)")
_SURE_ZH = (rf"(?:{_KIN_ZH}|[{_SURNAME}](?:总|经理|老师|医生|师傅|先生|女士|小姐|太太|阿姨|叔叔?|[哥姐]|教授|律师|主任|局长|工|董|大夫|秘书|老板)|[老小阿][㐀-鿿](?:[总哥姐])?)")
"""A person whose name ends by itself, whatever follows."""
_NEXT_ZH = (r"(?=[ ,:]|我|你|您|他|她|咱|今|明|后天|会议|晚上|不|别|已|马上|快|有|让|把|到|请|记得|周|下周|下午|上午|早上|这|那|\d|[一二三四五六七八九十]点|生日|家里|车|飞机|航班|孩子"
            r"|(?<![A-Za-z])[A-Za-z]|说|讲|晚|在|没|可以|要|路上|堵车|东西|饭|开会|等)")
_SAY_ZH = r"(?:[ ,:]*(?:就说|说一?声?|告诉[他她它]们?|跟[他她]说|内容是|内容|写道|写|讲|问[他她]|问|称|告知)[ ,:]*)"
_WHAT_ZH = r"(?:短信|消息|信息|微信|语音|邮件|message|text|sms|whatsapp|话)"
_ZH = tuple(re.compile(p, re.I) for p in (
    rf"(?:给|帮我给|跟|替我给) ?(?P<who>.{{1,12}}?) ?(?:发|回|写|传|捎|留|send)(?:一?[个条封句]|[个条封]|一下)? ?{_WHAT_ZH}?{_SAY_ZH} ?(?P<text>.+)",
    rf"(?:给|帮我给|跟|替我给) ?(?P<who>.{{1,12}}?) ?(?:发|回|写|传|捎|留|send)(?:一?[个条封句]|[个条封]|一下)? ?{_WHAT_ZH}[ ,:]*(?P<text>.+)",
    rf"(?:发|send|写|回)(?:一?[个条封]|[个条封])? ?{_WHAT_ZH}? ?(?:给|告诉|跟|通知|to) ?(?P<who>{_NAME_ZH}|.{{1,12}}?){_SAY_ZH} ?(?P<text>.+)",
    rf"(?:发|send|写|回)(?:一?[个条封]|[个条封])? ?{_WHAT_ZH}? ?(?:给|告诉|跟|通知|to) ?(?P<who>{_NAME_ZH}){_NEXT_ZH}[ ,:]*(?P<text>.+)",
    rf"(?:告诉|通知|转告|跟|和|对|回复|问|text|message|tell|提醒) ?(?:一下|一声)? ?(?P<who>{_NAME_ZH}|.{{1,12}}?)(?:那边)? ?(?:说一?声?|讲一声|讲|一声|一下|that|,"
    rf"|:)[ ,:]*(?P<text>.+)",
    rf"(?:告诉|通知|转告|回复|tell|text) ?(?:一下|一声)? ?(?P<who>{_SURE_ZH})[ ,:]*(?P<text>.{{3,}})",
    rf"(?:告诉|通知|转告|回复|问|text|message|tell) ?(?:一下|一声)? ?(?P<who>{_NAME_ZH}){_NEXT_ZH}[ ,:]*(?P<text>.+)",
    rf"(?:发|send|写|回)(?:一?[个条封]|[个条封])? ?{_WHAT_ZH}? ?(?:给|告诉|跟|通知|to) ?(?P<who>[^ ,:]{{1,8}})[ ,:]+(?P<text>.+)",
    rf"(?:让|叫) ?(?P<who>{_NAME_ZH})知道[ ,:]*(?P<text>.+)",
))
_ZH_WHO = tuple(re.compile(p, re.I) for p in (
    rf"(?:给|帮我给|跟|替我给) ?(?P<who>.{{1,12}}?) ?(?:发|回|写|传|捎|留|send)(?:一?[个条封句]|[个条封]|一下)? ?{_WHAT_ZH}?",
    rf"(?:发|send|写|回)(?:一?[个条封]|[个条封])? ?{_WHAT_ZH}? ?(?:给|告诉|跟|通知|to) ?(?P<who>[^ ,:]{{1,12}})",
    rf"(?:告诉|通知|转告|跟|给|回复|text|message|tell) ?(?:一下|一声)? ?(?P<who>{_NAME_ZH}|[^ ,:]{{1,6}}?)(?:说|讲)?(?:一下|一声)?",
))
VAGUE = frozenset("someone somebody him her them it that this anyone one he she they me us 他 她 他们 她们 它 某人 谁 人 别人 一个人 那个人 那个 一下 一个 个 somewhere "
                  "something".split())


_EMPTY = re.compile(rf"(?:(?:a|the|this|my) )?{_THING}|(?:something|that|it|this|一下|一声|消息|短信|信息|微信|个?消息|条短信)", re.I)


@dataclass(frozen=True)
class Note:
    """Spans of who and of what is said; `text` is None where only the person was named."""

    who: tuple[int, int]
    text: tuple[int, int] | None


def addressed_note(text: str) -> Note | None:
    """Recipient and body of a message in `text`; None where it is none."""
    chinese = bool(re.search(r"[㐀-鿿]", text))
    order = ((_ZH, _EN), (_ZH_WHO, _EN_WHO)) if chinese else ((_EN,), (_EN_WHO,))
    for group in order[0]:
        for pattern in group:
            m = pattern.fullmatch(text)
            if m and _plausible(m["who"]) and not _EMPTY.fullmatch(m["text"].strip(" ,:")):
                return Note(_strip(text, m.span("who")), _body(text, m.span("text")))
    for group in order[1]:
        for pattern in group:
            m = pattern.fullmatch(text)
            if m and _plausible(m["who"]):
                return Note(_strip(text, m.span("who")), None)
    return None


_NO_PERSON = re.compile(r"\b(?:i|i'm|we|we're|you|he|she|they|that|is|are|will|and|message|text|me|know|about|when|how|what)\b")


def _plausible(who: str) -> bool:
    who = who.strip(" ,:").lower()
    return bool(who) and who not in VAGUE and not _NO_PERSON.search(who) and len(who.split()) <= 5


def _strip(text: str, span: tuple[int, int]) -> tuple[int, int]:
    start, end = span
    while start < end and text[start] in " ,:":
        start += 1
    while end > start and text[end - 1] in " ,:.":
        end -= 1
    return start, end


def _body(text: str, span: tuple[int, int]) -> tuple[int, int]:
    start, end = _strip(text, span)
    lead = re.match(r"(?:that|saying|to(?= (?:pick|call|bring|get|buy|come|meet|take|wait|ring|send|feed|leave|turn|open|start|be)\b)|说"
                    r"|:)[ ,:]+|and (?=(?:ask|say|tell|let|remind)\b)|说(?=[㐀-鿿])", text[start:end], re.I)
    return (start + lead.end(), end) if lead and lead.end() < end - start else (start, end)
