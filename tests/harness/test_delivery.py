"""Delivery: a result is told once, at the right moment, if it is still wanted; interrupted, it goes on where it stopped."""
from harness_world import state, states, world

from harness import DelegateRequest, Evidence, Moment
from harness.testing import Script


def talk_moment(talk, **flags):
    base = dict(pos=round(talk.clock.now() * 16000), user_speaking=False, turn_open=False, assistant_speaking=False,
                turn=talk.turn)
    return Moment(**{**base, **flags})


async def test_an_answer_is_told_once_and_confirmed():
    """A quick skill: one reply within two units, DELIVERED after the device's report, never again."""
    talk, runner, seen = world({"navigation.go": Script("The casino is four minutes away.")})
    task = talk.ask("navigation.go", {"destination": "casino"})
    await talk.run(30)
    assert talk.texts == ["The casino is four minutes away."]
    assert talk.spoken[0][0] <= 0.2
    assert state(talk, task) == ("completed", "delivered", "confirmed")
    assert states(seen, task, "delivery") == ["pending", "delivering", "delivered"]


async def test_never_over_the_user_and_soon_after_them():
    """While the user speaks or their turn is open nothing is admitted; a late result comes within 250 ms of quiet."""
    talk, *_ = world({"navigation.go": Script("Four minutes.", after_s=1.0)}, ack_after_s=5)
    talk.ask("navigation.go", {"destination": "casino"})
    await talk.run(0.5)
    talk.user_speaking = talk.turn_open = True
    await talk.run(3)
    talk.user_speaking = False
    await talk.run(2)
    assert talk.texts == []
    talk.turn_open = False
    talk.turn += 1  # the user said something else meanwhile
    quiet_since = talk.clock.now()
    await talk.run(2)
    assert talk.texts == ["About the route to casino: Four minutes."]
    assert talk.spoken[0][0] - quiet_since <= 0.25


async def test_the_newest_question_is_answered_first_and_older_answers_are_introduced():
    """Two results wait: the newer comes first as it is, the older says what it is about."""
    talk, *_ = world({"navigation.go": Script("Four minutes."), "vehicle.set_window": Script("The window is open.")},
                     max_join_chars=0)
    talk.user_speaking = True
    talk.ask("vehicle.set_window", {"position": 100})
    talk.ask("navigation.go", {"destination": "casino"})
    await talk.run(1)
    talk.user_speaking = False
    await talk.run(10)
    assert talk.texts == ["Four minutes.", "About the window: The window is open."]


async def test_two_ready_results_are_joined_and_both_are_accounted_for():
    """One reply tells both; the first is DELIVERED, the second MERGED into it."""
    talk, *_ = world({"navigation.go": Script("Four minutes."), "vehicle.set_window": Script("The window is open.")})
    talk.user_speaking = True
    window = talk.ask("vehicle.set_window", {"position": 100})
    go = talk.ask("navigation.go", {"destination": "casino"}, same_turn=True)
    await talk.run(1)
    talk.user_speaking = False
    await talk.run(10)
    assert talk.texts == ["The window is open. Four minutes."]
    assert state(talk, window) == ("completed", "delivered", "confirmed")
    assert state(talk, go) == ("completed", "merged", f"told with {window}")


async def test_a_joined_reply_that_is_interrupted_resumes_only_what_was_not_heard():
    """Interrupted between the parts: the first counts as told, the second is told later, whole."""
    talk, *_ = world({"navigation.go": Script("Four minutes."), "vehicle.set_window": Script("The window is open.")})
    talk.user_speaking = True
    window = talk.ask("vehicle.set_window", {"position": 100})
    go = talk.ask("navigation.go", {"destination": "casino"}, same_turn=True)
    await talk.run(1)
    talk.user_speaking = False
    await talk.run(0.5)
    talk.interrupt("The window is open.")
    await talk.run(10)
    assert talk.texts[1:] == ["Four minutes."]
    assert state(talk, window)[1] == state(talk, go)[1] == "delivered"


async def test_an_expired_result_is_recorded_and_never_spoken():
    """A result that the user talked over for longer than its time to live is dropped at admission."""
    talk, *_ = world({"navigation.go": Script("Four minutes.")}, ack_after_s=5)
    talk.user_speaking = True
    task = talk.ask("navigation.go", {"destination": "casino"})
    for _ in range(700):  # a user with short pauses inside one long turn, so that it is no noise
        talk.user_speaking, talk.turn_open = not talk.user_speaking, True
        await talk.run(0.1)
    assert state(talk, task) == ("completed", "dropped", "expired")
    talk.user_speaking = talk.turn_open = False
    await talk.run(5)
    assert talk.texts == []


