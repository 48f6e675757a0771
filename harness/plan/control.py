"""Control words that need no capability: end it, how far is it, say it again, go on, and the signs of a correction.

`control_of` reads the words alone; which task is meant, `target` decides from what they name.
"""
import re

from harness.plan.compile import CompiledSet
from harness.plan.contracts import LiveTask
from harness.plan.lexicon import lexicon
from harness.plan.text import pieces

LIVE = ("queued", "running")
_SOFT = (
    r"(?:(?:oh|ok|okay|yes|yeah|no|nah|well|hey|please|actually|sorry|wait|um|so|right|and|then|just|now|stop|hold on|you know what"
    r"|on second thoughts?|好|那|那就|哎|哦|啊|嗯|不|行|要不|那个|还是|先|请|帮我)[ ,.]*)*")

_CANCEL = re.compile(
    rf"^{_SOFT}(?:never ?mind(?: (?:that|it|the .+|about .+))?|forget (?:it|that|about .+|the .+|my .+)|cancel(?:led)?(?: .+)?|stop(?: (?:it"
    rf"|that|this|the .+|that .+|looking.*|searching.*|working.*|calling.*|dialling.*|right there|everything|all .+|what you.+))?"
    r"|scrap (?:it|that|the .+|my .+)|scratch that|drop (?:it|that|the .+|my .+)|abort(?: .+)?|call (?:it|that|the .+) off|call off .+"
    r"|leave it(?: (?:be|for now|then|alone))?|don't bother(?: .+)?|no need(?: any ?more)?(?: .+)?|not needed(?: any ?more)?"
    r"|(?:i|we)(?:'ve| have)? changed (?:my|our) minds?.*|skip (?:it|that|the .+)|give up(?: on .+)?|quit(?: .+)?|end (?:it|that|the .+)"
    r"|kill (?:it|that|this|the|my)\b.*|undo (?:it|that|the .+)|hang up.*|forget i (?:said|asked).*|ditch .+|get rid of .+|hold off(?: on .+)?"
    r"|(?:i|we) (?:don't|do not|no longer) (?:need|want|care about) .+|(?:i|we)(?:'m| am|'re) not interested.*|(?:i|we) (?:don't|do not"
    r"|no longer) (?:need|want) (?:it|that).*|don't (?!tell|forget|let|you).+|do not (?!forget).+|(?:that's|it's) not (?:needed|necessary).*"
    r"|that won't be necessary.*|withdraw .+|take (?:it|that) back|(?:ugh |argh |ugh, |argh, )?(?:pull the plug|call a halt|call time|put a stop)(?: .+)?"
    r"|(?:that|it|the .+|my .+|this) (?:can be|is) (?:cancelled|dropped|not needed)(?: .+)?|(?:it|that) doesn't matter(?: any ?more)?"
    r"|no longer .+|both(?: of them)?,? cancel both.*|all of (?:it|them),? (?:cancel|stop).*"
    r"|取消.*|算了.*|不用了.*|不要了.*|不需要了.*|停(?:下|止|一下|了|掉|停|吧)?.*|别(?!忘|的|人).+|不用(?!改|谢).+了?.*|不(?:找|订|打|发|听|查|放|弄|去|做|写|开|关|调|导航|等|要|需要).{0,8}了.*"
    r"|.{1,10}(?:不用|不要|别(?!的|人)|取消|作废|不需要)(?:.{0,5})(?:了|吧|掉)?|(?:当我没说|撤销|撤回|作罢|终止|中止|结束|打住|放弃|先别|免了|挂了|挂断|停).*|.{1,8}不(?:发|订|找|打|查|要|用|去|做|写|听|放"
    r"|导)了.*|把.+(?:取消|停|撤).*)[ .!]*$", re.I)
