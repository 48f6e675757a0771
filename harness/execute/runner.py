"""Runs each call of a skill in a process of its own, with a hard deadline, on the session worker's event loop.

A zygote (worker_main.py) holds the imported skills and the opened maps; two forked processes wait ready, so a call costs about
2 ms more than the skill itself. At the deadline the skill is asked to stop, 150 ms later its process is killed; a cancelled
call kills at once. From then on no effect of it reaches the vehicle. At most eight calls at a time (BusyError).
"""
import asyncio
import json
import logging
from pathlib import Path
from typing import Callable

from harness.execute import pipe
from harness.execute.bridge import HostBridge
from harness.execute.pool import Process, ProcessPool
from harness.execute.registry import Registry, RegistrySpec
from harness.host.providers import VehicleBus
from harness.sandbox.policy import Layer, Sandbox
from harness.skill import SkillError
from harness.task import SkillCall, SkillOutcome
from venus_edge.clock import Clock, SystemClock
from venus_edge.errors import BusyError, VenusError
from venus_edge.metrics import METRICS

CALLS_LIMIT = 8
GRACE_S = 0.15
OUTPUT_LIMIT = 256 * 1024
"""Bytes of progress and result that one call may send."""
HOST_CALLS_LIMIT = 500
ERROR_CODES = frozenset("invalid_args not_permitted unsafe_now needs_confirmation needs_input unavailable not_found timeout "
                        "cancelled internal".split())
OnProgress = Callable[[str, str], None]
"""Called with the wording key and the sentence."""
log = logging.getLogger(__name__)


class SkillRunner:
    """The skill processes of one session worker."""

    def __init__(self, spec: RegistrySpec | Registry, vehicle: Callable[[SkillCall], VehicleBus], clock: Clock | None = None,
                 cache_dir: Path | None = None, sandbox: Sandbox | None = None):
        """`vehicle(call)` makes the bus that carries this call's effects (its task, zone and idempotency key).

        `sandbox`: how the skill processes are locked (harness.sandbox); start() raises SandboxMissing where that can't be had."""
        self.registry = spec if isinstance(spec, Registry) else Registry.from_spec(spec)
        self._vehicle, self._clock = vehicle, clock or SystemClock()
        self._pool = ProcessPool(self.registry.spec, cache_dir, sandbox)
        self._active = 0
        self._retiring: set[asyncio.Future] = set()

    async def start(self) -> None:
        """Make ready; raises ConfigError with what stopped it (a missing map names its file)."""
        await self._pool.start()

    async def close(self) -> None:
        """End every skill process; calls that still run end with an error."""
        await self._pool.close()
        await asyncio.gather(*self._retiring, return_exceptions=True)

    @property
    def layers(self) -> tuple[Layer, ...]:
        """What locks the skill processes, as the first one reported it; () without a sandbox or before the start."""
        return self._pool.layers

    async def run(self, call: SkillCall, on_progress: OnProgress = lambda outcome, text: None) -> SkillOutcome:
        """Run one call to its end. Raises BusyError, and CancelledError after the process is confirmed dead."""
        began = self._clock.now()
        try:
            skill = self.registry.get(call.skill_id)
            self.registry.validate(call.skill_id, call.arguments)
        except SkillError as err:
            return self._failure(call, err.code, err.message, err.data, began=began)
        if self._active >= CALLS_LIMIT:
            METRICS.add("venus_harness_skill_calls_refused_total")
            raise BusyError(f"{CALLS_LIMIT} skill calls are running; at most {CALLS_LIMIT}")
        self._active += 1
        timeout_s = min(call.timeout_s, skill.timeout_s) if call.timeout_s else skill.timeout_s
        bridge = HostBridge(call.skill_id, skill.effects, self._vehicle(call), self._clock, began + timeout_s)
        talk = _Talk(self, call, bridge, on_progress, timeout_s)
        running = asyncio.ensure_future(talk.run())
        timer = asyncio.ensure_future(self._clock.sleep(timeout_s))
        try:
            await asyncio.wait({running, timer}, return_when=asyncio.FIRST_COMPLETED)
            if not running.done():
                bridge.stop()
                talk.ask_to_stop()
                timer = asyncio.ensure_future(self._clock.sleep(GRACE_S))
                await asyncio.wait({running, timer}, return_when=asyncio.FIRST_COMPLETED)
                METRICS.add("venus_harness_skill_timeouts_total")
                return self._failure(call, "timeout", f"did not end within {timeout_s} s", {}, began=began, started=talk.started)
            answer = running.result()
        except ConnectionError:
            METRICS.add("venus_harness_skill_crashes_total")
            return self._failure(call, "internal", "the skill's process ended", {}, began=began, started=talk.started)
        except ValueError as err:  # FrameTooLarge, broken JSON, a limit
            METRICS.add("venus_harness_skill_crashes_total")
            return self._failure(call, "internal", f"answer refused: {err}", {}, began=began, started=talk.started)
        except VenusError as err:  # no process to run it in
            return self._failure(call, "internal", err.message, {}, began=began, started=talk.started)
        finally:
            bridge.stop()
            timer.cancel()
            ended_itself = running.done()
            running.cancel()
            retiring = asyncio.ensure_future(self._retire(talk, running))
            self._retiring.add(retiring)
            retiring.add_done_callback(self._retiring.discard)
            if not ended_itself:  # else the answer need not wait for the burial
                await asyncio.shield(retiring)
        return self._judge(call, answer, began)

    async def _retire(self, talk: "_Talk", running: asyncio.Future) -> None:
        """Free the call's place once its process is dead."""
        try:
            if talk.process is not None and not (talk.again and self._pool.take_back(talk.process)):
                await self._pool.kill(talk.process)
            await asyncio.gather(running, return_exceptions=True)
        finally:
            self._active -= 1
            self._pool.refill()

    def _judge(self, call: SkillCall, answer: dict, began: float) -> SkillOutcome:
        memory = answer.get("memory") if isinstance(answer.get("memory"), dict) else None
        if answer["t"] == "failed":
            data = answer.get("data") if isinstance(answer.get("data"), dict) else {}
            return self._failure(call, str(answer.get("code")), str(answer.get("message", "")), data, began=began, started=True,
                                 memory=memory)
        outcome = str(answer.get("outcome", "done"))
        fields, result = (answer.get(key) if isinstance(answer.get(key), dict) else {} for key in ("fields", "result"))
        METRICS.add("venus_harness_skill_done_total")
        return SkillOutcome(ok=True, outcome=outcome, text=self.registry.say(call.skill_id, outcome, call.lang, fields),
                            fields=fields, result=result, memory=memory, started=True, took_s=self._clock.now() - began)

    def _failure(self, call: SkillCall, code: str, why: str, data: dict, *, began: float, started: bool = False,
                 memory: dict | None = None) -> SkillOutcome:
        code = code if code in ERROR_CODES else "internal"
        METRICS.add(f"venus_harness_skill_failed_{code}_total")
        if code == "internal":  # other codes are the user's business; their messages may hold the user's words
            log.error("task %s: skill %s failed: %s", call.task_id, call.skill_id, why)
        return SkillOutcome(ok=False, outcome=code, code=code, text=self.registry.say(call.skill_id, code, call.lang, data),
                            fields=data, memory=memory, started=started, took_s=self._clock.now() - began)