async def test_an_interrupted_reply_goes_on_once_from_the_first_unheard_word():
    """Heard in part and flushed: resumed with an introduction; heard, in sum, exactly once."""
    talk, _, seen = world({"navigation.go": Script("It is four minutes away. Take the second street on the left.")})
    task = talk.ask("navigation.go", {"destination": "casino"})
    await talk.run(0.5)
    talk.interrupt("It is four minutes away.")
    talk.turn_open = talk.user_speaking = True
    await talk.run(1)
    talk.turn_open = talk.user_speaking = False
    await talk.run(10)
    assert talk.texts[1:] == ["As I was saying, Take the second street on the left."]
    assert state(talk, task) == ("completed", "delivered", "confirmed")
    assert states(seen, task, "delivery") == ["pending", "delivering", "interrupted", "pending", "delivering", "delivered"]


async def test_nearly_all_heard_needs_no_resumption():
    """80 % heard closes the reply as delivered, with the share as its reason."""
    talk, *_ = world({"navigation.go": Script("It is four minutes away, quite near.")})
    task = talk.ask("navigation.go", {"destination": "casino"})
    await talk.run(0.5)
    talk.interrupt("It is four minutes away, quite")
    await talk.run(5)
    assert len(talk.texts) == 1 and state(talk, task)[1:] == ("delivered", "heard 86%")


async def test_a_second_interruption_is_the_last():
    """Interrupted again, the rest is left unspoken and can be asked for; nothing is resumed for ever."""
    talk, *_ = world({"navigation.go": Script("One two three four five six seven eight nine ten.")})
    task = talk.ask("navigation.go", {"destination": "casino"})
    await talk.run(0.5)
    talk.interrupt("One two")
    await talk.run(2)
    talk.interrupt("As I was saying, three four")
    await talk.run(10)
    assert len(talk.texts) == 2 and state(talk, task)[1:] == ("unspoken", "interrupted_again")
    talk.ask(None, repair="repeat", prose="say that again")
    await talk.run(3)
    assert talk.texts[2] == "One two three four five six seven eight nine ten."


async def test_a_new_request_of_the_same_group_drops_the_unheard_rest():
    """Interrupted by a new request about the same thing, the old rest is not taken up again."""
    talk, *_ = world({"navigation.go": [Script("Four minutes by the long road."), Script("Two minutes.")]})
    old = talk.ask("navigation.go", {"destination": "casino"})
    await talk.run(0.5)
    talk.interrupt("Four")
    new = talk.ask("navigation.go", {"destination": "port"})
    await talk.run(10)
    assert talk.texts[1:] == ["Two minutes."]
    assert state(talk, old)[1:] == ("dropped", "overtaken") and state(talk, new)[1] == "delivered"


async def test_told_to_be_quiet_it_stays_quiet():
    """After "stop" the rest is dropped, not resumed."""
    talk, *_ = world({"navigation.go": Script("Four minutes by the long road.")})
    task = talk.ask("navigation.go", {"destination": "casino"})
    await talk.run(0.5)
    talk.interrupt("Four", stopped=True)
    await talk.run(10)
    assert len(talk.texts) == 1 and state(talk, task)[1:] == ("dropped", "stopped")


async def test_a_declined_reply_is_offered_once_more_and_then_left_unspoken():
    """The front end's refusal is normal: one retry, then UNSPOKEN, and the session goes on."""
    talk, *_ = world({"navigation.go": Script("Four minutes.")})
    harness = talk.harness
    task = talk.ask("navigation.go", {"destination": "casino"})
    offered = []
    for _ in range(40):
        await talk.clock.advance(0.1)
        reply = harness.next_reply(talk_moment(talk))
        if reply:
            offered.append((talk.clock.now(), reply.text))
            harness.reply_declined(reply.id)
    assert [text for _, text in offered] == ["Four minutes."] * 2 and offered[1][0] - offered[0][0] >= 0.5
    assert state(talk, task)[1:] == ("unspoken", "declined")
    talk.ask("vehicle.set_window", {"position": 0})
    await talk.run(2)
    assert talk.texts == ["Done."]


