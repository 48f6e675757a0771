"""Model identity: the very files of the lock, or one clear refusal."""

import hashlib
import os

import pytest

from venus_edge.models import Lock, MissingModel, ModelFile, ModelMismatch, Wheel, read_lock, verify
from venus_edge.errors import VenusError


def a_lock(content: bytes = b"weights") -> Lock:
    wanted = ModelFile("model.bin", hashlib.sha256(content).hexdigest(), len(content), (("w", "w/model.bin"),))
    return Lock({"w": Wheel("w", "1", "0" * 64, 1, "MIT", "us")}, {"ears": (wanted,)})


def put(folder, content: bytes):
    path = folder / "ears" / "model.bin"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    return path


def test_the_locked_file_is_accepted(tmp_path):
    put(tmp_path, b"weights")
    verify("ears", lock=a_lock(), folder=tmp_path)


def test_another_file_is_refused_with_its_name_and_both_hashes(tmp_path):
    put(tmp_path, b"poison")
    with pytest.raises(ModelMismatch) as refused:
        verify("ears", lock=a_lock(), folder=tmp_path)
    for part in ("ears/model.bin", hashlib.sha256(b"poison").hexdigest(), hashlib.sha256(b"weights").hexdigest()):
        assert part in str(refused.value)
    assert isinstance(refused.value, VenusError) and not refused.value.retryable


def test_a_file_that_changes_after_it_was_checked_is_refused(tmp_path):
    path = put(tmp_path, b"weights")
    verify("ears", lock=a_lock(), folder=tmp_path)
    before = path.stat()
    path.write_bytes(b"weight5")  # the same length
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    with pytest.raises(ModelMismatch):
        verify("ears", lock=a_lock(), folder=tmp_path)


def test_a_seal_of_another_lock_is_not_trusted(tmp_path):
    put(tmp_path, b"weights")
    verify("ears", lock=a_lock(), folder=tmp_path)
    with pytest.raises(ModelMismatch):
        verify("ears", lock=a_lock(b"newer weights"), folder=tmp_path)


def test_a_torn_seal_only_costs_another_hashing(tmp_path):
    put(tmp_path, b"weights")
    (tmp_path / ".ears.checked").write_text('{"model')
    verify("ears", lock=a_lock(), folder=tmp_path)


def test_a_missing_file_and_an_unknown_model_are_named(tmp_path):
    with pytest.raises(MissingModel, match="ears/model.bin"):
        verify("ears", lock=a_lock(), folder=tmp_path)
    with pytest.raises(MissingModel, match="'eyes'.*ears"):
        verify("eyes", lock=a_lock(), folder=tmp_path)


@pytest.mark.parametrize("target", ["../out.bin", "/etc/out.bin"])
def test_a_lock_cannot_name_a_file_outside_its_model(tmp_path, target):
    text = f"""
[wheel.w]
version = "1"
sha256 = "0"
size = 1
licence = "MIT"
source = "us"
[model.ears]
files = [{{ path = "{target}", size = 1, sha256 = "0", from = ["w:m"] }}]
"""
    path = tmp_path / "models.lock"
    path.write_text(text)
    with pytest.raises(ModelMismatch, match="leads out"):
        read_lock(path)


def test_the_lock_of_this_checkout_names_every_licence_and_a_full_hash():
    lock = read_lock()
    assert {"whisper-base", "silero", "smart-turn", "kokoro", "people"} <= set(lock.models)
    for wheel in lock.wheels.values():
        assert wheel.licence and wheel.source and len(wheel.sha256) == 64
    for model, files in lock.models.items():
        assert any(wanted.path == "LICENSE" for wanted in files), f"{model} comes without its licence"
        assert all(len(wanted.sha256) == 64 and wanted.size > 0 for wanted in files)


@pytest.mark.parametrize("model", ["whisper-base", "silero", "smart-turn", "kokoro", "people"])
def test_the_models_on_this_machine_are_the_locked_ones(model):
    verify(model, again=True)
