"""Between protobuf messages and the harness's types. What comes from a client is checked here, field by field, by name."""
import json
import math
import re
from typing import Any, Iterable, Iterator

from harness.capture.calls import MAX_CALLS
from harness.deliver.desk import PreparedReply
from harness.errors import BadRequest
from harness.evidence import MAX_PROSE_CHARS, REPAIRS, DelegateRequest, Evidence, HeardWords, UserWords
from harness.deliver.gate import Moment
from harness.plan.contracts import Contract
from harness.service import delegation_pb2 as pb
from harness.service import views
from harness.task import SkillSpec, Task

LANGUAGES = ("en", "zh")
ZONES = ("driver", "passenger", "rear_left", "rear_right", "unknown")
MAX_ARGUMENTS_BYTES = 1 << 16
MAX_WORDS = 64
MAX_WORDS_CHARS = 2000
MAX_WAIT_MS = 60_000
MAX_POSITION = 1 << 53
MAX_TURN = (1 << 31) - 1
MAX_REPLY_CHARS = 8192
_KEY = re.compile(r"[A-Za-z0-9._:/-]{1,120}")
_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
_CAPABILITY = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,127}")
_PROVENANCE = re.compile(r"[a-z][a-z0-9_]{0,31}")


def bad(field: str, why: str, allowed: str) -> BadRequest:
    return BadRequest(f"{field}: {why}; allowed: {allowed}", field=field, allowed=allowed)


def _choice(field: str, value: str, allowed: tuple[str, ...], default: str) -> str:
    if value and value not in allowed:
        raise bad(field, "not known", ", ".join(allowed))
    return value or default


def _number(field: str, value: int, most: int = MAX_POSITION) -> int:
    if not 0 <= value <= most:
        raise bad(field, str(value), f"0 to {most}")
    return value


def _text(field: str, value: str, most: int) -> str:
    if len(value) > most:
        raise bad(field, f"{len(value)} characters", f"at most {most}")
    return value


def session_name(value: str) -> str:
    """A session id as a client may choose it."""
    if not _NAME.fullmatch(value):
        raise bad("session_id", f"{len(value)} characters", "1 to 64 letters, digits, '.', '_' and '-'")
    return value


def lang_from(value: str, default: str) -> str:
    return _choice("lang", value, LANGUAGES, default)


def wait_from(value: int) -> float:
    return _number("wait_ms", value, MAX_WAIT_MS) / 1000


# -- requests


def request_to(delegate: views.Delegate) -> pb.Request:
    """Raises BadRequest for arguments that are no JSON."""
    calls = []
    for i, (capability, arguments) in enumerate(delegate.calls):
        try:
            text = json.dumps(arguments, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError) as err:
            raise bad(f"calls[{i}].arguments", type(err).__name__, "JSON values") from None
        calls.append(pb.Call(capability=capability, arguments_json=text))
    words = pb.Words(
        opened_pos=delegate.opened_pos, opened_seq=delegate.opened_seq,
        user=[pb.UserWords(turn=w.turn, text=w.text, start=w.start, end=w.end, speaker=w.speaker) for w in delegate.user],
        assistant=[pb.HeardWords(seg=w.seg, text=w.text, end=w.end) for w in delegate.assistant if w.confirmed])
    return pb.Request(key=delegate.key, turn=delegate.turn, prose=delegate.prose, calls=calls, repair=delegate.repair, lang=delegate.lang,
                      zone=delegate.zone, provenance=delegate.provenance, evidence=words)


