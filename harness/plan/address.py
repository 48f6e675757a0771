"""Is this meant for the assistant at all? Signs in the words that it is not: somebody else is spoken to or about, a radio, thinking aloud.

The signs here are words; likeness to known asides (asides.toml) is weighed by the planner.
"""
import re

SMALL_TALK, SUPPOSED, NOT_WANTED, OTHER_PERSON, ABOUT_PEOPLE, BROADCAST, THINKING = (
    "small talk", "only supposed", "not wanted", "somebody else is spoken to", "about or to people", "sounds like a broadcast", "thinking aloud")
_PET = (r"(?:darling|honey|hon|sweetie|sweetheart|babe|baby|dear|love|buddy|mate|bro|dude|guys|kids|boys|girls|folks|everyone|officer|sir|madam"
        r"|ma'am|mum|mom|mummy|mommy|dad|daddy|papa|mama"
        r"|grandma|grandpa|granny|nana|auntie|uncle \w+|aunt \w+|son|kiddo|pal|man|ladies|gentlemen|doctor|professor|little one|you two"
        r"|you guys|both of you)")
_PET_ZH = (r"(?:老婆|老公|媳妇|亲爱的|宝贝儿?|宝宝|小宝|儿子|女儿|闺女|妈妈?|老妈|爸爸?|老爸|爷爷|奶奶|外公|外婆|姥姥|姥爷|哥哥?|姐姐?|弟弟?|妹妹?|叔叔?|阿姨|舅舅|姑姑|师傅|警官|警察同志|同学们?|老师|大哥|大姐|小朋友|孩子们?"
           r"|各位|兄弟|哥们儿?|亲|[王李张刘陈杨赵黄周吴徐孙胡朱高林何郭马罗梁宋郑谢韩唐冯于董萧程曹袁邓许傅沈曾彭吕](?:总|经理|老师|哥|姐|叔|阿姨|师傅|主任|先生|女士|医生)|[小老阿][㐀-鿿])")
_VOCATIVE = (
    re.compile(rf"^(?:(?:hey|oh|no|yes|hi|hello|sorry|look|listen|come on|ok|okay|please|thanks|excuse me)[ ,]+)*{_PET}(?:[ ,]+(?!'s)|$)(?!is\b"
               rf"|has\b|was\b|wants\b|needs\b|said\b)", re.I),
    re.compile(rf"(?:,| )(?:my )?{_PET}[.!?]*$|, {_PET},|\b(?:you two|you both|both of you|you guys|you lot|everybody in the back)\b"
               rf"|(?<=[a-z]) (?:honey|darling|sweetie|sweetheart|guys|mate|dude)(?= (?:we|i|you|it|the|your|please|and)\b)", re.I),
    re.compile(rf"^(?:(?:嘿|哎|喂|诶|好的?|不是|hello|hi|hey)[ ,]*)*{_PET_ZH}(?:[ ,]+|(?=你|您|别|不许|不要|快|来|把|要不要|咱|我们|听))", re.I),
    re.compile(rf"[ ,]{_PET_ZH}$"),
)
_OBJECT_OF = re.compile(r"\b(?:call|ring|phone|text|message|tell|to|for|with|by|dial|email|my|the|our|and|from|of|know|send|write|let|give|a"
                        r"|hear|play|ask|about)(?: my| our)? [\w' ]{0,12}$", re.I)
_COMMON = frozenset("""
    take go find call send text message play set make turn open close book reserve remind navigate drive bring put tell look search show ring
    write note lock unlock cancel check get what where when who how why which is are can could would will do does did i i'm i'd we please volume
    fan seat temperature window windows no yes stop the a an my any have has let let's give add read start switch raise lower increase decrease
    reduce heat cool warm louder quieter mute charge order parcel package track status directions route locate guide head dial phone write jot
    compare research plan draft summarise summarize explain reminder weather forecast never forget repeat pardon continue actually sorry wait
    hang hold change it it's that there this in on at for from and but so okay ok well right oh hey hi hello thanks thank good morning evening
    night venus home eta traffic driver passenger""".split())
_NAME_FIRST = re.compile(r"^(?:(?:hey|oh|no|yes|hi|sorry|look|ok|okay)[ ,]+)?(?P<name>[A-Z][a-z]{1,12}),? (?:can you|could you|would you"
                         r"|will you|did you|do you|are you|have you|you |your |you're|don't|stop|come|please|put|hand|give|pass|get|sit|listen"
                         r"|look|what do you|where are you|where's your|how was|what did)")
