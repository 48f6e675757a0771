"""What kind of sentence it is: a command, a question, a wish, a complaint, a statement, or a fragment without a verb.

Statements are what people say to each other; the other kinds are what they say to an assistant.
"""
import re

from harness.plan import scales
from harness.plan.text import asked, has_han, is_question

COMMAND, QUESTION, WISH, COMPLAINT, STATEMENT, FRAGMENT = "command", "question", "wish", "complaint", "statement", "fragment"
_VERBS = frozenset("""
    take bring get drive go navigate head route guide find search look show locate set put turn switch make raise lower increase decrease reduce
    open close shut lock unlock start stop play call ring phone dial text message send write tell let remind note jot add book reserve check
    track cancel end charge limit heat cool warm crank bump roll wind pop crack read give keep kill mute plan compare draft research summarise
    summarize prepare compose organise organize explain translate describe recommend suggest list calculate help try use change move adjust drop
    skip repeat continue resume pause leave lift release secure blast fill connect put pull push bring tune stick throw fetch pick grab record
    carry punch whisk steer nip pop swing hunt dig track sort scribble chase figure draw resume tap key direct speed knock ease fire queue pipe
    stream spin shout fill top clear exit arrange order scan tone swap grant allow shift flick dim brighten hook pass hand name rank outline
    save wake alert nudge ping inform notify reply shoot look""".split())
_WISH = re.compile(
    r"^(?:i|we)(?:'d| would| really| just)* (?:want|need|like|love|wanna|gotta|fancy|prefer|appreciate|wish to|could (?:do|use)|have to|must"
    r"|feel like|(?:'m|am|'re|are) (?:looking|after|searching|going to need|in the mood|out of|low on|running|hungry|thirsty|starving)"
    r"|'ve got to|have got to|got to|should like)\b"
    r"|^(?:i'm|i am|we're|we are) (?:looking|after|searching|in the mood|out of|low on|running low|hungry|thirsty|starving|going to)\b|^(?:can"
    r"|could|may) (?:i|we|you)\b|^let's\b|^let\b|^how about\b|^(?:could|can) it be\b|\b(?:can|may|could) (?:go|come)\b|^what about\b|^time to\b"
    r"|^time for\b|\b(?:would|'d) like\b|\b(?:should|can|could|needs? to|has to|have to) be (?:(?:at|on|set to) |\w+(?:ed|ped)\b|open|shut|on\b"
    r"|off\b|warmer|cooler|louder|quieter)|^(?:please|kindly)\b"
    r"|^(?:我|我们|咱们?)(?:想|要|需要|得|就要)|^(?:想|要|来|给|帮|请|让|把|别忘)", re.I)
_SUBJECT = re.compile(
    r"^(?:(?:and|but|so|because|well|oh|yeah|yes|no|then|now|also)[ ,]+)*(?:(?:i|we|he|she|they|it|you|this|that|there|these|those|who)(?:'s"
    r"|'re|'m|'ve|'ll|'d|)\b"
    r"|(?:the|a|an|my|our|his|her|their|your|more|most|some|many|all|every|another|no|two|three|four|five|both)\b(?: [\w'-]+){1,5}? (?:is|are"
    r"|was|were|has|have|had|will|would|can|could|should|might|may|says?|said|goes|went|gets?|got|looks?|comes?|came|does|did|doesn't|didn't"
    r"|isn't|aren't|wasn't|won't|opens|closes|starts?|rose|fell|recommend\w*|met|announced?|found|show\w*|needs?|wants?|likes?|thinks?|leaves"
    r"|starts|begins|drops?|rises|falls|plays|runs|takes|turns|stands|seems|sounds|costs|ends|happens|works|departs|knows?"
    r"|loves?)\b"
    r"|[\w'-]+(?: [\w'-]+){0,3}? (?:is|are|was|were|has been|have been|(?:has|have) \w+ed|will be|says|said|announced)\b)", re.I)
_HAN_COMMAND = re.compile(r"打开|关|开|调|设|找|查|搜|放|播|打|拨|发|告诉|通知|给|跟|记|提醒|订|预订|预约|导航|带|去|锁|解锁|取消|停|写|比较|总结|规划|做|升|降|加|减|听|看看|充")
_HAN_STATEMENT = re.compile(r"^(?:他|她|他们|她们|它|人家|这|那|大家|今天|昨天|刚才|刚刚|据|本|该|目前|昨晚|前天|上次).*(?:了|过|着|的|呢|啊)$|^[^ ]{1,4}(?:刚才|刚刚|昨天|昨晚|上午|前天).*(?:过"
                            r"|了)|^(?:我|我们|咱们?)(?!想|要|需要|得|去|这边|的).*(?:了"
                            r"|过|呢|着|的|啊)$")


_LATE_COMMAND = re.compile(
    r"(?<!\bto )(?<!\bi )(?<!\bwe )(?<!\byou )(?<!\bthey )(?<!\bcan )(?<!\bwill )(?<!\bcould )(?<!\bwould )(?<!\bnot )(?<!n't )(?<!\bwho "
    r")(?<!\bthat )(?<!\bshould )(?<!\bmight )(?<!\bhe )(?<!\bshe )(?<!\bthe )(?<!\ba )(?<!\bmy )(?<!\byour )"
    r"\b(?:find|take|bring|get|call|play|text|set|turn|open|close|show|remind|navigate|drive|book|send)(?= (?:a|an|the|me|us|my|it|some|to|up"
    r"|down|on|off)\b)", re.I)


def mood(text: str) -> str:
    """The mood of the most telling clause of a cleaned sentence: a command anywhere outweighs the statement before it."""
    clauses = [c for c in (asked(part.strip()) for part in re.split(r"[,.;!?] |(?<=[㐀-鿿]) (?=[㐀-鿿])| (?=so |then |and then )", text)) if c]
    kinds = [_one(c) for c in clauses] or [FRAGMENT]
    late = re.match(r"(?:when|once|as soon as|if|after|before)\b", text, re.I)
    if (STATEMENT in kinds or late) and len(text.split()) > 5 and _LATE_COMMAND.search(text, 10):
        kinds.append(COMMAND)  # "we ran out of diapers find a drugstore": a recogniser writes no full stop
    if STATEMENT in kinds and re.search(r"\b(?:is there|are there|where is|where's|where can)\b", text[6:], re.I):
        kinds.append(QUESTION)
    for kind in (COMMAND, WISH, QUESTION, COMPLAINT, STATEMENT):
        if kind in kinds:
            return kind
    return FRAGMENT


def _one(clause: str) -> str:
    clause = re.sub(r"^(?:so|then|and|and then|but) ", "", clause, flags=re.I)
    first = re.match(r"[a-z']+", clause, re.I)
    if first and first.group().lower() in _VERBS and not re.match(r"(?:\w+ )?(?:is|are|was|were)\b", clause[first.end():].strip(), re.I):
        return COMMAND
    if _WISH.search(clause):
        return WISH
    if is_question(clause):
        return QUESTION
    if scales.complains(clause) and len(clause) < 45:
        return COMPLAINT
    if has_han(clause):
        return STATEMENT if _HAN_STATEMENT.search(clause) else COMMAND if _HAN_COMMAND.match(clause) else FRAGMENT
    return STATEMENT if _SUBJECT.search(clause) else FRAGMENT
