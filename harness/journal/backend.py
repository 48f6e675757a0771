"""What a durable store asks of the place it writes to: a file or a server, used by the writer thread alone."""
from typing import TYPE_CHECKING, NamedTuple, Protocol, Sequence

if TYPE_CHECKING:
    from harness.journal.writer import DurableJournal


class Op(NamedTuple):
    """One thing to be done to a store. `what`: session | record | forget | note | drop; `key`: task id or the note's key;
    `text`: JSON, None to remove a note."""

    what: str
    journal: "DurableJournal"
    key: str = ""
    n: int = 0
    text: str | None = None


class Backend(Protocol):
    """Where the writer thread writes. All methods run on that thread and may block; a refusal is any Exception."""

    name: str
    """What the store is, for messages: a file or a server's address, without secrets."""
    rest_s: float | None
    """Call `rest` after this long without work; None while there is nothing to do."""

    def open(self) -> Sequence[tuple[int, str, str]]:
        """(number, session id, tenant) of the sessions left over. Raises ConfigError naming the file or server."""
        ...

    def write(self, ops: Sequence[Op]) -> None:
        """All or nothing, in order; may be asked again for what it did already. Raises Gone where no retry can help."""
        ...

    def records(self, journal: "DurableJournal") -> list[tuple[int, str, str]]:
        """(n, task id, text), in order of n."""
        ...

    def notes(self, journal: "DurableJournal") -> list[tuple[str, str]]:
        """(key, text)."""
        ...

    def rest(self) -> None:
        """Raises nothing but Gone."""
        ...

    def close(self) -> None:
        """Also after an `open` that failed. Must not raise."""
        ...


class Gone(Exception):
    """The store is not ours any more: nothing that is still queued can ever be written."""