def requests_from(m: pb.Request, lang: str) -> tuple[list[DelegateRequest], Evidence]:
    """One request for the prose, or one for each call, and the evidence they share. `lang`: the session's. Raises BadRequest."""
    if not _KEY.fullmatch(m.key):
        raise bad("request.key", f"{len(m.key)} characters", "1 to 120 letters, digits, '.', '_', ':', '/' and '-'")
    repair = _choice("request.repair", m.repair, REPAIRS, "new")
    if len(m.calls) > MAX_CALLS:
        raise bad("request.calls", f"{len(m.calls)} calls", f"0 to {MAX_CALLS}")
    prose = _text("request.prose", m.prose, MAX_PROSE_CHARS)
    if not m.calls and not prose.strip() and repair in ("new", "update"):
        raise bad("request.prose", "empty, and there are no calls", "the user's words, or calls")
    if m.provenance and not _PROVENANCE.fullmatch(m.provenance):
        raise bad("request.provenance", "not a name", "live_speech, or 1 to 32 small letters, digits and '_'")
    evidence = _evidence_from(m.evidence)
    shared: dict[str, Any] = {
        "turn": _number("request.turn", m.turn, MAX_TURN), "opened_pos": evidence.opened_pos, "opened_seq": evidence.opened_seq, "prose": prose,
        "repair": repair, "lang": _choice("request.lang", m.lang, LANGUAGES, lang), "zone": _choice("request.zone", m.zone, ZONES, "driver"),
        "provenance": m.provenance or "unknown"}
    if not m.calls:
        return [DelegateRequest(key=m.key, **shared)], evidence
    several = len(m.calls) > 1
    return [DelegateRequest(key=f"{m.key}#{i + 1}" if several else m.key, capability=_capability(f"request.calls[{i}].capability", call),
                            arguments=_arguments(f"request.calls[{i}].arguments_json", call.arguments_json), **shared)
            for i, call in enumerate(m.calls)], evidence


def _capability(field: str, call: pb.Call) -> str:
    if not _CAPABILITY.fullmatch(call.capability):
        raise bad(field, f"{len(call.capability)} characters", "1 to 128 letters, digits, '.', '_' and '-', a letter first")
    return call.capability


def _arguments(field: str, text: str) -> dict:
    size = len(text.encode())
    if size > MAX_ARGUMENTS_BYTES:
        raise bad(field, f"{size} bytes", f"at most {MAX_ARGUMENTS_BYTES}")
    try:
        value = json.loads(text or "{}", parse_constant=_no_constant)
        encoded = json.dumps(value, ensure_ascii=False, allow_nan=False).encode()  # neither 1e999 nor a lone surrogate can be kept
    except (ValueError, RecursionError):
        raise bad(field, "not JSON", "a JSON object") from None
    if not isinstance(value, dict) or not encoded:
        raise bad(field, type(value).__name__, "a JSON object")
    return value


def _no_constant(text: str) -> float:
    raise ValueError(text)


def _evidence_from(m: pb.Words) -> Evidence:
    for name, rows in (("user", m.user), ("assistant", m.assistant)):
        if len(rows) > MAX_WORDS:
            raise bad(f"request.evidence.{name}", f"{len(rows)} entries", f"at most {MAX_WORDS}")
    user = [UserWords(_number(f"request.evidence.user[{i}].turn", w.turn, MAX_TURN),
                      _text(f"request.evidence.user[{i}].text", w.text, MAX_WORDS_CHARS),
                      _number(f"request.evidence.user[{i}].start", w.start), _number(f"request.evidence.user[{i}].end", w.end),
                      _text(f"request.evidence.user[{i}].speaker", w.speaker, 64) or "occupant") for i, w in enumerate(m.user)]
    heard = [HeardWords(_text(f"request.evidence.assistant[{i}].seg", w.seg, 64),
                        _text(f"request.evidence.assistant[{i}].text", w.text, MAX_WORDS_CHARS),
                        _number(f"request.evidence.assistant[{i}].end", w.end)) for i, w in enumerate(m.assistant)]
    return Evidence.freeze(_number("request.evidence.opened_pos", m.opened_pos), _number("request.evidence.opened_seq", m.opened_seq), user, heard)


# -- tasks


