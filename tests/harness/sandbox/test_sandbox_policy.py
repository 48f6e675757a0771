"""The sandbox's settings: wrong ones are named, and foreign skills don't run without the layers they need."""
import json

import pytest

from harness.sandbox import LAYERS, REQUIRED, Layer, Sandbox, SandboxMissing, Trust
from venus_edge.errors import ConfigError

ALL = [Layer(name, True) for name in LAYERS]


def without(*names):
    return [Layer(layer.name, layer.name not in names, "not here" if layer.name in names else "") for layer in ALL]


@pytest.mark.parametrize("fields,named", [
    ({"trust": "friend"}, "trust is 'friend'; allowed: builtin, signed, untrusted"), ({"memory_mb": 1}, "memory_mb is 1; allowed: 32 to 4096"),
    ({"threads": True}, "threads is True"), ({"open_files": 10**6}, "open_files"), ({"data": ("maps",)}, "data names 'maps'"),
    ({"data": ("/",)}, "data names '/'"), ({"data": ("/usr/..",)}, "data names"), ({"off": {"walls"}}, "off names walls")])
def test_a_wrong_setting_is_named_with_what_is_allowed(fields, named):
    with pytest.raises(ConfigError, match=named):
        Sandbox(**fields)


@pytest.mark.parametrize("sandbox", [Sandbox(), Sandbox("builtin", data=("/usr/share",), memory_mb=64), Sandbox(off={"uid"}, allow_missing=True)])
def test_settings_travel_unchanged(sandbox):
    assert Sandbox.from_json(sandbox.to_json()) == sandbox and json.loads(sandbox.to_json())


@pytest.mark.parametrize("layer", LAYERS)
def test_untrusted_skills_need_their_layers(layer):
    """Each required layer that is missing, or was never reported, refuses them by its name and reason; no other one does."""
    for found in (without(layer), [other for other in ALL if other.name != layer]):
        if layer in REQUIRED[Trust.UNTRUSTED]:
            with pytest.raises(SandboxMissing, match=layer) as caught:
                Sandbox().check(found)
            assert caught.value.data["missing"] == [layer]
            Sandbox(allow_missing=True).check(found)
        else:
            Sandbox().check(found)
        Sandbox("builtin").check(found)


def test_what_the_trust_levels_mean():
    assert {"pidns", "seccomp", "landlock"} <= set(REQUIRED[Trust.UNTRUSTED])
    assert [Sandbox(t).reuses for t in Trust] == [True, False, False] and [Sandbox(t).preloads for t in Trust] == [True, False, False]
