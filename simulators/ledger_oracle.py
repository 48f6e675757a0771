"""The account that the simulated people keep of their sessions: what they asked for, cancelled and corrected, what they heard, what was done.

Nothing of the harness's judgement goes in; only task ids, the words of admitted replies and, when all is over, the public states of the
tasks. What contradicts the account is a violation of one of KINDS.
"""
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from harness import PreparedReply, Task
from harness.task import Delivery as D
from simulators.ledger_skills import CANARY, SPEC, WORD, Wish

KINDS = ("duplicate", "obsolete_spoken", "lost", "nonterminal", "over_user", "over_assistant", "leaked", "faults")
ENOUGH = 0.75
"""Share of an outcome that counts as told: a little less than what the harness itself is content with (0.8)."""
REPEATED_WORDS = 5
"""A resumption may repeat the clause it goes on with: three words, the one that was cut, and one for rounding."""
EPS_S = 0.01


@dataclass
class Heard:
    """One admitted reply and what became of it at the device."""

    reply: PreparedReply
    at: float
    chars: int = 0
    """What came out of the loudspeaker."""
    report: str = ""
    """'' none yet | confirmed | unconfirmed | lost | declined"""
    started: bool = False
    cut: bool = False
    stopped: bool = False
    crashed: bool = False
    """In the air when the process died."""

    @property
    def share(self) -> float:
        return self.chars / max(1, len(self.reply.text))


@dataclass
class Claim:
    """The user's word that an outcome is not wanted any more; `position`: in the store, for one that a crash may undo."""

    reason: str
    position: int


@dataclass
class Account:
    """One session's."""

    index: int
    wishes: list[Wish] = field(default_factory=list)
    by_task: dict[str, Wish] = field(default_factory=dict)
    replies: dict[str, Heard] = field(default_factory=dict)
    words: Counter = field(default_factory=Counter)
    hearings: dict[int, set] = field(default_factory=lambda: defaultdict(set))
    obsolete: dict[int, Claim] = field(default_factory=dict)
    late: set = field(default_factory=set)
    texts: dict = field(default_factory=dict)
    """(request, run): what the run brought."""
    ended: dict = field(default_factory=dict)
    runs: Counter = field(default_factory=Counter)
    effects: Counter = field(default_factory=Counter)
    repeats: int = 0
    cancels: list[float] = field(default_factory=list)
    corrections: list[float] = field(default_factory=list)
    turns: list[float] = field(default_factory=list)
    requests: list[tuple[float, str]] = field(default_factory=list)
    """(time, capability) of what was asked for, planned or not."""
    asides: set = field(default_factory=set)
    shown: dict[str, str] = field(default_factory=dict)
    """Task id: what the screen showed of it."""
    crashes: list[float] = field(default_factory=list)
    skew_s: float = 0.0
    """By how much the wall clock has been moved, all together."""
    ended_at: dict[str, float] = field(default_factory=dict)
    """Task id: true time at which its telling ended."""
    closed_early: bool = False