_CANCEL_WORD = re.compile(r"\bcancel\b|\bstop\b|\bnever ?mind\b|\bforget (?:it|that|about|the)\b|\bdrop\b|\babort\b|\bscrap\b|\bdon't\b"
                          r"|\bno longer\b|\bno need\b|取消|算了|不用|停|别|不[㐀-鿿]{1,3}了|不要|撤", re.I)
_BOTH = re.compile(r"\bboth\b|\ball (?:of (?:it|them)|that)\b|\beverything\b|\bthe lot\b|\ball (?:two|three|four|five)\b|全都?|都|两个|统统", re.I)
_STATUS = re.compile(
    rf"^{_SOFT}(?:how(?:'s| is| are)(?: (?:it|that|this|things|the .+?|my .+?|your .+?|everything))? (?:going|coming(?: along| on)?|looking"
    rf"|progressing|doing)(?: with .+| on .+| so far)?|how (?:far|close)(?: (?:along|are you|have you|did you|is|with|into)).*"
    rf"|how much (?:longer|more time)(?: (?:will|do|does|for|is).*)?|how long (?:will (?:that|it|this|you)|(?:is|does) (?:it|that|this)"
    rf"|do you need|until you).*"
    r"|(?:is|are)(?: (?:it|that|you|the .+?|my .+?|they))? (?:out|away|on its way|in yet|ready|done|finished|through|complete|sent|booked"
    r"|sorted|still .+|working on .+"
    r"|gone(?: out)?|confirmed|any closer|nearly there|making progress)(?: (?:yet|already|now|with .+|then|on it))*|any (?:news|progress|luck|joy"
    r"|sign|hope"
    r"|update|results?|word)(?: .+)?|(?:have|did|has|had) you .+?(?: yet| already| now)?|has (?:it|that|the .+?|my .+?) (?:been |gone |finished"
    r"|worked|arrived at|come).*|did (?:it|that|the .+?|my .+?) (?:work|go|get|send|finish).*"
    r"|what(?:'s| is) (?:taking|keeping|the hold ?up|the status|the progress|happening|going on|the state|holding).*|where (?:are|were) (?:you"
    r"|we) (?:with|at|on).*|where do (?:we|things) stand.*|(?:you )?(?:are you )?still (?:working|looking|searching|on|at|busy|trying|there).*"
    r"|what about (?:my|the) .+|(?:so,? )?(?:and|well)\??|what are you (?:doing|up to|working on).*|are (?:we|they|things) (?:booked|set|done"
    r"|good|sorted|confirmed|all set).*|status(?: of (?:that|it|the|my) .+)?(?: update)?|update me.*|progress(?: report)?\??|did you (?:manage"
    r"|find|get|send|book|finish|do).*|you done(?: yet)?|finished yet|done yet|ready yet|are we (?:there|done) .*with .*"
    r"|(?:.{0,14}?)(?:进展|进度)(?:如何|怎么样|怎样|到哪.*|呢|.*)|(?:.{0,14}?)(?:怎么样了|怎样了|咋样了|如何了)|.{0,14}(?:好|完|成|到|妥|出来|出去)了?(?:没有|没|吗|么)|.{0,14}了(?:没有?|吗"
    r"|么)|还没.{0,8}|还在.{1,8}(?:吗|呢|么)?|.{0,12}到哪(?:一步|步|儿|里)了?.*|.{0,8}还要多久.*|.{0,8}还(?:需要|得)?(?:要)?等?多久.*|有(?:结果|消息|眉目|进展|回复)(?:了)?(?:吗|没有?"
    r"|么).*|(?:怎么|为什么)(?:还没|这么久|这么慢|那么慢).*|搞定(?:了)?(?:没|吗).*|什么情况了?|情况怎么样.*|弄.{0,3}了(?:吗|没).*|现在什么情况.*)[ .!?]*$", re.I)