class _Talk:
    """The conversation with the process of one call."""

    def __init__(self, runner: SkillRunner, call: SkillCall, bridge: HostBridge, on_progress: OnProgress, timeout_s: float):
        self._runner, self._call, self._bridge = runner, call, bridge
        self._on_progress, self._timeout_s = on_progress, timeout_s
        self._stopping = False
        self.process: Process | None = None
        self.started = False
        self.again = False
        """Whether the process may serve another call."""

    def ask_to_stop(self) -> None:
        """The soft end: the skill may tidy up, but nothing of it reaches the vehicle any more."""
        self._stopping = True
        self._send({"t": "cancel"})

    def _send(self, message: dict) -> None:
        if self.process is None:
            return
        try:
            data = pipe.encode(message)
        except (pipe.FrameTooLarge, TypeError, ValueError):
            data = pipe.encode({"t": "answer", "id": message.get("id"), "ok": False,
                                "error": {"code": "unavailable", "message": "the host's answer does not fit a message"}})
        self.process.channel.send(data)

    async def run(self) -> dict:
        """The skill's last message; raises ConnectionError or ValueError when there is no proper one."""
        call = self._call
        self.process = await self._runner._pool.take()
        self._send({"t": "call", "skill": call.skill_id, "arguments": call.arguments, "task": call.task_id,
                    "version": call.task_version, "lang": call.lang, "zone": call.zone, "memory": call.memory,
                    "timeout_s": self._timeout_s})
        spent = host_calls = 0
        while True:
            message = await self.process.channel.read()
            kind = message.get("t")
            if kind == "host":
                host_calls += 1
                if host_calls > HOST_CALLS_LIMIT:
                    raise ValueError(f"more than {HOST_CALLS_LIMIT} host calls")
                self._bridge.serve(message, self._send)
                continue
            if kind == "started":
                self.started = True
                continue
            spent += len(json.dumps(message))
            if spent > OUTPUT_LIMIT:
                raise ValueError(f"more than {OUTPUT_LIMIT} bytes of output")
            if kind == "progress":
                self._progress(message)
            elif kind in ("done", "failed"):
                self.again = message.get("again") is True and not self._stopping
                return message
            else:
                raise ValueError(f"no message {kind!r}")

    def _progress(self, message: dict) -> None:
        if self._stopping:
            return
        fields, outcome = message.get("fields"), str(message.get("outcome"))
        text = self._runner.registry.say(self._call.skill_id, outcome, self._call.lang, fields if isinstance(fields, dict) else {})
        self._on_progress(outcome, text)