_NAME_FIRST_ZH = re.compile(r"^(?:hello |hi |hey )?(?:[A-Z][a-z]+|小[㐀-鿿]|阿[㐀-鿿])[ ,]?(?:你|您|别|不许|快|过来|把你)")
_NAME_LAST_ZH = re.compile(r"(?:你|您).*[㐀-鿿] ?,? [A-Z][a-z]{2,12}$|[㐀-鿿] [A-Z][a-z]{2,12} ?你")
_NAME_LAST = re.compile(r"(?:, |(?<=now )|(?<=you )|(?<=please )|(?<=belt on ))(?P<name>(?!Mon|Tues|Wednes|Thurs|Fri|Satur|Sun(?=day)|January"
                        r"|February|March|April|June|July|August|September|October|November|December)[A-Z][a-z]{2,12})[.!?]*$")
_PERSON = (
    re.compile(r"^(?:(?:and|so|but|no|yes|well)[ ,]+)?(?:he|she|they)(?:'s|'re|'d|'ll| )(?!(?:is )?cold|(?:is )?hot)", re.I),
    re.compile(r"\b(?:put your (?:belt|seat ?belt|shoes|coat|jacket)|your (?:homework|seat ?belt|belt|shoes|brother|sister|mother|father|mum"
               r"|dad|teacher|shoelaces|hands|feet|plate|lunch|room|turn|fault)|sit (?:down|still|up|properly)|(?:stop|quit|no) (?:fighting"
               r"|kicking|crying|shouting|hitting|arguing|it you)|behave|buckle up|strap (?:yourself|in)|are you (?:hungry|asleep|awake|okay"
               r"|all right|cold|comfortable|warm enough|tired|coming|listening to me|kidding|crazy|serious)|do you (?:want|need) (?:a|some|any"
               r"|me to|to (?:eat|drink|stop|go|sleep|drive))"
               r"|how was (?:your|school|work)|what did (?:he|she|they|the)|did (?:he|she|they|you (?:bring|pack|remember|tell|text|call|see"
               r"|hear|eat|sleep|lock|get the|have|do your|feed|buy|take))|have you (?:eaten|called|seen|heard|packed|been|brought|got|met"
               r"|done your|told|ever)|you (?:look|looked|should have|always|never|said|told|promised|forgot|must be|were|two|guys|lot|kids"
               r"|know what)|say (?:hi|hello) to (?:your|grandma|grandpa|mum|dad|her|him)|i told you|tell (?:him|her) yourself|you can (?:come"
               r"|sleep|have|sit|unbuckle|get out)|let go of|in the back(?: seat)?,? (?:are|is)|for you (?:back there|guys|two))\b", re.I),
    re.compile(r"^(?:hello|hi|yes|yeah|hey)?[ ,]*(?:this is \w+ (?:speaking|calling|here|from)|(?:this is |it's )?\w+ speaking\b.*"
               r"|.*\bi'll (?:call|ring|phone|text) you (?:back|later)|.*\bcan i call you back|.*\bwe're (?:about|nearly|almost|still|just"
               r"|on our way)\b.*\b(?:away|bye|see you|kettle|home soon)|.*\bsee you (?:soon|later|then|there)\b|.*\bgo ahead$)", re.I),
    re.compile(r"\b(?:i|we) (?:told|asked|said to) (?:him|her|them|you)\b|(?<!those )\b(?:he|she|they) (?:said|told|asked|wanted|thinks?|says"
               r"|never|forgot|always|went|was|were|had|did|didn't|does|doesn't)\b|\b(?:my|his|her|our) (?:colleague|brother|sister|boss|friend"
               r"|neighbour|neighbor|wife|husband|cousin|mother|father|son|daughter|mum|dad|uncle|aunt)s? (?:said|told|asked|wanted|always"
               r"|never|went|was|were|had|did|used to|loves?|likes?|thinks?|set|bought|drove|just|is getting)\b|^(?:yesterday|last (?:night"
               r"|week|year|time|month|summer|winter))\b|^(?:i|we) (?:went|had|was|were|used to|never|already|saw|met|bought|drove|ate"
               r"|remember when|almost)\b", re.I),
    re.compile(r"^(?:喂|对|嗯|哎)[ ,]*(?:你好|您好|我是|我在|对|是我|你说|我|在)(?!.*(?:导航|温度|播放))|^(?:他|她|他们|她们|人家|咱妈|我妈说|我爸说|老板说|同事说)(?!.*(?:的电话|打电话))|^你(?:们|吃"
               r"|昨天|今天|刚刚?|怎么|要不要|饿|困|冷|热|渴|睡|看|在|作业|那边|上次|公司|妈|爸|老是|先|什么时候|想|还|觉得|猜|去|来|帮.{0,6}拿|别|真|是不是|有没有(?:吃|带|看)|到底|家)|你们|咱们?.{0,4}(?:吃"
               r"|喝|玩)(?:什么|啥)|不许|听到没|听见没"
               r"|跟你说(?:话|过|了|,| )|(?:系好?|扣好?)(?:上)?安全带|安全带系|写完(?:了)?(?:没|作业)|我(?:跟|和)(?:你|他|她)说|他(?:说|跟)|她(?:说|跟)|我(?:马上|快|已经|一会儿?|等会儿?)到(?:公司"
               r"|家|了|楼下)|(?:我|我们)(?:昨天|上周|去年|上次|前天|以前|小时候|那时候)|(?:昨天|上周|上次|去年|前天).{2,}(?:了|过)"),
    re.compile(r"\byour (?!name\b|opinion\b|help\b|recommend|suggest|last\b|answer\b|favou?rite\b|notes?\b|contacts?\b)[a-z]+\b", re.I),
    re.compile(r"\b(?:officer|your honou?r|ladies and gentlemen|boys and girls)\b", re.I),
)
_RADIO = re.compile(
    r"\b(?:headlines|prime minister|president|parliament|minister|government|you're (?:listening|tuned)|stay tuned|tuned to|tune in|(?:our"
    r"|the) (?:listeners|sponsors?|studio|next guest|programme|program)|(?:morning|breakfast|evening|late) show|good (?:morning|evening"
    r"|afternoon),? (?:listeners|everyone|ladies|folks|and welcome)|(?:traffic|weather|news|sports?) (?:report|update|desk|bulletin)"
    r"|and in (?:sports?|football|other news|business|tennis|weather)|and now (?:the|for|a)|next up|coming up|up next|after the break"
    r"|welcome back|terms and conditions|percent off|half price|(?:special|limited|great) offer|(?:call|dial|phone|order|buy|visit) (?:us |now"
    r"|today)|book (?:now|today|your)|visit (?:us|our|your)|our (?:store|stores|website|new)|don't miss|only this week(?:end)?"
    r"|this weekend only|free delivery|sale (?:ends|starts|now)|nothing to pay|while stocks last|brought to you by|fm\b|radio (?:one|two|three)"
    r"|number one hit|top forty|chart|the home side|fans|won by|scored|goals?|match|league|champion\w*|stock market|shares|police (?:are|said"
    r"|have)|according to|reported|officials|wonderful world|new (?:album|single|sofa|collection|range of)|motorists|drivers (?:are|should"
    r"|can expect)|delays (?:on|of)|highs? of|lows? of|temperatures? (?:will|reaching|of|rising)|sunny spells|it'?ll be \w+ degrees"
    r"|in the (?:south|north|east|west)(?:east|west)? (?:and|tomorrow|today|with|of the country)|overnight|our series|series on|episode \w+"
    r"|part (?:one|two|three|four)|roadworks|until further notice|authorities|heading (?:north|south|east|west)|sponsored|kick ?off"
    r"|scattered showers|outbreaks? of)\b"
    r"|听众|收听|本台|播报|报道|欢迎(?:回来|收听|选购)|广告|嘉宾|节目|优惠|五折|打折|抢购|热线|股市|收盘|北京时间|据.{0,6}(?:社|报|台)|各位(?:听众|观众|朋友)|下面(?:播|为您|请|是)|接下来(?:是|请|为|我们)|路况信息"
    r"|最高气温|气温.{0,3}度到|晴转|多云转|转(?:多云|晴|阴)|比分|进球|获胜|主队|客队|总理|主席|国务院|外交部|插播|台风|停课|本场|赞助|播出|接着听|请听|收看|主要内容|敬请|新华社|央视|今夜到|油价|据了解|小雨|阵雨|民警|专家|全场|特价"
    r"|免费领取|扫码|关注公众号|\bFM\b|音乐台", re.I)
