"""The deterministic planner: what prose asks for, in English, Chinese and both mixed."""
import asyncio
import logging

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.plan import rules
from harness.plan.contracts import Ask, Aside, Plan, PlanRequest
from harness.plan.embed import HashedEmbedder
from harness.plan.evaluate import fold
from plan_world import called, contracts, decide, planner, task


@pytest.mark.parametrize("prose, capability, arguments", [
    ("could you get us to the stadium", "navigation.go", {"destination": "stadium"}),
    ("my feet hurt, find a shoe shop nearby and take me there", "navigation.find_and_go", {"query": "shoe shop"}),
    ("put the cabin at nineteen and a half degrees", "vehicle.set_temperature", {"celsius": 19.5}),
    ("two degrees cooler for the passenger", "vehicle.adjust_temperature", {"delta": -2, "zone": "passenger"}),
    ("it's like a sauna in here", "vehicle.adjust_temperature", {"delta": -2}),
    ("text my brother that the boat leaves at noon", "message.send", {"recipient": "my brother", "text": "the boat leaves at noon"}),
    ("remind me on Friday at ten to return the drill", "reminder.set", {"text": "return the drill", "when": "Friday at ten"}),
    ("get me a table for five at the Old Mill on Sunday at half past one", "booking.table",
     {"restaurant": "Old Mill", "people": 5, "date": "Sunday", "time": "half past one"}),
    ("where is parcel R double six oh", "order.status", {"order_id": "R660"}),
    ("dial oh four four seven one nine", "phone.call", {"who": "044719"}),
    ("will it snow in Bergen tomorrow", "weather.get", {"place": "Bergen", "day": "tomorrow"}),
    ("把副驾的车窗开一半", "vehicle.set_window", {"position": 50, "window": "passenger"}),
    ("给王总发消息说合同签好了", "message.send", {"recipient": "王总", "text": "合同签好了"}),
    ("后天早上八点提醒我浇花", "reminder.set", {"text": "浇花", "when": "后天早上八点"}),
    ("在小南国订周五晚上七点四个人的位子", "booking.table", {"restaurant": "小南国", "people": 4, "date": "周五", "time": "晚上七点"}),
    ("帮我 play 一首 Jay Chou 的歌", "media.play", {"query": "Jay Chou 的歌"})])
def test_a_wish_becomes_a_capability_with_its_arguments(prose, capability, arguments):
    """Free words are the user's own, numbers are in the schema's unit, ids are joined."""
    [(found, given)] = called(decide(prose))
    defaults = {"open_now": False, "zone": "speaker", "window": "speaker", "seat": "speaker"}
    given = {k: v for k, v in given.items() if defaults.get(k, "") != v}
    def folded(values):
        return {k: fold(v) if isinstance(v, str) else v for k, v in values.items()}
    assert (found, folded(given)) == (capability, folded(arguments))


@pytest.mark.parametrize("prose, value", [
    ("take us to Genoa, no, Turin", "Turin"), ("navigate to the pier, I mean the lighthouse", "lighthouse"), ("去火车站，不对，去机场", "机场"),
    ("带我去 Nice sorry 是 Cannes", "Cannes")])
def test_only_what_was_finally_meant_counts(prose, value):
    """A self-correction leaves no trace of what was said first."""
    [(capability, arguments)] = called(decide(prose))
    assert capability == "navigation.go" and arguments["destination"].removeprefix("the ") == value


def test_numbers_and_choices_are_corrected_within_the_sentence():
    assert called(decide("set it to twenty, no, twenty-three degrees")) == [("vehicle.set_temperature", {"celsius": 23})]
    assert called(decide("open the driver's window, no wait, the passenger's")) == [("vehicle.set_window", {"position": 100, "window": "passenger"})]


@pytest.mark.parametrize("prose, capabilities", [
    ("lock the doors and call my sister", ["vehicle.set_lock", "phone.call"]), ("关上窗户然后把空调调到二十二度", ["vehicle.set_window", "vehicle.set_temperature"]),
    ("find a bakery and take me there", ["navigation.find_and_go"]), ("tell Ann I'm late, and bring cake", ["message.send"])])
