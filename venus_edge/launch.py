"""Dying with the parent: for our own processes, and for programs that aren't ours.

    python -m venus_edge.launch PROGRAM [ARGUMENT ...]

The wish survives exec, so the program keeps this process's id and costs no further process.
"""
import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def die_with_parent(sig: int = signal.SIGTERM) -> None:
    """Ask the kernel to end this process with `sig` when its parent ends (Linux), so that nothing is left behind.

    VENUS_SUPERVISED holds the parent's id: a parent that was gone before we could ask is noticed by it.
    """
    if sys.platform != "linux":
        return
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(sig))
    parent = os.environ.get("VENUS_SUPERVISED", "")
    if parent.isdigit() and int(parent) > 1 and os.getppid() != int(parent):
        sys.exit("the supervisor has ended")


def main(argv: list[str]) -> None:
    die_with_parent(signal.SIGKILL)  # a foreign program may take its time over SIGTERM, and nobody is left to insist
    try:
        os.execvp(argv[0], argv)
    except OSError as err:
        sys.exit(f"{argv[0]}: can't be started ({err.strerror})")


if __name__ == "__main__":
    main(sys.argv[1:])