async def test_a_lost_playout_report_does_not_block_and_does_not_repeat():
    """Started and never reported: counted as heard, estimated, after its longest duration; then others are told."""
    talk, *_ = world({"navigation.go": Script("Four minutes.")})
    harness = talk.harness
    task = talk.ask("navigation.go", {"destination": "casino"})
    await talk.clock.advance(0.1)
    reply = harness.next_reply(talk_moment(talk))
    harness.reply_started(reply.id, "seg-1")
    await talk.clock.advance(20)
    assert harness.next_reply(talk_moment(talk)) is None
    assert state(talk, task)[1:] == ("delivered", "estimated")
    harness.reply_finished(reply.id, heard="", unheard="Four minutes.", completed=False, confirmed=True)
    assert state(talk, task)[1:] == ("delivered", "estimated"), "a late report changes nothing"
    talk.ask("vehicle.set_window", {"position": 0})
    await talk.run(1)
    assert talk.texts == ["Done."]


async def test_a_reply_that_never_starts_is_closed_as_unspoken():
    """Admitted, but neither started nor declined: no repetition, no blockade."""
    talk, *_ = world({"navigation.go": Script("Four minutes.")})
    task = talk.ask("navigation.go", {"destination": "casino"})
    await talk.clock.advance(0.1)
    assert talk.harness.next_reply(talk_moment(talk)) is not None
    await talk.clock.advance(11)
    assert talk.harness.next_reply(talk_moment(talk)) is None
    assert state(talk, task)[1:] == ("unspoken", "not_started")


async def test_failures_are_spoken_as_failures():
    """A skill's failure is told in its own words, or in words found by the code; an exception is an internal error whose
    message is never spoken."""
    talk, *_ = world({"navigation.go": Script("I can't find a way there.", ok=False, code="not_found"),
                      "vehicle.set_window": Script("", ok=False, code="unavailable"),
                      "vehicle.set_temperature": Script(error=RuntimeError("secret in /etc/passwd"))})
    ids = [talk.ask(capability, {}) for capability in ("navigation.go", "vehicle.set_window", "vehicle.set_temperature")]
    await talk.run(20)
    said = " ".join(talk.texts)
    assert "I can't find a way there." in said and "can't reach what I need for the window" in said
    assert "something went wrong with the temperature" in said and "secret" not in said
    assert [talk.harness.ledger.get(i).execution_reason for i in ids] == ["not_found", "unavailable", "internal"]
    assert {reply.kind for _, reply in talk.spoken} == {"notice"}


async def test_a_result_that_sanitises_to_nothing_is_a_failure_notice():
    """Control tokens only: the user hears that it went wrong, and the session lives."""
    talk, *_ = world({"navigation.go": Script("<|listen|><|turn_eos|>")})
    task = talk.ask("navigation.go", {"destination": "casino"})
    await talk.run(3)
    assert "something went wrong with the route to casino" in talk.texts[0]
    assert state(talk, task)[0] == "failed"


async def test_waiting_outcomes_are_bounded():
    """More outcomes than the limit while nothing can be said: the oldest are closed as unspoken, none is lost silently."""
    talk, *_ = world(max_untold=5, specs=())
    talk.user_speaking = True
    ids = [talk.ask("no.skill") for _ in range(20)]
    assert len(talk.harness.ledger.untold()) == 5
    assert all(state(talk, i)[1:] == ("unspoken", "too_many") for i in ids[:15])


async def test_chinese_replies_are_introduced_in_chinese():
    """The words around a reply follow its task's language."""
    talk, *_ = world({"navigation.go": Script("四分钟。", after_s=1)}, ack_after_s=5)
    talk.ask("navigation.go", {"destination": "赌场"}, lang="zh")
    await talk.run(0.5)
    talk.turn += 1
    await talk.run(3)
    assert talk.texts == ["关于去赌场的路线：四分钟。"]


async def test_an_older_reply_waits_for_the_answer_that_is_being_worked_on():
    """Interrupted by a new question, the rest isn't taken up before the new answer, if that comes soon."""
    talk, *_ = world({"vehicle.set_window": Script("The window is open now. It was stuck for a moment."),
                      "navigation.go": Script("Four minutes.", after_s=1.2)}, ack_after_s=5)
    talk.ask("vehicle.set_window", {"position": 100})
    await talk.run(0.5)
    talk.interrupt("The window is")
    talk.ask("navigation.go", {"destination": "casino"})
    await talk.run(10)
    assert talk.texts[1:] == ["Four minutes.", "As I was saying, open now. It was stuck for a moment."]


