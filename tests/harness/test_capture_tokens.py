"""The reserved table and the control tokens, from each file a tokenizer comes with."""
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.capture.reserved import DEFAULT, ReservedTable, inert
from harness.capture.testing import WordTokenizer
from harness.capture.tokens import NEEDED, ControlTokens
from venus_edge.errors import ConfigError

IDS = {name: 151_643 + i for i, name in enumerate(sorted(DEFAULT.names))}


def test_every_added_token_is_reserved_in_each_file_form(tmp_path):
    """Also one that the file does not mark as special."""
    forms = {"added_tokens.json": IDS,
             "tokenizer.json": {"model": {}, "added_tokens": [{"id": i, "content": n, "special": n != "<think>"} for n, i in IDS.items()]},
             "tokenizer_config.json": {"added_tokens_decoder": {str(i): {"content": n, "special": n != "<think>"} for n, i in IDS.items()}}}
    for name, content in forms.items():
        (tmp_path / name).write_text(json.dumps(content), encoding="utf-8")
        table = ReservedTable.from_tokenizer_json(tmp_path / name)
        assert dict(table.by_name) == IDS and table.ids == set(IDS.values()) and "think" in table.bare
        assert ControlTokens.from_tokenizer_json(tmp_path / name).delegate_open == IDS["<delegate>"]


@pytest.mark.parametrize("content", ["", "[]", "{}", "3", '{"added_tokens": [{"id": 1}]}', '{"added_tokens_decoder": {"x": {"content": "<a>"}}}',
                                     '{"<a>": "x"}', '{"<a>": 1, "<b>": 1}', '{"<a>": -1}', '{"<a>": true}', '{"": 1}',
                                     '{"added_tokens": [{"id": 1, "content": "<a>"}, {"id": 2, "content": "<a>"}]}', "[" * 100_000])
def test_a_bad_file_is_named(tmp_path, content):
    """One clear error with the file's name."""
    path = tmp_path / "tokenizer.json"
    path.write_text(content)
    with pytest.raises(ConfigError, match="tokenizer.json"):
        ReservedTable.from_tokenizer_json(path)
    with pytest.raises(ConfigError, match="absent.json"):
        ReservedTable.from_tokenizer_json(tmp_path / "absent.json")


def test_missing_control_tokens_are_all_named():
    with pytest.raises(ConfigError) as caught:
        ControlTokens.from_mapping({n: i for n, i in IDS.items() if n not in ("<delegate>", "<|turn_eos|>")})
    assert "no <delegate>, <|turn_eos|> (needed" in caught.value.message
    with pytest.raises(ConfigError, match="share an id"):
        ControlTokens.from_mapping(IDS | {"<unit>": IDS["</unit>"]})


def test_the_optional_pacing_tokens_may_be_absent():
    """The twelve are enough."""
    control = ControlTokens.from_mapping({name: i for i, name in enumerate(NEEDED.values())})
    assert control.pacing == {control.unit_open, control.unit_close, control.speak, control.chunk_eos} and len(control.reserved) == 12


def test_the_default_table_covers_the_tokens_the_front_end_was_trained_with():
    assert {*NEEDED.values(), "<think>", "</tool_call>", "<|interrupt|>", "<|tts_bos|>", "<|chunk_tts_eos|>", "<|im_end|>", "<slice>",
            "<|timbre_31|>", "</perception>", "<|endoftext|>", "<unk>"} <= DEFAULT.names


@given(st.lists(st.sampled_from([*sorted(DEFAULT.names), "<", ">", "|", "/", " ", "a", "find", "\u200b", "＜", "｜", "[PAD]"]), max_size=20))
def test_inert_text_spells_no_token_and_keeps_every_word(parts):
    """No reserved name is left, letters and digits are unchanged, and doing it again changes nothing."""
    table = ReservedTable(DEFAULT.names | {"[PAD]"})
    text = "".join(parts)
    safe = inert(text, table)
    assert not [name for name in table.names if name in safe]
    assert [c for c in safe if c.isalnum()] == [c for c in text if c.isalnum()] and inert(safe, table) == safe


def test_inert_leaves_ordinary_text_alone():
    for text in ("is 3 < 4 and 5 > 2?", "两点以前到 < 3 km", "a -> b", "2>1", "<3", "line one\nline two\t!"):
        assert inert(text) == text


def test_the_test_tokenizer_spells_tags_with_ordinary_tokens():
    tok = WordTokenizer()
    assert tok.decode(tok.words(" say <delegate> it")) == " say <delegate> it"
    assert tok.control.reserved.isdisjoint(tok.words("<delegate> </delegate>"))
    with pytest.raises(KeyError):
        tok["find"]
