"""What the user answered to a yes/no question of ours: yes, no, or something else.

Only an utterance that is nothing but an answer counts. "No, take me to the port" is a request and "yes, but is it open?" a
question: both give None and go to the planner. Directives beat particles: to "Shall I stop?" both "no, stop it" and "yes" mean
stop, and both "yes, keep going" and "no" mean go on. Of two particles the last counts ("嗯，不用了", "yeah, no").
"""
import re
from typing import Literal

_EN = {
    "yes": """yes|yeah|yea|yep|yup|yes sir|sure|sure thing|ok|okay|of course|certainly|absolutely|definitely|right|correct|exactly
        |alright|all right|fine|fine by me|fine with me|that is fine|that is ok|that is right|that is correct|go ahead|please do|do it|do that
        |do so|mhm|mm hmm|mm hm|mmhm|mmhmm|uh huh|uhhuh|aha|why not|sounds good|that would be great|that would be nice|i think so|i guess so
        |i do|i would|you can|you may|you should|by all means|affirmative|indeed|perfect|great|good|good idea|i agree|agreed|it is""",
    "no": """no|nope|nah|no way|not now|not yet|not really|not at all|no need|no need to|there is no need|no thanks|no thank you|never|negative
        |do not|please do not|do not do that|do not do it|i do not|i do not think so|i would rather not|rather not|better not|you should not
        |do not bother|uh uh|nuh uh|i do not want that|i do not want to|not necessary|that is not necessary|it is not""",
    "stop": """stop|stop it|stop that|stop this|stop now|stop working|stop working on it|stop looking|stop searching|stop trying|you can stop
        |cancel|cancel it|cancel that|cancel this|quit|quit it|end it|abort|abort it|give up|give it up|no more|enough|that is enough
        |that will do|leave it|drop it|forget it|forget that|forget about it|never mind|nevermind|do not go on|do not continue
        |do not keep going|do not carry on|do not bother any more""",
    "go_on": """go on|go on with it|go on with that|keep going|keep on|keep at it|keep trying|keep looking|keep searching|keep working
        |keep working on it|keep waiting|continue|carry on|proceed|do not stop|do not cancel|do not cancel it|do not give up|i will wait
        |i can wait|take your time|finish it|let it run|no rush|no hurry|there is no hurry|there is no rush|a bit longer|a little longer
        |wait a bit longer|wait a little longer|do not stop it|no need to stop|do not quit""",
    "filler": """please|thanks|thank you|thank you very much|thanks a lot|well|oh|ah|um|uh|er|erm|hm|hmm|so|then|now|just|for now|for me|venus|hey
        |actually|i think|i guess|i mean|sorry|with it|with that|with this|it|that|this|would you|will you|could you|can you|if you can
        |let us|i want you to|i would like you to|you could|and|indeed|very much|really|right now|again|a bit|on it""",
    "unsure": """maybe|perhaps|i do not know|do not know|not sure|i am not sure|i do not care|do not care|whatever|either way|up to you
        |it is up to you|no idea|i have no idea""",
}
_ZH = {
    "yes": """是|是的|是啊|对|对的|对啊|对对|对对对|好|好的|好啊|好吧|好呀|好嘞|好好|行|行吧|行啊|可以|可以的|可以啊|没问题|当然|当然可以|当然要|嗯|嗯嗯|嗯哼
        |要|要的|要啊|需要|同意|没错|成|确定|确认|那好|那行|必须的|想|想要|愿意""",
    "no": """不|不是|不是的|不要|不要了|不用|不用了|不必|不必了|不需要|不需要了|不行|不可以|不好|不对|别|先不用|先不要|不想|不想要|不了|否|不同意|没必要|没有必要
        |不太想|暂时不用|暂时不要|用不着""",
    "stop": """停|停吧|停下|停下来|停下来吧|停了|停了吧|停止|停止吧|停一下|停掉|停掉吧|别继续|别继续了|不要继续|不要继续了|不用继续|不用继续了|不继续了|不继续
        |取消|取消吧|取消掉|算了|算了吧|够了|别找了|不找了|不用找了|别查了|不查了|不用查了|别弄了|不弄了|不等了|不用等了|别等了|不用管了|别管了
        |放弃|放弃吧|结束|结束吧|到此为止""",
    "go_on": """继续|继续吧|继续找|继续查|继续做|继续弄|继续等|接着|接着来|接着做|接着找|接着查|接着弄|别停|别停下|别停下来|不要停|不要停下|不要停下来|不用停
        |不用停下来|先别停|不停|别取消|不要取消|不用取消|别放弃|不要放弃|等等吧|再等等|再等一下|再等一会|再等一会儿|再等会儿|我等|我等着|我可以等
        |慢慢来|不着急|不急|别着急""",
    "filler": """请|请你|请您|谢谢|谢谢你|谢谢您|谢了|呃|额|啊|哦|噢|喔|那|那就|就|吧|呀|嘛|了|的|你|您|我|先|还是|帮我|麻烦|麻烦你|麻烦您|麻烦你了|给我|啦|哈
        |唉|哎|诶|它|这个|那个|也|我觉得|我想|我说|没事|没关系|一下|现在""",
    "unsure": "不知道|不确定|不清楚|不好说|随便|随便你|随你|都行|都可以|无所谓|也许|可能|看情况|再说",
}
_MOST_UNITS = 16
"""Longer utterances are more than an answer."""