def test_several_requests_are_taken_apart_and_one_is_left_whole(prose, capabilities):
    assert [capability for capability, _ in called(decide(prose))] == capabilities


@pytest.mark.parametrize("prose", [
    "Ben, could you pass me the water", "she told me the restaurant was closed", "and in the news tonight, the strike continues",
    "where did I put my sunglasses",
    "thanks, that's lovely", "don't open the window", "if we had more time I would stop at the beach", "you two, stop fighting",
    "妈 你系好安全带", "他说明天不来了", "听众朋友们 大家好", "我钥匙放哪儿了", "谢谢你", "别开窗", "要是能去海边就好了", "Lily 你 homework 写完没"])
def test_what_is_not_meant_for_the_assistant_starts_nothing(prose):
    assert isinstance(decide(prose), Aside)


@pytest.mark.parametrize("prose, reason", [
    ("book a table for three", "missing argument"), ("remind me to buy milk", "missing argument"), ("给小张发条消息", "missing argument"),
    ("set the temperature to forty degrees", "out of range"), ("座椅加热开到八档", "out of range"), ("turn it off", "ambiguous"),
    ("take me to the", "not finished")])
def test_what_is_missing_or_impossible_is_asked_back_in_the_users_language(prose, reason):
    """A question, never a guess."""
    planned = decide(prose)
    assert isinstance(planned, Ask) and planned.reason == reason
    assert any("㐀" <= c <= "鿿" for c in planned.text) == any("㐀" <= c <= "鿿" for c in prose)


def test_a_question_no_capability_knows_is_answered_directly_and_work_goes_to_the_agent():
    assert called(decide("how tall is the Eiffel Tower"))[0][0] == "direct.answer"
    assert called(decide("plan a weekend in Lisbon and make a packing list"))[0][0] == "general.task"
    few = tuple(c for c in contracts() if c.kind == "skill")
    assert not isinstance(planner().decide(PlanRequest("who painted the Mona Lisa", "en", few)), tuple)


def test_control_goes_to_the_task_that_is_meant():
    """The one named, else the newest that the operation makes sense for."""
    table, vans = task("b", "booking.table", restaurant="Elsa", people=2, date="Friday", time="eight"), task("g",
    "general.task", objective="compare vans")
    assert decide("never mind", table, vans) == (Plan("cancel", "booking.table", {}, "b"),)
    assert decide("forget the vans", table, vans) == (Plan("cancel", "general.task", {}, "g"),)
    assert decide("how is it going", table)[0].operation == "status"
    assert decide("订好了吗", table, lang="zh") == (Plan("status", "booking.table", {}, "b"),)
    told = task("p", "poi.find", "told", query="pharmacy")
    assert decide("say that again", told, heard="Two minutes away.") == (Plan("repeat", "poi.find", {}, "p"),)
    assert decide("what else is there", told)[0].operation == "continue"
    assert isinstance(decide("never mind"), Aside)


def test_a_correction_is_an_update_with_complete_arguments():
    table = task("b", "booking.table", restaurant="Elsa", people=2, date="Friday", time="eight")
    assert decide("no, make that four people", table) == (Plan("update", "booking.table", {**table.arguments, "people": 4}, "b"),)
    assert decide("改成周六", table, lang="zh") == (Plan("update", "booking.table", {**table.arguments, "date": "周六"}, "b"),)
    route = task("n", "navigation.go", destination="museum")
    assert decide("no, the opera house", route) == (Plan("update", "navigation.go", {"destination": "opera house"}, "n"),)
    message = task("m", "message.send", "queued", recipient="Tom", text="I'm here")
    assert decide("to Tim, not Tom", message) == (Plan("update", "message.send", {"recipient": "Tim", "text": "I'm here"}, "m"),)
    order = task("o", "order.status", order_id="N721")
    assert decide("sorry, it ends in eight", order) == (Plan("update", "order.status", {"order_id": "N728"}, "o"),)