_OWN_WORK = re.compile(
    rf"^{_SOFT}(?:how(?:'s| is| are) (?:it|that|this|things|everything)(?: all)? (?:going|coming(?: along| on)?|looking"
    rf"|progressing)(?: so far)?|any (?:news|progress|luck|updates?|results?)(?: yet| so far)?|(?:are you|you) (?:done|ready|finished"
    rf"|still (?:working|looking|busy|at it|on it)).*|(?:is|are) (?:it|that|they) (?:done|ready|finished)(?: yet)?|still (?:working|looking"
    rf"|busy).*"
    r"|(?:done|finished|ready) yet|(?:have you )?(?:got|found|heard|finished) anything(?: yet| so far)?|are you (?:getting|making|nearly|almost"
    r"|close|far)\b.*|how much longer(?: (?:will you|do you).*)?|what's taking.*|.{0,6}(?:进行|弄|做|搞|办|处理|准备|安排)(?:得|的)?(?:怎么样|如何|咋样|怎样)了?"
    r"|.{0,8}(?:进展|进度)(?:如何|怎么样|怎样|呢)?|(?:弄|做|搞|办|查|写|找)到(?:哪|什么)(?:一?步|儿|里|程度|地步)?了?|(?:弄|做|搞|办)?(?:得"
    r"|的)?怎么样了|(?:弄|做|搞|办|查|找|订|写|发|打)?(?:好|完|到|成)了(?:没有?|吗|么)|还没(?:好|完|弄|做|找|查).{0,4}|还要等?多久.{0,2}|有(?:结果|消息|进展|眉目)了?(?:没有?|吗|么))[ .!?]*$", re.I)
_REPEAT = re.compile(
    rf"^{_SOFT}(?:say (?:that|it|this)(?: (?:part|bit|last .+))?(?: again| once more| one more time| slower| slowly)+.*|say again"
    rf"|(?:please )?repeat(?: (?:that|it|this|yourself|the .+|what .+|your .+|last .+))?.*|(?:i )?(?:beg your )?pardon(?: me)?|come again"
    rf"|what(?:'s| was| is) that(?: again| you said| sorry)?|what did you (?:just )?say.*|(?:sorry|excuse me),? what(?: was that)?.*|what|sorry"
    rf"|huh"
    r"|(?:i )?(?:didn't|did not|couldn't|could not|can't) (?:quite )?(?:catch|hear|get|understand|follow) (?:that|it|you|what|the|a word|any).*"
    r"|(?:i )?missed (?:that|it|what|the).*|(?:one more time|once more|again|once again)(?:,? please)?|tell me (?:that )?(?:again|once more).*"
    r"|(?:can|could) (?:you|i) (?:say|repeat|hear|go over|run).*(?:again|once more).*|read (?:it|that) (?:out )?(?:again|back)|what (?:was|were"
    r"|is|'s) (?:the|that|it|my|your).+ (?:again|you said|you just said|once more)|(?:where|who|when|which|how \w+) (?:was|were|did you say"
    r"|is) .+ again|run that by me again.*|go over (?:that|it) again|give me that again|let me hear (?:that|it) again"
    r"|再(?:说|讲|念|来|报|重复)(?:一|1)?(?:遍|次|下|回).*|重复(?:一下|一遍|一次)?.*|(?:你)?(?:刚才|刚刚|刚)(?:说|讲|念)(?:的)?(?:是)?(?:什么|啥|哪).*|(?:没|没有)(?:听清|听到|听见|听懂|听明白"
    r"|听清楚).*|(?:你)?说(?:的)?(?:什么|啥)(?:来着)?|什么[?]?|啥|.{0,12}(?:是)?(?:什么|多少|哪(?:里|儿|家|个)?|几点|谁|啥|叫什么.*)来着.*|(?:你)?说慢(?:点|一点).*|(?:能)?(?:不能)?再(?:说"
    r"|讲).*)[ .!?]*$", re.I)
