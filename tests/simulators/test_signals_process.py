"""The signal server as a process: READY, one-line errors, quick stop, traces."""

import json
import os
import signal
import socket
import subprocess
import sys
import time

import grpc
from kuksa.val.v2 import types_pb2 as t2
from kuksa.val.v2 import val_pb2 as v2
from kuksa.val.v2 import val_pb2_grpc as g2

COMMAND = [sys.executable, "-m", "simulators.car.signals"]


def _start(**env):
    return subprocess.Popen(COMMAND, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **env})


def test_process_says_ready_traces_and_stops_within_two_seconds(tmp_path):
    """READY carries the address and the tree's size; a signal's change is traced; SIGTERM ends it with status 0."""
    with _start(VENUS_BUS_ADDR="127.0.0.1:0", VENUS_BUS_TOKEN="t" * 20, VENUS_TRACE_DIR=str(tmp_path)) as process:
        try:
            word, _, fields = process.stdout.readline().partition(" ")
            ready = json.loads(fields)
            assert word == "READY" and ready["signals"] == 1263
            with grpc.insecure_channel(ready["addr"]) as channel:
                request = v2.ActuateRequest(
                    signal_id=t2.SignalID(path="Vehicle.Cabin.Infotainment.Media.Volume"), value=t2.Value(uint32=17))
                g2.VALStub(channel).Actuate(request, metadata=[("authorization", "Bearer " + "t" * 20)], timeout=5)
            time.sleep(0.3)
            begin = time.monotonic()
            process.send_signal(signal.SIGTERM)
            assert process.wait(5) == 0
            assert time.monotonic() - begin < 2.0
        finally:
            process.kill()
    rows = [json.loads(line) for line in (tmp_path / "signals.trace.jsonl").read_text().splitlines()]
    found = {(row["path"], row["value"]) for row in rows if row["ev"] == "signal"}
    assert ("Vehicle.Cabin.Infotainment.Media.Volume", 17) in found and ("Vehicle.Speed", 0.0) in found


def test_busy_port_is_one_line_and_status_2():
    """A taken port names the variable, prints no traceback, and exits with 2."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with _start(VENUS_BUS_ADDR=f"127.0.0.1:{taken.getsockname()[1]}") as process:
            out, err = process.communicate(timeout=20)
    lines = [line for line in err.splitlines() if line.startswith("config:")]
    assert process.returncode == 2 and len(lines) == 1 and "VENUS_BUS_ADDR" in lines[0]
    assert "Traceback" not in err and "READY" not in out
