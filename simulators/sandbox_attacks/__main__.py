"""One attack in this plain process: `python -m simulators.sandbox_attacks NAME TARGET`; prints what it got."""
import socket
import sys

from simulators.sandbox_attacks import Target, load


def main(argv: list[str]) -> int:
    if argv[0].startswith("code_"):
        from simulators.sandbox_attacks.at_import import AFTER, GOT, attempt

        print(GOT if argv[0] == "code_import" else attempt(AFTER, Target.from_json(argv[1])))
        return 0
    attack = load()[argv[0]]
    if argv[0] in ("unpickle", "nested", "oversized"):
        print(_careless_host(attack, Target.from_json(argv[1])))
        return 0
    print("ready", flush=True)
    print(attack.run(Target.from_json(argv[1])), flush=True)
    return 0


def _careless_host(attack, target: Target) -> str:
    """What these attacks do to a host that takes any message and unpickles it, or parses any JSON."""
    import json
    import os
    import pickle
    import threading

    ours, theirs = socket.socketpair()
    sender = threading.Thread(target=attack.run, args=(target,), daemon=True)
    received = b""
    ours.settimeout(1.5)
    sender.start()
    try:
        while more := ours.recv(1 << 20):
            received += more
            if len(received) > 16 << 20:
                break
    except TimeoutError:
        pass
    theirs.close()
    if attack.name == "unpickle":
        pickle.loads(received).close()
        path = os.path.join(target.outside, "unpickled")
        got = "code ran in the host" if os.path.exists(path) else ""
        os.unlink(path)
        return got
    if attack.name == "nested":
        try:
            json.loads(received[4:])
        except RecursionError:
            return "the parser's stack ran over"
        return ""
    return f"the host took {len(received) >> 20} MB" if len(received) > 4 << 20 else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
