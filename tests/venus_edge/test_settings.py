"""Settings: one validated place; a bad value is one line that names the field and its source."""
import json

import pytest

from venus_edge.commands import config
from venus_edge.errors import ConfigError
from venus_edge.settings import Settings


def test_environment_wins_over_the_file(tmp_path):
    path = tmp_path / "venus.toml"
    path.write_text('room = "a"\nlivekit_port = 7000\n')
    s = Settings.load(str(path), {"VENUS_ROOM": "b"})
    assert (s.room, s.livekit_port) == ("b", 7000)


@pytest.mark.parametrize("text, env, words", [
    ('rom = "a"\n', {}, ["unknown setting 'rom'", "allowed", "room"]),
    ("", {"VENUS_LIVEKIT_PORT": "99999"}, ["VENUS_LIVEKIT_PORT", "livekit_port", "65535"]),
    ("", {"VENUS_LANGUAGE": "fr"}, ["VENUS_LANGUAGE", "en"]),
    ("room = [", {}, ["not TOML"]),
    ("", {"VENUS_LIVEKIT_SECRET": "short-and-secret"}, ["livekit_secret"]),
    ("", {"VENUS_LIVEKIT_KEY": 'a": "b'}, ["VENUS_LIVEKIT_KEY", "livekit_key"]),
])
def test_bad_settings_name_the_field_and_what_is_allowed(tmp_path, text, env, words):
    path = tmp_path / "venus.toml"
    path.write_text(text)
    with pytest.raises(ConfigError) as err:
        Settings.load(str(path), env)
    assert all(w in err.value.message for w in words), err.value.message
    assert "short-and-secret" not in err.value.message


def test_a_missing_file_is_named():
    with pytest.raises(ConfigError, match="nowhere.toml"):
        Settings.load("nowhere.toml", {})


def test_a_file_that_cannot_be_read_or_is_no_text_is_named(tmp_path):
    with pytest.raises(ConfigError, match="can't be read"):
        Settings.load(str(tmp_path), {})
    (tmp_path / "bad.toml").write_bytes(b"room = \"\xff\xfe\"")
    with pytest.raises(ConfigError, match="bad.toml: not TOML"):
        Settings.load(str(tmp_path / "bad.toml"), {})


def test_secrets_are_never_shown():
    shown = Settings.load(environ={"VENUS_LIVEKIT_SECRET": "x" * 40, "VENUS_ENGINE_TOKEN": "y"}).shown()
    assert shown["livekit_secret"] == shown["engine_token"] == "***"


def test_a_misspelt_variable_is_refused_by_config_check(monkeypatch):
    monkeypatch.setenv("VENUS_LIVEKIT_PROT", "1")
    with pytest.raises(ConfigError, match="VENUS_LIVEKIT_PROT"):
        config(["check"])


def test_config_show_json_is_one_object(capsys):
    assert config(["show", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["room"] == "venus"