_THINKING = re.compile(
    r"^(?:(?:hmm+|um+|uh+|erm?|oh|okay|ok|so|right|well|now|let's see|and|but|wait)[ ,.]+)*(?:let me (?:think|see)|i wonder|how did that .* go"
    r"|where (?:did|have"
    r"|was|were|on earth|the hell) i\b|now where|where's my (?!next|parcel|order|package|delivery|exit|turn)|where are my (?!parcels|orders)"
    r"|where is my (?!parcel|order|package|delivery|next)|what was i\b|what am i\b|what did i\b|what do i (?:need(?: to)?(?: buy)?"
    r"|have to (?:buy|get)|want)\b(?! (?:a|an|the))|did i\b(?!.*\b(?:car|doors?|windows?|boot|trunk|hatch|tailgate)\b(?!.* at home))|why did i|why am i"
    r"|have i (?!got|any)|i (?:should|shouldn't|could|might) (?:probably|maybe|always|have|not|really|get|call|text|ask)|maybe i|perhaps i"
    r"|i (?:think|guess|suppose|hope"
    r"|hate|can't believe|don't believe|forgot|always forget|must have|knew it|need to remember|really (?:need|should|must)|keep forgetting"
    r"|'m so|am so)|i'm (?:so |really |just )?(?:tired|late|exhausted|bored|thinking|done|sure|never|lost my)|what(?:'s| is) (?:his|her"
    r"|their) name|what was (?:his|her|their|it|that song|the name)|it's on the tip|how (?:on earth|stupid|annoying|could i|does (?:he|she))"
    r"|why (?:is|are|does|do|won't|can't) (?:everybody|everyone|this (?:guy|idiot|car in front|lane|man|woman|driver)|he|she|they|people|nobody"
    r"|it always|these|that guy))"
    r"|\bfront door\b|\bat home$|\b(?:for (?:goodness|god|heaven|crying out)'?s?'? ?(?:sake|loud)|oh my (?:god|goodness|gosh)|omg|damn|dammit"
    r"|bloody|crap|shit|fuck\w*|idiot|moron|come on,? (?:move|go|it's)|not another|what a (?:day|mess|jerk|week|nightmare|view|traffic|morning)"
    r"|ouch|ugh|argh|phew|oops|tip of my tongue|it'll come to me|what the (?:hell|heck)|was it left or|note to self)\b|[ ,]hmm+\b|, then,"
    r"|^hmm+[ ,.]|^to be or"
    r"|^(?:那什么|让我想想|我想想|我看看啊|哎呀|天哪|天啊|我的天|完了|糟糕|糟了|烦死|气死|真是的|怎么又|不知道|也不知道|这(?:人|个人|车|红灯|路|司机|家伙|堵|天|破|是要|什么)(?!.{0,3}(?:叫什么|是什么(?!人啊)))|前面(?:那"
    r"|这)(?:车|人|个人)(?:怎么|会不会|在干)|我(?:刚才|刚刚|刚)(?:要|想|在|是|说)|我(?:的)?(?:钥匙|手机|钱包|眼镜|包|身份证|东西).{0,6}(?:哪|呢)|我(?:是不是|有没有|到底|怎么|咋|该|要不要|应该|得"
    r"|真)(?!.*(?:导航|温度))|今天(?:好|真|太)(?:累|困|烦|倒霉)|好(?:累|困|烦|饿啊)|累死|困死)|应该是.*吧|不对$|(?:要|想)?(?:干嘛|说什么|干什么|说啥|干啥|叫什么|是什么|是谁|在哪)来着$|太堵了|会不会开车|怎么开车"
    r"|(?:忘|忘记)(?:带|拿|了)|要迟到|堵死|真(?:长|慢|烦|堵|倒霉)|吓死|气死|受不了", re.I)