_CONTINUE = re.compile(
    rf"^{_SOFT}(?:go on(?: .*|,.*)?|carry on.*|continue.*|keep (?:going|on|talking|reading|looking|it up|searching|working).*|(?:and )?(?:the "
    rf"|what about the |what's the |how about the )?(?:next|other|second|third|following)(?: (?:one|ones|part|bit|step|result|option|item))?\??"
    rf"|what else(?: .*)?|anything else.*|any (?:others|other (?:ones|options|results)|more(?: of them)?)|any (?:alternatives|other .+)"
    rf"|(?:tell me |read me |give me |show me )?(?:some )?more(?: of (?:them|those|that|it))?(?: options| results| please)?|read on|resume.*"
    rf"|pick up where.*|what (?:comes|happens|is) next|and (?:then|after that)|then what|proceed|what are the other.*"
    r"|(?:请|你)?(?:继续|接着(?:说|讲|念|做|找|读|来|往下)?|往下(?:说|念|讲|读)|说下去|讲下去|念下去)(?!给|打|放|导).{0,6}|(?:还有|有)(?:别的|其他的?|另外的|更多的?)(?:吗|呢|么|没有)?.{0,6}"
    r"|(?:那)?(?:下一(?:个|家|条|步|段)|再下一个|第[二三四]个|后面(?:的)?)(?:呢|是什么|吧|是)?|然后呢|还有呢|还有(?:吗|什么|哪些).{0,6}|再(?:来|说|找|推荐|给我?)(?:一|几|个|下)?(?:个|家|条|些"
    r"|点)?(?:别的|其他的?|呢)?|后来呢|换一(?:个|家))[ .!?]*$", re.I)
_YES = re.compile(r"^(?:(?:yes|yeah|yep|yup|sure|ok|okay|please do|do it|do that|go ahead|go for it|of course|absolutely|definitely|sounds good"
                  r"|that works|that's right|that's fine|correct|right|exactly|confirm(?:ed)?|by all means|why not|fine|perfect|great"
                  r"|yes please|alright|i do|please|send it|book it|make it so|that one|good|对|对的|是|是的|好|好的|好啊|行|可以|没错|嗯|当然|没问题|确认|确定|要|需要|发|发吧"
                  r"|就这样|成|ok|就它|当然可以|继续)[ ,.!吧啊的]*)+$", re.I)
_NO = re.compile(r"^(?:(?:no|nope|nah|no thanks|no thank you|not now|not really|rather not|better not|please don't|don't|not yet|negative|不|不要"
                 r"|不用|不用了|不必|不了|不是|先不|不需要|没有)[ ,.!了吧啊谢]*)+$", re.I)
_UPDATE = re.compile(
    r"^(?:(?:oh|ah|um|hey|ok|okay|well|please|哦|啊|嗯|那|哎|要不|那个|等等|等一下|诶)[ ,.]*)*(?:no+\b(?! (?:need|problem|idea|thanks|one|way|worries|longer"
    r"|more)\b)|nope\b|nah\b|actually\b|sorry\b|wait\b|hang on\b|hold on\b|i meant?\b|i said\b|i (?:actually )?want(?:ed)? .* instead|rather\b"
    r"|make (?:it|that|them|those)\b|change (?:it|that|the|my|this|them)\b|change of plans?|switch (?:it|that|the|to)\b|correction\b|instead\b"
    r"|on second thoughts?\b|scratch that\b|not (?!now|yet|bad|sure|really)|better\b|let's (?:make|do|say|go with|change)\b"
    r"|it's (?:for|at|on|to)\b|it should (?:be|say)\b|that should (?:be|say|have been)\b|should be\b|we(?:'re| are) (?:actually|now)\b"
    r"|move (?:it|that|the)\b|push (?:it|that|the)\b|bump (?:it|that)\b|add (?:that|to (?:it|that))\b|the other (?:one|side|way)\b|or rather\b"
    r"|just (?:one|two|three|the|to|make)\b|only (?:one|two|three|for)\b|a (?:little|bit) (?:less|more|lower|higher)\b|set (?:it|that) (?:to"
    r"|at) .* instead|use .* instead|my mistake|oops|i'd rather|i would rather|can (?:we|you) (?:make|change|move|switch) (?:it|that|the)\b"
    r"|could (?:we|you) (?:make|change|move|switch) (?:it|that|the)\b|with .+ instead|for .+ instead"
    r"|不[,. ]|不是|不对|错了|说错|搞错|弄错|改|换|应该是|我(?:是)?说的?是|我要(?:去|找|订|打给)?的?是|我的意思|还是(?!.*(?:吗|呢)$)|改成|改到|改为|换成|是(?!不是)[㐀-鿿A-Za-z0-9]|等等|要不"
    r"|算了(?=.{2,}(?:吧|去|找|改|换))|就(?:改|换)|别.{1,8}[, ].{2,}|不要.{1,8}[, ].{2,}|不去.{1,10}[, ]?去|给.{1,8}(?:发|打)(?:吧)?$|把.{1,10}(?:改|换)|再(?:多|少|加|减))"
    r"|(?:did|didn't) i say .+\bi (?:meant?|want(?:ed)?)\b.+|.*\bi (?:just |first )?said .+\bi meant?\b.+|.*(?:刚才?|我)说成.+"
    r"|.*\b(?:instead(?: of .+)?|rather than .+|not .+ but .+)$|.+(?:改成|改到|改为|换成|换到).+",
    re.I)