class Oracle:
    """All accounts of one world. `story`: told what happens, for a replay."""

    def __init__(self, clock, story=None):
        self.clock, self.story = clock, story
        self.accounts: dict[int, Account] = {}
        self.figures: Counter = Counter()
        self.events: Counter = Counter()
        self.violations: list[tuple[int, float, str, str]] = []

    def violation(self, session: int, kind: str, what: str) -> None:
        self.figures[kind] += 1
        self.violations.append((session, self.clock.now(), kind, what))
        self.tell(session, f"*** {kind}: {what}")

    def tell(self, session: int, what: str) -> None:
        if self.story is not None:
            self.story(session, self.clock.now(), what)

    def event(self, session: int, kind: str, what: str = "") -> None:
        self.events[kind] += 1
        self.tell(session, f"{kind} {what}")

    # -- what the skills tell

    def run_began(self, wish: Wish) -> int:
        account = self.accounts[wish.session]
        account.runs[wish.number] += 1
        self.tell(wish.session, f"run {account.runs[wish.number]} of q{wish.number} begins ({wish.capability})")
        return account.runs[wish.number]

    def run_ended(self, wish: Wish, run: int, text: str) -> None:
        account = self.accounts[wish.session]
        account.texts[wish.number, run] = text
        account.ended[wish.number, run] = self.clock.now()
        self.tell(wish.session, f"run {run} of q{wish.number} ends")

    def returned_late(self, wish: Wish, run: int) -> None:
        self.event(wish.session, "late_return", f"run {run} of q{wish.number}")
        self.accounts[wish.session].late.add((wish.number, run))

    def effect(self, wish: Wish, key: str) -> None:
        account = self.accounts[wish.session]
        account.effects[key] += 1
        self.tell(wish.session, f"effect of q{wish.number}")
        if account.effects[key] > 1:
            self.violation(wish.session, "duplicate", f"effect of q{wish.number} ({wish.capability}) had twice for key {key}")

    def saw(self, session: int, where: str, texts: list[str]) -> None:
        """Words that reached something of one session: none may be another's."""
        for text in texts:
            for match in CANARY.finditer(text):
                if int(match[1]) != session:
                    self.violation(session, "leaked", f"{match[0]} seen in {where}")

    # -- what the user and the device tell

    def accepted(self, wish: Wish, task_id: str) -> None:
        account = self.accounts[wish.session]
        if wish.task_id and wish.promised and wish.task_id != task_id:
            self.violation(wish.session, "duplicate", f"key of q{wish.number} made another task")
        wish.task_id = task_id
        account.by_task[task_id] = wish

    def claim(self, wish: Wish, reason: str, position: int) -> None:
        self.accounts[wish.session].obsolete.setdefault(wish.number, Claim(reason, position))
        self.tell(wish.session, f"q{wish.number} is {reason} from now on")

    def admitted(self, session: int, reply: PreparedReply, *, user_busy: bool, device_busy: bool) -> None:
        account, now = self.accounts[session], self.clock.now()
        account.replies[reply.id] = Heard(reply, now)
        self.tell(session, f"admitted {reply.kind} {reply.id[-4:]}: {reply.text}")
        self.saw(session, "a reply", [reply.text])
        if user_busy:
            self.violation(session, "over_user", f"'{reply.text[:40]}' admitted while the user has the floor")
        if device_busy:
            self.violation(session, "over_assistant", f"'{reply.text[:40]}' admitted while another reply is in the air")
        for number, run in {(int(m[2]), int(m[3])) for m in WORD.finditer(reply.text) if m[4] != "p"}:
            claim, ended = account.obsolete.get(number), account.ended.get((number, run))
            wish = account.wishes[number]
            if account.repeats and (claim is None or claim.reason != "superseded" and account.hearings[number]):
                continue  # what was told may be asked for again
            if claim is not None:
                self.violation(session, "obsolete_spoken", f"q{number} admitted though {claim.reason}")
            elif (number, run) in account.late:
                self.violation(session, "obsolete_spoken", f"q{number} admitted though its run was cancelled and came back late")
            elif ended is not None and now - ended > SPEC[wish.capability].result_ttl_s + account.skew_s + EPS_S:
                self.violation(session, "obsolete_spoken", f"q{number} admitted {now - ended:.1f} s after its work ended")

    def heard(self, session: int, reply_id: str, chars: int) -> None:
        """The loudspeaker has played so many characters of the reply, and plays no more of it."""
        account = self.accounts[session]
        seen = account.replies[reply_id]
        seen.chars = chars
        text = seen.reply.text
        for match in WORD.finditer(text):
            if match.end() <= chars:
                number, run, kind, k = int(match[2]), int(match[3]), match[4], int(match[5])
                account.words[number, run, kind, k] += 1
                if kind == "w":
                    account.hearings[number].add(reply_id)
        self.tell(session, f"heard {chars} of {len(text)} of {reply_id[-4:]}")

    # -- when all is over

    def crash(self, session: int, committed: int, skew_s: float) -> None:
        """The process died: what it had not written may be undone."""
        account = self.accounts[session]
        account.crashes.append(self.clock.now())
        account.skew_s += abs(skew_s)
        account.obsolete = {n: c for n, c in account.obsolete.items() if c.position <= committed}
        for claim in account.obsolete.values():
            claim.position = 0
        for seen in account.replies.values():
            if not seen.report:
                seen.crashed = True

    def finish(self, session: int, states: dict[str, Task]) -> None:
        """`states`: what the session says of its tasks at the end."""
        account = self.accounts[session]
        self._count_hearings(account)
        for task in states.values():
            self.saw(session, "the ledger", [task.prose, task.text, repr(task.arguments)])
        for wish in account.wishes:
            if wish.parent is not None or not wish.task_id:
                continue
            task = states.get(wish.task_id)
            if task is None and not wish.promised:
                continue
            if task is None:
                self.violation(session, "lost", f"q{wish.number} was promised and is not known any more")
                continue
            said = task.arguments.get("q", "")  # prose: the first of what it asked for
            part = account.wishes[int(said.rpartition("q")[2])] if said and wish.capability == "prose" else wish
            self._check(account, part, task, states)
        for task in states.values():
            if task.id not in account.by_task and (task.live or not task.closed):
                self.violation(session, "nonterminal", f"{task.capability} is {task.execution}/{task.delivery}")
        self._check_parts(account, states)

    def _check_parts(self, account: Account, states: dict[str, Task]) -> None:
        """Requests that a planner made of one prose: each must be there and have an end of its own."""
        by_argument = {task.arguments.get("q"): task for task in states.values() if task.capability in SPEC}
        for wish in account.wishes:
            parent = wish.parent
            if parent is None or not parent.promised or not wish.planned:
                continue
            top = states.get(parent.task_id)
            if top is None or top.delivery_reason in ("cancelled", "session_closed") or top.execution_reason in ("cancelled", "session_closed"):
                continue
            task = by_argument.get(f"s{account.index}q{wish.number}")
            if task is None:
                regretted = any(not seen.reply.task_id and seen.at >= parent.at for seen in account.replies.values())
                if top.capability in SPEC and not account.closed_early and not (parent.refused and (regretted or account.crashes)):
                    # else it was told that it could not be taken, or the process died before it could say so
                    self.violation(account.index, "lost", f"q{wish.number}, a part of q{parent.number}, was never taken up")
                continue
            self._check(account, wish, task, states)

    def _count_hearings(self, account: Account) -> None:
        full: Counter = Counter()
        for (number, run), text in account.texts.items():
            ks = [int(m[5]) for m in WORD.finditer(text)]
            if ks:
                counts = [account.words[number, run, "w", k] for k in ks]
                full[number] += min(counts)
                repeated = sum(c - 1 for c in counts if c > 1)
                unsure = any(account.replies[r].report != "confirmed" for r in account.hearings[number])
                if repeated > REPEATED_WORDS and min(counts) < 2 and not account.repeats and not unsure:
                    self.violation(account.index, "duplicate", f"{repeated} words of q{number} heard again")
        spare = account.repeats
        for number, count in full.items():
            more = max(0, count - 1)
            used, spare = min(more, spare), spare - min(more, spare)
            if more > used:
                self.violation(account.index, "duplicate", f"q{number} heard in full {count} times")
        for number, replies in account.hearings.items():
            if len(replies) > 2 + 2 * account.repeats:
                self.violation(account.index, "duplicate", f"q{number} taken up again {len(replies) - 1} times")

    def _check(self, account: Account, wish: Wish, task: Task, states: dict[str, Task]) -> None:
        name = f"q{wish.number} ({task.capability}, {task.execution}/{task.delivery}: {task.delivery_reason})"
        if not task.closed:
            self.violation(account.index, "nonterminal", name)
            return
        wrong = self._why_lost(account, wish, task, states)
        if wrong:
            self.violation(account.index, "lost", f"{name}: {wrong}")

    def _why_lost(self, account: Account, wish: Wish, task: Task, states: dict[str, Task]) -> str:
        """'' where the outcome reached the user or was left out for a reason that the account bears out."""
        reason = task.delivery_reason
        if task.delivery is D.DELIVERED:
            return "" if self._told(account, wish, task) or self._unsure(account, task) else "not heard"
        if task.delivery is D.MERGED:
            other = states.get(reason.rpartition(" ")[2])
            if self._told(account, wish, task) or self._unsure(account, task) or other is None:
                return ""
            whose = account.by_task.get(other.id)
            told = whose is None or whose.capability == "repeat" or not self._why_lost(account, whose, other, states)
            return "" if told else "not heard with the other"
        if task.delivery is D.UNSPOKEN:
            if task.id not in account.shown and not (reason == "session_closed" and account.closed_early):
                return "neither spoken nor on the screen"
            return "" if self._unspoken(account, task, reason) else "unspoken for no reason of ours"
        return "" if self._dropped(account, wish, task, reason) else "dropped for no reason of ours"

    def _told(self, account: Account, wish: Wish, task: Task) -> bool:
        for (number, run), text in account.texts.items():
            if number == wish.number and text:
                ks = [int(m[5]) for m in WORD.finditer(text)]
                got = sum(account.words[number, run, "w", k] > 0 for k in ks)
                if got >= ENOUGH * len(ks) or account.words[number, run, "b", 0]:
                    return True
        seen = account.replies.get(task.reply)
        if seen is not None and seen.share >= ENOUGH:
            return True
        own, ear = _trigrams(task.text), set()
        for heard in account.replies.values():
            if heard.reply.task_id == task.id or heard.reply.id == task.reply:
                ear |= _trigrams(heard.reply.text[:heard.chars])
        return bool(own) and len(own & ear) >= ENOUGH * len(own)

    @staticmethod
    def _unsure(account: Account, task: Task) -> bool:
        """The device itself had told nothing reliable of the reply."""
        seen = account.replies.get(task.reply)
        return seen is not None and (seen.report in ("lost", "unconfirmed", "") or seen.crashed)

    @staticmethod
    def _unspoken(account: Account, task: Task, reason: str) -> bool:
        seen = account.replies.get(task.reply)
        if reason == "declined":
            return seen is not None and seen.report == "declined"
        if reason.startswith("interrupted"):
            return seen is not None and (seen.cut or seen.crashed)
        if reason == "not_started":
            return seen is not None and not seen.started
        if reason == "restart_unconfirmed":
            return bool(account.crashes)
        return reason == "too_many" and len(account.wishes) > 30 or reason == "session_closed" and account.closed_early

    @staticmethod
    def _dropped(account: Account, wish: Wish, task: Task, reason: str) -> bool:
        spec, asked = SPEC.get(task.capability), wish.at
        seen = account.replies.get(task.reply)
        if reason == "superseded":
            return any(t >= asked for t in account.corrections)
        if reason == "cancelled":
            return any(t >= asked for t in account.cancels)
        if reason == "expired":
            over = max((t for run, t in account.ended.items() if run[0] == wish.number and run not in account.late), default=asked)
            return account.ended_at.get(task.id, 0.0) - over + account.skew_s + 1.0 >= task.ttl_s
        if reason == "stopped":
            return seen is not None and seen.stopped
        if reason == "overtaken":
            return any(t > asked and c == task.capability for t, c in account.requests)
        if reason == "topic_changed":
            return spec is not None and spec.on_topic_change == "drop" and any(t > asked for t, _ in account.requests)
        if reason == "user_took_the_floor":
            return spec is not None and spec.on_interrupt == "cancel" and any(t > asked for t in account.turns)
        if reason == "aside":
            return wish.number in account.asides
        if reason == "restarted":  # its cancellation was under way when the process died, or it was an aside
            return bool(account.crashes) and (any(t >= asked for t in account.cancels) or wish.number in account.asides
                                              or spec is not None and spec.on_interrupt == "cancel")
        return reason == "session_closed" and account.closed_early


def _trigrams(text: str) -> set[str]:
    """For words of the harness's own, which are the same in many replies and may be heard in two pieces."""
    return {text[i:i + 3] for i in range(len(text) - 2)}