def utf8(text: str) -> str:
    """A lone surrogate, which a planner can produce, would be refused by protobuf."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def task_to(task: Task, now: float, words: bool) -> pb.Task:
    """`now`: the harness's clock; `words`: whether the reader may know what was said and what is to be said."""
    made = pb.Task(
        id=task.id, key=task.key, lineage=task.lineage, version=task.version, capability=task.capability, turn=task.turn, lang=task.lang,
        zone=task.zone, provenance=task.provenance, execution=task.execution, execution_reason=task.execution_reason, delivery=task.delivery,
        delivery_reason=task.delivery_reason, replaces=task.replaces, superseded_by=task.superseded_by, reply_id=task.reply,
        age_s=max(0.0, now - task.accepted_at), ended_s=None if task.ended_at is None else max(0.0, now - task.ended_at))
    if words:
        made.words.CopyFrom(pb.TaskWords(prose=utf8(task.prose), arguments_json=utf8(json.dumps(task.arguments, ensure_ascii=False)),
                                         kind=task.kind, text=utf8(task.text), rest=utf8(task.rest)))
    return made


def task_from(m: pb.Task) -> views.TaskView:
    w = m.words
    return views.TaskView(
        m.id, m.key, m.lineage, m.version, m.capability, m.turn, m.lang, m.zone, m.provenance, m.execution, m.execution_reason, m.delivery,
        m.delivery_reason, m.replaces, m.superseded_by, m.reply_id, m.age_s, m.ended_s if m.HasField("ended_s") else None, m.forgotten,
        w.prose, w.arguments_json, w.kind, w.text, w.rest)


def pages(tasks: Iterable[Task], now: float, words: bool, most_bytes: int) -> Iterator[pb.TaskPage]:
    """The tasks in pages of about `most_bytes` at most; always at least one page."""
    page, size = pb.TaskPage(), 0
    for task in tasks:
        made = task_to(task, now, words)
        if page.tasks and size + made.ByteSize() > most_bytes:
            page.next = page.tasks[-1].id
            yield page
            page, size = pb.TaskPage(), 0
        page.tasks.append(made)
        size += made.ByteSize()
    yield page


# -- delivery


def moment_from(m: pb.Moment) -> Moment:
    return Moment(_number("moment.pos", m.pos), m.user_speaking, m.turn_open, m.assistant_speaking, _number("moment.turn", m.turn, MAX_TURN))


def moment_to(m: Moment) -> pb.Moment:
    return pb.Moment(pos=m.pos, user_speaking=m.user_speaking, turn_open=m.turn_open, assistant_speaking=m.assistant_speaking, turn=m.turn)


def check_mark(mark: pb.Started | pb.Finished | pb.Declined, kind: str) -> None:
    """Raises BadRequest."""
    if not mark.reply_id or len(mark.reply_id) > 64:
        raise bad(f"{kind}.reply_id", f"{len(mark.reply_id)} characters", "the id of a reply of this session")
    for name, most in (("seg", 64), ("heard", MAX_REPLY_CHARS), ("unheard", MAX_REPLY_CHARS)):
        _text(f"{kind}.{name}", getattr(mark, name, ""), most)


def reply_to(r: PreparedReply) -> pb.Reply:
    return pb.Reply(id=r.id, task_id=r.task_id, task_version=r.task_version, text=utf8(r.text), kind=r.kind, lang=r.lang, turn=r.turn)


def reply_from(m: pb.Reply) -> PreparedReply:
    return PreparedReply(m.id, m.task_id, m.task_version, m.text, m.kind, m.lang, m.turn)


# -- capabilities


def capability_to(contract: Contract, spec: SkillSpec) -> pb.Capability:
    return pb.Capability(
        id=contract.id, kind=contract.kind, summary=contract.summary, avoid=contract.avoid,
        arguments_schema_json=json.dumps(contract.schema, ensure_ascii=False), group=contract.group, derived=sorted(contract.derived),
        timeout_s=spec.timeout_s, cancellable=spec.cancellable, slow=spec.slow)


def capability_from(m: pb.Capability) -> views.CapabilityView:
    return views.CapabilityView(m.id, m.kind, dict(m.summary), dict(m.avoid), json.loads(m.arguments_schema_json or "{}"), m.group,
                                frozenset(m.derived), m.timeout_s if math.isfinite(m.timeout_s) else 0.0, m.cancellable, m.slow)


def session_from(m: pb.SessionInfo) -> views.SessionView:
    return views.SessionView(m.session_id, m.tenant, m.lang, m.existed, m.idle_ttl_s)