_OPERATIONS = (("yes", _YES), ("no", _NO), ("repeat", _REPEAT), ("cancel", _CANCEL), ("status", _STATUS),
               ("continue", _CONTINUE), ("update", _UPDATE))


def controls(text: str) -> list[str]:
    """Every control operation that the words alone could mean, the surest first."""
    found = []
    for name, pattern in _OPERATIONS:
        if pattern.match(text):
            found.append(name)
    return found


def about_our_work(text: str) -> bool:
    """Words that ask how far the assistant is and name nothing else."""
    return bool(_OWN_WORK.match(text))


def says_cancel(text: str) -> bool:
    return bool(_CANCEL_WORD.search(text))


def says_both(text: str) -> bool:
    return bool(_BOTH.search(text))


_POINTERS = frozenset("it that this the them one thing stuff please all a my an to of for me not no don't do i you is are and yes ok okay need "
                      "want any more anymore longer after now then just cancel stop forget about never mind drop off up".split())


_COMMON_CONCEPTS = frozenset("#cancel #off #need #go #on #how_much #far #arrive #all #when #speaker #down #up #find".split())
"""Concepts that name no task."""


def named(found: CompiledSet, text: str, tasks: tuple[LiveTask, ...]) -> list[tuple[LiveTask, float]]:
    """The tasks with how strongly `text` names each: by its capability's words, or by words of its request."""
    hits = {h.name for h in lexicon().hits(text) if h.name.startswith("#")} - _COMMON_CONCEPTS
    words = {w for w in pieces(text) if w not in _POINTERS and not re.fullmatch(r"[的了吗呢吧啊么把那个这不要用别取消停我你是在到好没有还一下给再说]", w)}
    out = []
    for t in tasks:
        c = found.get(t.capability)
        points = 0.0
        if c:
            points += sum(found.weight.get(h, 0.0) * c.words.get(h, 0.0) for h in hits)
        own = set(pieces(t.prose)) | {p for v in t.arguments.values() if isinstance(v, str) for p in pieces(v)}
        points += sum(1.0 if w.isascii() else 0.5 for w in words & own)
        out.append((t, points))
    return out


def target(found: CompiledSet, text: str, tasks: tuple[LiveTask, ...], states: tuple[str, ...] = ()) -> LiveTask | None:
    """The task meant: the one named most strongly, else the newest in `states`, else the newest."""
    if not tasks:
        return None
    scored = named(found, text, tasks)
    best = max(points for _, points in scored)
    if best >= 0.9:
        return next(t for t, points in scored if points >= best - 0.01)
    return next((t for t in tasks if t.state in states), None) or tasks[0]