def _table(groups: dict[str, str], key) -> dict:
    return {key(phrase): meaning for meaning, phrases in groups.items() for phrase in (p.strip() for p in phrases.split("|"))}


_EN_TABLE = _table(_EN, lambda phrase: tuple(phrase.split()))
_ZH_TABLE = _table(_ZH, lambda phrase: phrase)
_EN_LONGEST, _ZH_LONGEST = max(map(len, _EN_TABLE)), max(map(len, _ZH_TABLE))
_HUMS = {("mm",), ("mmm",), ("en",), ("n",), ("ng",)}
"""How a recogniser of Chinese writes 嗯, which is a yes; in English the same sound says nothing."""
_TRADITIONAL = str.maketrans("對沒問題當嗎繼續謝麼時間還後來給覺說這個幫煩請確認結棄認為無謂隨過會兒為與別應該著", "对没问题当吗继续谢么时间还后来给觉说这个帮烦请确认结弃认为无谓随过会儿为与别应该着")
_OPEN = ((r"[’‘`]", "'"), (r"\b(do|does|should|would|could|is|are|was)n't\b", r"\1 not"), (r"\bdont\b", "do not"),
         (r"\b(?:can't|cannot)\b", "can not"),
         (r"\b(it|that|there)'s\b", r"\1 is"), (r"\b(i)'m\b", r"\1 am"), (r"\b(i|you|that)'ll\b", r"\1 will"),
         (r"\b(i|you)'d\b", r"\1 would"), (r"\blet's\b", "let us"), (r"\bo\.\s?k\.?(?=\W|$)", "ok"), (r"(?<=[a-z])-(?=[a-z])", " "))
_UNITS = re.compile(r"[一-鿿]+|[a-z0-9']+(?: +[a-z0-9']+)*")


def yes_no(text: str, lang: str, *, yes_means: Literal["go_on", "stop"] = "go_on", topic: str = "") -> bool | None:
    """True for yes, False for no, None for anything that isn't just an answer, in English, Chinese or a mixture.

    `lang`: the language the user speaks. `yes_means`: what a yes to this question does, so that "stop it" and "go on" have their
    sense. `topic`: what the question was about; its words may be in the answer ("go on with the chargers").
    """
    plain = text.lower().translate(_TRADITIONAL).strip()
    if plain.endswith(("?", "？", "吗", "呢")):
        return None
    for pattern, opened in _OPEN:
        plain = re.sub(pattern, opened, plain)
    about = topic.lower()
    meanings: list[str] = []
    for run in _UNITS.findall(plain):
        read = _english(tuple(run.split()), lang, about) if run.isascii() else _chinese(run, about)
        if read is None or len(meanings) + len(read) > _MOST_UNITS:
            return None
        meanings += read
    if "unsure" in meanings:
        return None
    wishes = [m for m in meanings if m in ("stop", "go_on")]
    if wishes:
        return wishes[-1] == yes_means
    particles = [m for m in meanings if m in ("yes", "no")]
    return particles[-1] == "yes" if particles else None


def _english(words: tuple[str, ...], lang: str, about: str) -> list[str] | None:
    """The meanings of the phrases that these words are made of; None where a word belongs to none."""
    known, at, found = set(re.findall(r"[a-z0-9']+", about)) | ({"with", "on", "about", "the", "for"} if about else set()), 0, []
    while at < len(words):
        for size in range(min(_EN_LONGEST, len(words) - at), 0, -1):
            phrase = words[at:at + size]
            meaning = _EN_TABLE.get(phrase) or ("yes" if lang == "zh" and phrase in _HUMS else None)
            if meaning:
                found.append(meaning)
                at += size
                break
        else:
            if words[at] not in known:
                return None
            at += 1
    return found


def _chinese(run: str, about: str) -> list[str] | None:
    """The same for a run of Chinese characters."""
    at, found = 0, []
    while at < len(run):
        for size in range(min(_ZH_LONGEST, len(run) - at), 0, -1):
            meaning = _ZH_TABLE.get(run[at:at + size])
            if meaning:
                found.append(meaning)
                at += size
                break
        else:
            if not about or run[at] not in about:
                return None
            at += 1
    return found