_CHAT = re.compile(
    r"^(?:(?:oh|ok|okay|alright|all right|right|great|perfect|good|nice|cool|well|yes|yeah|no|fine|haha|ha|wow|lovely|hey|hi|hello|and|so"
    r"|that's|thanks|thank you|ah|super|venus|there|today|then|sorry|excellent|brilliant|awesome|amazing|wonderful|fantastic|got it|i see"
    r"|understood|understand|sounds good|makes sense|never felt better|bye(?: for now)?|bye bye|goodbye|good ?(?:morning|night|evening"
    r"|afternoon|job|work|bye|one|idea|girl|boy)|how(?:'s| is| are) (?:you|it going|things|life|your day)(?: doing)?(?: today)?|how do you do"
    r"|what's up|well done|(?:thanks|thank you|cheers)(?: (?:so|very) much| a lot| a million| again| for .+)?|you(?:'re| are) (?:so |very "
    r"|really )?(?:the best|great|funny|smart|clever|welcome|amazing|awesome|helpful|sweet|kind|brilliant|a star|a legend|good|nice|cute"
    r"|wonderful|a lifesaver)|(?:i )?(?:love|like) (?:you|it|this|that|this (?:car|song|place))|(?:that|this|it)(?:'s| is| was| sounds"
    r"| looks) (?:all|it|great|nice|good|perfect|fine|lovely|funny|cool|quick|fast|better|much better|amazing|enough|wonderful|very (?:nice"
    r"|kind|good)|so (?:nice|kind|good|funny)|really (?:nice|good)|right|exactly .+|everything)(?: for now| then| thanks)?"
    r"|exactly what i (?:wanted|needed)|see you(?: later| soon| tomorrow)?|nice to meet you|great job|nice (?:job|work|one)|see you|me too"
    r"|same here|no worries|no problem|my pleasure|what a nice .+|that will be all|nothing(?: else)?|i'm (?:fine|good|back|here|ok|okay|all set"
    r"|doing .+)|happy birthday|merry christmas|congratulations|much appreciated|i appreciate it|appreciated|who are you|what are you"
    r"|are you (?:a robot|human|real|there)|do you (?:like|love|have feelings|sleep|dream) .*|tell me a joke)[ ,.!?]*)+$"
    r"|^(?:(?:好的?|行|嗯+|哦+|噢|啊|对|是|ok|okay|谢谢|那|哈哈+|嘿嘿|拜拜|再见|bye|hello|hi|嗨|可以|挺好的?|不错|真不错|不客气|没事了?|没问题|没关系|知道了?|明白了?|收到|了解|懂了|你好|您好|早|早上好|早安"
    r"|下午好|晚上好|晚安|辛苦(?:你)?了|多谢|感谢|太好了|太棒了|真棒|厉害|牛|真(?:好|聪明|厉害|棒|逗|有意思|舒服)|你(?:真|好|太|挺)(?:好|聪明|厉害|棒|逗|可爱|有意思|行|能干|牛|贴心|笨).{0,4}|你是谁.{0,4}"
    r"|你叫什么(?:名字)?|就这样|先这样|这样就(?:行|好)|够了|完美|好嘞|好吧|好哒|okk|good|nice|cool|thanks?|thank you|yes|no|perfect|great|今天天气(?:真|不错|好).{0,4}|啊|呀|哦|吧|啦|了"
    r"|的|哈|venus|bye bye)[ ,.!?~]*)+$", re.I)