def test_an_answer_continues_the_task_that_was_asked_about():
    """What is answered is filled in beside what was known; what is out of range is asked again; a new wish is a new wish."""
    asked = task("r", "reminder.set", "told", text="water the roses")
    context = {"question": "When should I remind you?", "question_task": "r"}
    assert decide("at half past six", asked, **context) == (Plan("continue", "reminder.set", {"text": "water the roses",
    "when": "half past six"}, "r"),)
    warm = task("s", "vehicle.set_temperature", "told")
    assert isinstance(decide("fifty", warm, question="To what temperature?", question_task="s"), Ask)
    assert decide("never mind", asked, **context) == (Plan("cancel", "reminder.set", {}, "r"),)
    assert called(decide("turn the volume up", asked, **context)) == [("vehicle.set_volume", {"delta": 10})]


def test_ending_a_route_under_way_is_a_request_and_one_in_the_making_a_cancellation():
    assert decide("stop the navigation", task("n", "navigation.go", "told", destination="Nice"))[0].operation == "new"
    assert decide("stop the navigation", task("n", "navigation.go", "running", destination="Nice")) == (Plan("cancel", "navigation.go", {}, "n"),)


def test_something_just_offered_is_pointed_at():
    offers = {"offers": [{"name": "Carrefour"}, {"name": "Spar"}]}
    assert called(decide("the second one, please", memory=offers)) == [("navigation.go", {"destination": "second one"})]
    assert called(decide("就去第一个吧", lang="zh", memory=offers)) == [("navigation.go", {"destination": "第一个"})]
    assert not isinstance(decide("the second one, please"), tuple)


SHREDS = ("take me to no not the 打开 窗 don't twenty 二十 and 然后 , . ? call it that cancel 不是 是 A 7 to at 点").split()


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=80) | st.lists(st.sampled_from(SHREDS), max_size=14).map(" ".join))
def test_no_prose_raises_and_no_task_is_made_up(prose):
    """Whatever is heard: plans name known capabilities and hold their required arguments, targets are live tasks."""
    live = task("t", "navigation.go", destination="casino")
    known = {c.id: c for c in contracts()}
    for planned in (decide(prose), decide(prose, live)):
        assert not (isinstance(planned, Ask) and planned.reason == "planner fault")
        for plan in planned if isinstance(planned, tuple) else ():
            assert plan.capability in known and (plan.target in (None, "t")) and (plan.operation == "new") == (plan.target is None)
            if plan.operation in ("new", "update"):
                assert set(known[plan.capability].schema["required"]) <= set(plan.arguments) <= set(known[plan.capability].schema["properties"])


async def test_planning_leaves_the_event_loop_free_and_too_many_are_refused(monkeypatch):
    """The work is done in the planner's own thread; beyond the limit the user is asked to say it again."""
    mine = rules.RulePlanner(HashedEmbedder())
    await mine.warm(contracts())
    monkeypatch.setattr(rules, "MOST_WAITING", 2)
    wishes = [asyncio.ensure_future(mine.plan(PlanRequest("take me to the casino", "en", contracts()))) for _ in range(3)]
    planned = await asyncio.gather(*wishes)
    assert [isinstance(p, Ask) and p.reason for p in planned] == [False, False, "busy"]
    await mine.aclose()


def test_a_fault_costs_a_question_and_no_word_is_logged(monkeypatch, caplog):
    monkeypatch.setattr(rules, "Decision", lambda *args: 1 / 0)
    with caplog.at_level(logging.INFO):
        planned = decide("drive to my secret place")
    assert isinstance(planned, Ask) and planned.reason == "planner fault" and "secret" not in caplog.text


def test_the_same_words_are_planned_alike_every_time():
    assert len({repr(decide("text Paula that I'm on my way")) for _ in range(3)}) == 1
