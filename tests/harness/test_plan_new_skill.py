"""A new skill works from its manifest alone: summary, a few examples and the schema, without a word of grammar."""
import pytest

from harness.plan.bank import asides, wishes
from harness.plan.compile import compile_contracts
from harness.plan.contracts import Ask, Contract, PlanRequest
from harness.plan.embed import HashedEmbedder, default_embedder
from harness.plan.rules import RulePlanner
from plan_world import called, contracts

GARAGE = Contract("oem.garage", {"en": "Open or close the garage door at home.", "zh": "打开或关闭家里的车库门。"},
                  {"type": "object", "properties": {"open": {"type": "boolean"}}, "required": ["open"]},
                  examples={"en": (("Open the garage", {"open": True}), ("Close the garage door", {"open": False})),
                            "zh": (("打开车库", {"open": True}), ("把车库关上", {"open": False}))})
MASSAGE = Contract("oem.massage", {"en": "Start the seat massage.", "zh": "启动座椅按摩。"},
                   {"type": "object", "properties": {"programme": {"type": "string", "enum": ["wave", "pulse", "stretch"]},
                                                     "minutes": {"type": "integer", "minimum": 1, "maximum": 30}}, "required": ["programme"]},
                   examples={"en": (("Give me a wave massage for ten minutes", {"programme": "wave", "minutes": 10}),
                   ("Start the pulse massage", {"programme": "pulse"}))})
RECIPE = Contract("oem.recipe", {"en": "Read a recipe aloud.", "zh": "朗读菜谱。"},
                  {"type": "object", "properties": {"dish": {"type": "string", "description": "the dish"}}, "required": ["dish"]},
                  examples={"en": (("Read me the recipe for lasagne", {"dish": "lasagne"}), ("How do I cook risotto", {"dish": "risotto"})),
                            "zh": (("念一下宫保鸡丁的菜谱", {"dish": "宫保鸡丁"}),)})


@pytest.fixture(scope="module", params=["installed", "hashed"])
def both(request):
    """The planner with the vectors that are installed, and with hashed ones only."""
    return RulePlanner(default_embedder() if request.param == "installed" else HashedEmbedder())


@pytest.mark.parametrize("prose, capability, arguments", [
    ("open the garage please", "oem.garage", {"open": True}), ("could you shut the garage door", "oem.garage", {"open": False}),
    ("车库打开一下", "oem.garage", {"open": True}),
    ("start a stretch massage for fifteen minutes", "oem.massage", {"programme": "stretch", "minutes": 15}),
    ("I'd like the pulse massage", "oem.massage", {"programme": "pulse"}),
    ("read the recipe for chicken curry", "oem.recipe", {"dish": "chicken curry"}), ("念一下红烧肉的菜谱", "oem.recipe", {"dish": "红烧肉"}),
    ("take me to the casino", "navigation.go", {"destination": "casino"})])
def test_a_skill_nobody_wrote_grammar_for(both, prose, capability, arguments):
    [(found, given)] = called(both.decide(PlanRequest(prose, "en", (*contracts(), GARAGE, MASSAGE, RECIPE))))
    assert (found, given) == (capability, arguments)


def test_its_missing_argument_is_asked_for_and_its_range_is_kept(both):
    offered = (*contracts(), MASSAGE)
    assert isinstance(both.decide(PlanRequest("massage please", "en", offered)), Ask)
    planned = both.decide(PlanRequest("start the wave massage for ninety minutes", "en", offered))
    assert isinstance(planned, Ask) and "30" in planned.text


def test_ready_phrases_go_to_the_capability_that_asks_for_the_same():
    """Groups know no capability: they find theirs by its own examples, and stay away where none fits."""
    found = compile_contracts(contracts(), HashedEmbedder())
    sizes = {c.id: len(c.vectors) - len(c.examples) for c in found.contracts}
    assert sizes["vehicle.set_fan"] >= len(wishes()["fan"]) and sizes["booking.table"] >= len(wishes()["book_table"])
    alone = compile_contracts((MASSAGE,), HashedEmbedder())
    assert len(alone.contracts[0].vectors) < len(MASSAGE.examples["en"]) + sum(map(len, wishes().values())) / 4
    assert len(alone.asides) == sum(map(len, asides().values()))


def test_a_contract_without_examples_or_arguments_is_usable():
    bare = Contract("oem.selfie", {"en": "Take a selfie with the cabin camera.", "zh": "用车内摄像头自拍。"}, {"type": "object", "properties": {}})
    assert called(RulePlanner(HashedEmbedder()).decide(PlanRequest("take a selfie with the camera",
    "en", (*contracts(), bare)))) == [("oem.selfie", {})]
    assert not isinstance(RulePlanner(HashedEmbedder()).decide(PlanRequest("take me home", "en", ())), tuple)
