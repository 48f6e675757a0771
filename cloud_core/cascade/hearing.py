"""Recognition jobs of one session: at most one that counts and one given up, in threads, each giving a `Heard`."""
from concurrent.futures import Executor, Future
from dataclasses import dataclass, replace

import numpy as np

from cloud_core.cascade.endpoint import Heard, breaks_off, is_noise
from cloud_core.cascade.understand import Context, Policy, Understanding
from cloud_core.cascade.words import is_backchannel
from cloud_core.speech import Cancelled, Recogniser
from venus_edge.clock import Clock
from venus_edge.metrics import METRICS

PROMPT = ("Is there a cafe nearby? When will we be there? Are the windows open? Make it 21 degrees. Switch on the fan and the seat heating. "
          "Cancel the trip. Find a charging station.")
"""Sets the recogniser's style and vocabulary. It can leak into what is heard: no places, nothing that may not happen by mistake."""
PARTIAL_WINDOW_S, PARTIAL_TOKENS = 5.0, 6
"""A partial recognition only has to be told from a backchannel: half the window, few words."""


@dataclass(frozen=True)
class Judged:
    """A recognition and what the policy makes of it, if the turn ends here."""

    heard: Heard
    understanding: Understanding


@dataclass
class _Job:
    start: int
    end: int
    future: Future
    cancelled: bool = False


class Hearing:
    """Not thread-safe but for the work itself: the session's step owns it."""

    def __init__(self, recogniser: Recogniser, smart_turn, policy: Policy, pool: Executor, clock: Clock, lang: str):
        self._recogniser, self._smart_turn, self._policy = recogniser, smart_turn, policy
        self._pool, self._clock, self._lang = pool, clock, lang
        self._job: _Job | None = None
        self._partial: _Job | None = None
        self.judged: Judged | None = None
        self.partial: Heard | None = None
        self.partials = 0

    def start(self, samples: np.ndarray, start: int, end: int, context: Context) -> None:
        """Recognise [start, end) on speculation; a job that still runs is given up first."""
        self.give_up()
        job = _Job(start, end, None)
        job.future = self._pool.submit(self._work, job, samples, context)
        self._job = job

    def start_partial(self, samples: np.ndarray, start: int, end: int, most: int) -> None:
        """Recognise the first words while they are spoken; at most `most` times a turn, one at a time."""
        if self._partial is None and self.partials < most:
            self.partials += 1
            job = _Job(start, end, None)
            job.future = self._pool.submit(self._work_partial, job, samples)
            self._partial = job

    @property
    def busy(self) -> bool:
        return self._job is not None

    @property
    def until(self) -> int | None:
        """End of the audio that the running or finished recognition covers."""
        return self._job.end if self._job else self.judged.heard.end if self.judged else None

    def poll(self) -> None:
        """Take what is finished; a failure of the recogniser is raised here, in the session's own step."""
        if self._job is not None and self._job.future.done():
            job, self._job = self._job, None
            self.judged = job.future.result()
        if self._partial is not None and self._partial.future.done():
            job, self._partial = self._partial, None
            self.partial = job.future.result() or self.partial

    def give_up(self) -> None:
        """Speech went on: whatever was or is being recognised is stale."""
        if self._job is not None or self.judged is not None:
            METRICS.add("venus_cascade_recognitions_stale_total")
        if self._job is not None:
            self._job.cancelled = True
        self._job, self.judged = None, None

    def clear(self) -> None:
        """The turn is over: forget everything of it."""
        for job in (self._job, self._partial):
            if job is not None:
                job.cancelled = True
        self._job = self._partial = self.judged = self.partial = None
        self.partials = 0

    def _work(self, job: _Job, samples: np.ndarray, context: Context) -> Judged | None:
        begun = self._clock.now()
        try:
            out = self._recogniser.transcribe(samples, self._lang, PROMPT, cancelled=lambda: job.cancelled)
        except Cancelled:
            return None
        heard_at = self._clock.now()
        heard = Heard(job.start, job.end, out.text, out.confidence, out.no_speech, backchannel=is_backchannel(out.text),
                      recognition_ms=(heard_at - begun) * 1e3)
        understanding = self._policy.understand(out.text, context)
        complete = self._policy.complete(out.text, context)
        heard = replace(heard, complete=complete, may_go_on=understanding.may_go_on, policy_ms=(self._clock.now() - heard_at) * 1e3)
        if not (complete or heard.backchannel or is_noise(heard) or breaks_off(out.text)) and not job.cancelled:
            heard = replace(heard, finished=self._smart_turn(samples.astype(np.float32) / 32768.0))
        return Judged(heard, understanding)

    def _work_partial(self, job: _Job, samples: np.ndarray) -> Heard | None:
        try:
            out = self._recogniser.transcribe(samples, self._lang, window_s=PARTIAL_WINDOW_S, max_tokens=PARTIAL_TOKENS,
                                              guard=False, cancelled=lambda: job.cancelled)
        except Cancelled:
            return None
        return Heard(job.start, job.end, out.text, out.confidence, out.no_speech,
                     backchannel=is_backchannel(out.text))
