"""When the device says hello: at once to a new agent, then with growing pauses until it is welcomed."""

FIRST_S, SOON_S, MAX_S = 0.25, 0.5, 2.0
EAGER = 20
"""So many hellos follow each other by SOON_S at most: an agent that is only starting welcomes us the moment it can."""
SHORT_SESSION_S = 5.0
"""A session that ends sooner is no reason to say hello at once: an agent whose engine is down ends each one in a moment."""


class Greeting:
    """`due(now)` is asked once per audio block while there is an agent and no session."""

    def __init__(self):
        self._next, self._wait, self._said = 0.0, FIRST_S, 0
        self._welcomed_at, self._short = 0.0, 0

    def new_agent(self, now: float) -> None:
        self._next, self._wait, self._short, self._said = now, FIRST_S, 0, 0

    def due(self, now: float) -> bool:
        """Whether to say it now; a True is not repeated before the next pause is over."""
        if now < self._next:
            return False
        self._next = now + self._wait
        self._said += 1
        self._wait = min(SOON_S if self._said < EAGER else MAX_S, 2 * self._wait)
        return True

    def welcomed(self, now: float) -> None:
        self._welcomed_at = now

    def session_lost(self, now: float) -> None:
        """The agent has ended or forgotten the session; a new one begins with a hello."""
        self._short = self._short + 1 if now - self._welcomed_at < SHORT_SESSION_S else 0
        self._next = now + (min(MAX_S, FIRST_S * 2 ** (self._short - 1)) if self._short else 0.0)
        self._wait = FIRST_S