async def test_noise_and_a_lost_turn_end_cannot_starve_a_result():
    """Ten seconds of what looks like an endless user: then the result is told all the same."""
    talk, *_ = world({"navigation.go": Script("Four minutes.")}, ack_after_s=60)
    talk.ask("navigation.go", {"destination": "casino"})
    talk.user_speaking = talk.turn_open = True
    await talk.run(12)
    assert talk.texts == ["Four minutes."] and 10 <= talk.spoken[0][0] <= 10.5


async def test_a_question_that_is_talked_over_is_not_asked_again():
    """Whoever answers before the end has understood: the rest of a question is dropped."""
    talk, *_ = world({"navigation.go": Script("Which one do you mean, the old or the new casino?", ok=False, code="needs_input")})
    task = talk.ask("navigation.go", {"destination": "casino"})
    await talk.run(0.5)
    assert talk.spoken[0][1].kind == "question"
    talk.interrupt("Which one do you mean,")
    await talk.run(5)
    assert len(talk.texts) == 1 and state(talk, task)[1:] == ("unspoken", "interrupted")


async def test_restless_noise_cannot_starve_a_result():
    """Short bursts that never leave the usual quiet: after ten seconds the next silent instant will do."""
    talk, *_ = world({"navigation.go": Script("Four minutes.")}, ack_after_s=60)
    talk.ask("navigation.go", {"destination": "casino"})
    talk.turn += 1
    for _ in range(130):
        talk.user_speaking = not talk.user_speaking
        await talk.run(0.1)
    assert talk.texts == ["About the route to casino: Four minutes."] and 10 <= talk.spoken[0][0] <= 10.4


async def test_an_introduction_is_not_part_of_what_was_heard():
    """Interrupted after the introduction and two words: the rest begins with the third."""
    talk, *_ = world({"navigation.go": Script("It is four minutes away.")}, ack_after_s=60)
    talk.user_speaking = True
    task = talk.ask("navigation.go", {"destination": "casino"})
    await talk.run(0.3)
    talk.user_speaking, talk.turn = False, talk.turn + 1
    await talk.run(0.5)
    talk.interrupt("About the route to casino: It is")
    assert talk.harness.ledger.get(task).rest == "four minutes away."
    await talk.run(5)
    assert talk.texts[1] == "As I was saying, four minutes away."


async def test_the_answer_to_the_newest_question_needs_no_quiet_after_the_user():
    """The end of the turn is enough: it is admitted in the very unit in which the turn closes."""
    talk, *_ = world({"navigation.go": Script("Four minutes.")})
    talk.user_speaking = talk.turn_open = True
    talk.ask("navigation.go", {"destination": "casino"})
    await talk.run(0.5)
    talk.user_speaking = talk.turn_open = False
    closed = talk.clock.now()
    await talk.run(0.5)
    assert talk.spoken[0][0] - closed <= talk.unit_s + 1e-9


async def test_a_new_request_is_acknowledged_before_an_older_result_is_told():
    """The acknowledgement answers the newest turn, so it comes first."""
    talk, *_ = world({"navigation.go": Script("Four minutes."), "poi.find": Script("Here.", after_s=9)}, hold_older_s=0)
    talk.user_speaking = True
    talk.ask("navigation.go", {"destination": "casino"})
    await talk.run(0.3)
    talk.ask("poi.find", {"query": "charger"})
    talk.user_speaking = False
    await talk.run(5)
    assert [reply.kind for _, reply in talk.spoken][:2] == ["ack", "result"]
    assert talk.texts[1] == "About the route to casino: Four minutes."


async def test_an_accepted_request_alone_makes_its_turn_the_newest_and_turns_never_go_back():
    """Without user_turn(): older results are introduced; a late, older turn number changes nothing."""
    talk, *_ = world({"navigation.go": Script("Four minutes."), "vehicle.set_window": Script("It is open.")}, max_join_chars=0)
    harness = talk.harness

    def accept(turn, capability):
        harness.accept(DelegateRequest("", turn, turn, turn, "please", capability, {}), Evidence.freeze(0, 0))

    accept(5, "navigation.go")
    accept(6, "vehicle.set_window")
    harness.user_turn(2)
    await talk.run(8)
    assert talk.texts == ["It is open.", "About what you asked for: Four minutes."]


async def test_what_nobody_heard_is_not_repeated_but_told():
    """Flushed before its first word: resumed whole and without an introduction; not yet anything to repeat."""
    talk, *_ = world({"navigation.go": Script("Four minutes.")})
    talk.ask("navigation.go", {"destination": "casino"})
    await talk.run(0.3)
    talk.interrupt("")
    assert talk.harness._desk.last_told() is None
    await talk.run(3)
    assert talk.texts == ["Four minutes."] * 2
