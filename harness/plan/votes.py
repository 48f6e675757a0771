"""Which operation on a task some words ask for, by likeness: a second opinion beside the control words (control.py).

A linear probe over sentence vectors, learned from controls.toml against ready requests and asides. It knows nothing of the tasks:
whether there is one that the operation makes sense for, and which, is for the caller.
"""
import numpy as np

from harness.plan.bank import controls
from harness.plan.probe import Probe

OPERATIONS = ("cancel", "status", "repeat", "continue", "update")
REQUEST, ASIDE = len(OPERATIONS), len(OPERATIONS) + 1


class ControlVote:
    """`vectors`: of controls.toml, in its order; `requests` and `asides`: float32 [n, dim] of what is no operation on a task."""

    def __init__(self, vectors: np.ndarray, requests: np.ndarray, asides: np.ndarray):
        labels = [OPERATIONS.index(name) for name, texts in controls().items() for _ in texts]
        self._probe = Probe(np.concatenate([vectors, requests, asides]),
                            np.array(labels + [REQUEST] * len(requests) + [ASIDE] * len(asides)), ASIDE + 1)

    def scores(self, vector: np.ndarray) -> dict[str, float]:
        """Operation, "request" and "aside" -> score, near 1 for what the words are and near 0 else."""
        return dict(zip((*OPERATIONS, "request", "aside"), map(float, self._probe.scores(vector))))