_SUPPOSE = re.compile(
    r"^(?:(?:and|but|so|well|oh)[ ,]+)?(?:if (?:we|i|it|you|they|he|she) .*\b(?:i|we|it|you|they|he|she|that)(?:'ll| will)\b|if\b.*\b(?:would"
    r"|i'd|we'd|could|might|he'd|she'd|they'd|wouldn't|should have|we will be|were|had)\b|if only\b|had (?:i|we|he|she|they|you)\b|what if\b"
    r"|imagine\b|suppose\b|supposing\b|say we\b|wish i\b|i wish\b|(?:i|we) (?:could|might|should|would|'d) (?:always|have|maybe|never|probably"
    r"|also|perhaps|just as well)\b|(?:i|we)'d have\b|it would be (?:nice|great|cool|fun|mad|funny|lovely|good)\b|one day\b|someday\b"
    r"|what would happen\b|wouldn't it be\b|were i\b|(?:would|could|should)'ve\b)|\b(?:would|could|should|might) have \w+(?:ed|en|t|ne|wn)\b"
    r"|\bif i were\b|\bi(?:'d| would) .+ if (?:i|we|he|she|it|they|you|the)\b|\b(?:could|would|might) (?:\w+ ){1,8}if (?:i|we|the|it|she"
    r"|he) \w+(?:ed|d)?\b|\bwhile driving, that would\b"
    r"|^(?:那|所以|可是|但是|唉)?(?:如果|要是|假如|假设|倘若|若是|早知道|本来|本来可以|原本|万一|等(?:我)?(?:有钱|退休|老了|以后)|真想|哪天|改天|要不是|当初|当时)|(?:该多好|就好了|多好啊|的话我就|就不会|也许可以)$"
    r"|就不会.{1,6}了$", re.I)
