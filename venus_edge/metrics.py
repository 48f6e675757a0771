"""The one metrics registry of a process: counters, gauges and observed maxima, shown in Prometheus text form."""
import threading


class Metrics:
    """Names are `venus_<folder>_<what>_<unit>`; values are numbers. Cheap enough to leave on."""

    def __init__(self):
        self._values: dict[str, float] = {}
        self._lock = threading.Lock()

    def add(self, name: str, amount: float = 1) -> None:
        with self._lock:
            self._values[name] = self._values.get(name, 0) + amount

    def set(self, name: str, value: float) -> None:
        with self._lock:
            self._values[name] = value

    def peak(self, name: str, value: float) -> None:
        """Keep the largest value seen."""
        with self._lock:
            self._values[name] = max(self._values.get(name, value), value)

    def get(self, name: str, default: float = 0) -> float:
        return self._values.get(name, default)

    def snapshot(self) -> dict[str, float]:
        with self._lock:
            return dict(sorted(self._values.items()))

    def text(self) -> str:
        return "".join(f"{k} {v:g}\n" for k, v in self.snapshot().items())


METRICS = Metrics()
