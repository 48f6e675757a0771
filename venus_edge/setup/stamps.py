"""Which steps are done, and for which inputs: a second run compares hashes and does nothing."""

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path


def digest(*inputs: Path | str) -> str:
    """One hash over texts and the contents of files, in this order."""
    total = hashlib.sha256()
    for item in inputs:
        data = item.read_bytes() if isinstance(item, Path) else item.encode()
        total.update(hashlib.sha256(data).digest())
    return total.hexdigest()


class Stamps:
    """One small file per finished step; it is written only after the step's outputs are in place."""

    def __init__(self, folder: Path):
        self._folder = folder

    def fresh(self, step: str, inputs: str, outputs: Iterable[Path]) -> bool:
        """True if the step was done for these inputs and what it made is still there."""
        try:
            stamp = json.loads((self._folder / f"{step}.done").read_text())
        except (OSError, ValueError):
            return False
        return stamp.get("inputs") == inputs and all(path.exists() for path in outputs)

    def write(self, step: str, inputs: str) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        partial = self._folder / f"{step}.part"
        partial.write_text(json.dumps({"inputs": inputs}))
        os.replace(partial, self._folder / f"{step}.done")

    def clear(self, step: str) -> None:
        (self._folder / f"{step}.done").unlink(missing_ok=True)
