"""The recogniser's prompt must not put words into the user's mouth."""
import pytest

from cloud_core.speech.recogniser import alike, leaked, once

PROMPT = "Is there a cafe nearby? Make it 21 degrees. Find a charging station."


@pytest.mark.parametrize("text, expected", [
    ("Find a charging station.", True), ("Make it 45 degrees.", True), ("Is there a cafe", True), ("Find a charging station nearby", True),
    ("Make it.", False), ("Set the temperature to 22 degrees.", False), ("How fast are we going?", False), ("", False)])
def test_a_sentence_of_the_prompt_is_recognised_whatever_its_numbers(text, expected):
    assert leaked(text, PROMPT) is expected


@pytest.mark.parametrize("text, expected", [
    ("Set the temperature. Set the temperature.", "Set the temperature."), ("Set the fan to 50%. Set the fan to 50%.", "Set the fan to 50%."),
    ("No no", "No"), ("Set the fan to 50%.", "Set the fan to 50%."), ("left right left", "left right left"), ("", "")])
def test_what_was_written_twice_counts_once(text, expected):
    assert once(text) == expected


def test_the_same_words_are_alike_and_others_are_not():
    assert alike("Find a charging station.", "find a charging station") and not alike("Find a charging station.", "Thank you")