_NOT_WANTED = re.compile(
    r"^(?:(?:please|no|hey|oh|ok|okay|well|and|so|but|just|wait)[ ,]+)*(?:don't(?! (?:let|forget|you (?:know|have|think|want)))"
    r"|do not(?! (?:let|forget))|never(?! mind)"
    r"|(?:there's |there is )?no need|not necessary|(?:i|we|he|she|you|they|nobody|no one|my \w+)(?:'ve|'d)? (?:don't|do not|didn't|did not"
    r"|never|needn't|need not|haven't|doesn't|don't have to|won't need|shouldn't|mustn't) (?:want|need|have|ask|asked|say|said|tell|told|turn"
    r"|set|open|close|call|send|care|like to|mean|think)|you (?:needn't|need not|shouldn't|mustn't|don't have to)|nobody (?:wants|asked|said"
    r"|needs)|(?:it's (?:okay|ok|fine|alright)[ ,]+)?leave (?:the|it|that|my|everything|all|them|those)\b(?! (?:a )?message)|keep (?:the|it|my"
    r"|everything|that|all|those) .*\b(?:as|where|how|way|un\w+|open|closed|shut|locked)\b|let's (?:not|leave|keep)\b|rather not|without\b"
    r"|i'd rather not"
    r"|i wouldn't|stop telling|(?:it's|that's|the \w+(?: \w+)? is|they're) (?:fine|okay|ok|good|perfect|alright|all right)(?: (?:as|the way"
    r"|like|now|already|here).*)?$)"
    r"|^(?:先|那|那就|哎|不是|嗯|请|你)?[ ,]*(?:别(?!忘|超)|不要(?!超)|不用(?!客气|谢)|不必|不需要|不想|不许|无需|没必要|没让|没叫|没说|我没|我不(?:想|要|用|需要)|我们?不(?:想|要|用|需要)|谁让|谁说|先不|暂时不)"
    r"|^.{1,8}(?:不用|别|不要|就别|先别|不必)(?:动|改|调|开|关|管|发|放|打|弄|设|换|停).{0,4}$|(?:就这样|别动|不用管|保持原样|保持现状|不用改了?.*|不用调了?)$", re.I)


def aside_reason(text: str, plain: str = "", woken: bool = False) -> str:
    """Why `text` (cleaned, as said; `plain`: without politeness) is not meant for the assistant, by its words alone; "" where nothing says so.

    `woken`: the assistant was called by name, so that nobody else is spoken to.
    """
    if _CHAT.match(text):
        return SMALL_TALK
    if _SUPPOSE.search(text):
        return SUPPOSED
    if _NOT_WANTED.search(text):
        return NOT_WANTED
    if woken:
        return ""
    if _vocative(text):
        return OTHER_PERSON
    if any(p.search(plain or text) for p in _PERSON):
        return ABOUT_PEOPLE
    if _RADIO.search(text):
        return BROADCAST
    if _THINKING.search(text):
        return THINKING
    return ""


def _vocative(text: str) -> bool:
    for i, pattern in enumerate(_VOCATIVE):
        m = pattern.search(text)
        if not m or i in (1, 3) and _OBJECT_OF.search(text[:m.start() + 1]):
            continue
        if i != 3 or not re.search(r"(?:给|跟|和|找|叫|告诉|打|发|的|是)$", text[:m.start()]):
            return True
    m = _NAME_FIRST.search(text)
    if m and m["name"].lower() not in _COMMON:
        return True
    m = _NAME_LAST.search(text)
    before = text[:m.start()] if m else ""
    if (m and m["name"].lower() not in _COMMON and re.search(r"\b(?:you|your|can|could|please|did|don't)\b", before, re.I)
            and not _OBJECT_OF.search(before.rstrip(" ,") + " ")):
        return True
    return bool(_NAME_FIRST_ZH.search(text) or _NAME_LAST_ZH.search(text))
