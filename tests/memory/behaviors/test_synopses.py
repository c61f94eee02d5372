"""Synopses: when a session is summed up, what is found, and how it is shown."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from memory.behaviors.learning_behavior import Unlearned
from memory.behaviors.steps import UNTRUSTED_STEP
from memory.behaviors.synopses import HEADING, Synopses, SynopsisPart, alike
from memory.message import Message
from memory.scopes.changes import Revision
from memory.scopes.entries import Synopsis
from memory.scopes.scopes import Scopes
from memory.scopes.sources import Trust
from memory.text.internal_model import AnswerShape, InternalModelUnavailable
from memory.text.untrusted_text import UNTRUSTED_MARK
from tests.memory.behaviors.batches import (
    DAY,
    NOW,
    PRIVATE,
    answered,
    batch,
    call_context,
    said,
    scope_memory,
    shown,
    store_entries,
)
from tests.memory.conftest import TOKENS
from tests.memory.learning.scripted import ScriptedModel


def synopsis(
    request: str, days_ago: int, *, trust: Trust = Trust.DERIVED, result: str = ""
) -> Synopsis:
    at = NOW - days_ago * DAY
    return Synopsis(0, request, "", result, "", "", "", "", at, at + 60, 1, 2, PRIVATE.tag, trust)


SAILING = synopsis("How to trim the mainsail of a dinghy in strong wind", 40)
MARINA = synopsis("Whether the dinghy with the torn mainsail may stay at the marina", 100)
TAXES = synopsis("Which form the tax office wants", 3)


@pytest.fixture
def behavior(scopes: Scopes) -> Synopses:
    return Synopses(scopes, TOKENS, None)


def narrating(scopes: Scopes, model: ScriptedModel, when: str = "auto") -> Synopses:
    return Synopses(scopes, TOKENS, model, narrative=when)  # type: ignore[arg-type]  # it is one


def talk(exchanges: int, tokens: int = 10) -> list[Message]:
    return [
        make(seq, "words", tokens=tokens)
        for n in range(exchanges)
        for make, seq in ((said, 2 * n + 1), (answered, 2 * n + 2))
    ]


def test_the_strict_schema_has_all_fields_of_the_seed() -> None:
    shape = AnswerShape.of({"synopses": SynopsisPart})
    assert not shape.unconvertible
    part = shape.schema["properties"]["synopses"]["anyOf"][0]
    assert list(part["properties"]) == [
        "likely_request",
        "actions",
        "result",
        "behaviour",
        "emotions",
        "preferences",
        "reasoning",
    ]


def test_it_is_due_when_a_session_has_ended_and_takes_that_session(behavior: Synopses) -> None:
    unlearned = Unlearned(talk(5), 0, 4)
    assert behavior.is_due(unlearned)
    assert behavior.select_messages(unlearned) == talk(5)[:4]
    assert not behavior.is_due(Unlearned(talk(5), 600, 0))
    assert behavior.due_in(Unlearned(talk(5), 600, 0)) == 3_001


@pytest.mark.parametrize(
    ("tokens_a_message", "covered"), [(400, 6), (1_500, 2), (9_000, 2), (300, 10)]
)
def test_a_long_session_is_summed_up_in_pieces_of_whole_exchanges(
    behavior: Synopses, tokens_a_message: int, covered: int
) -> None:
    unlearned = Unlearned(talk(20, tokens_a_message), 0, 0)
    assert behavior.is_due(unlearned)
    assert behavior.select_messages(unlearned) == unlearned.messages[:covered]


@pytest.mark.parametrize(("is_shared", "is_due"), [(True, True), (False, False)])
def test_a_nearly_long_session_is_summed_up_if_another_behavior_learns(
    behavior: Synopses, *, is_shared: bool, is_due: bool
) -> None:
    assert behavior.is_due(Unlearned(talk(3, 400), 0, 0, is_shared=is_shared)) == is_due


def test_an_answer_becomes_a_synopsis_with_its_time_and_messages(behavior: Synopses) -> None:
    messages = said(3, "Book it", at=NOW - 90), answered(4, "Booked", at=NOW - 60)
    answer = SynopsisPart(likely_request="A table\nfor two", result="Booked.", emotions="  ")
    assert behavior.learn(batch(*messages), answer).entries == [
        Synopsis(
            *(0, "A table for two", "", "Booked.", "", "", "", ""),
            *(NOW - 90, NOW - 60, 3, 4, PRIVATE.tag, Trust.DERIVED),
        )
    ]
    assert behavior.learn(batch(said(1, "hi")), SynopsisPart()).entries == []


def test_a_synopsis_is_bounded(behavior: Synopses) -> None:
    answer = SynopsisPart(**dict.fromkeys(SynopsisPart.model_fields, "word " * 9_000))
    (entry,) = behavior.learn(batch(said(1, "hi")), answer).entries
    assert isinstance(entry, Synopsis)
    assert TOKENS.count(entry.text) < 1_000


@pytest.mark.parametrize(
    ("messages", "digest", "trust"),
    [
        ([said(1, "x"), answered(2, "y")], "calculate({}) -> 3", Trust.DERIVED),
        ([said(1, "x"), answered(2, "y")], f"{UNTRUSTED_STEP}fetch({{}}) -> z", Trust.UNTRUSTED),
        ([said(1, "x", is_first_party=False), answered(2, "y")], "", Trust.UNTRUSTED),
    ],
)
def test_a_synopsis_has_the_trust_of_its_least_trusted_source(
    behavior: Synopses, messages: Sequence[Message], digest: str, trust: Trust
) -> None:
    taught = batch(*messages, digests={2: digest})
    (entry,) = behavior.learn(taught, SynopsisPart(result="x")).entries
    assert isinstance(entry, Synopsis)
    assert entry.trust == trust


def test_the_input_for_the_rest_of_a_session_says_how_it_began(behavior: Synopses) -> None:
    began = synopsis("A table", 0)
    assert "A table" in behavior.prompt_input(batch(said(3, "x"), here=scope_memory(began)))
    later = said(3, "x", at=NOW + DAY)
    assert "A table" not in behavior.prompt_input(batch(later, here=scope_memory(began)))


async def test_without_hits_the_text_is_empty(behavior: Synopses, scopes: Scopes) -> None:
    assert await shown(behavior, "hello") == ""
    await store_entries(scopes, PRIVATE, TAXES)
    assert await shown(behavior, "Guten Morgen") == ""


async def test_hits_and_related_ones_have_the_order_of_time(
    behavior: Synopses, scopes: Scopes
) -> None:
    await store_entries(scopes, PRIVATE, SAILING, TAXES, MARINA)
    assert await shown(behavior, "Strong wind today!") == (
        f"{HEADING}\n"
        "[12 August 2025, 3 months ago] Request: Whether the dinghy with the torn mainsail may "
        "stay at the marina.\n"
        "[11 October 2025, 5 weeks ago] Request: How to trim the mainsail of a dinghy in strong "
        "wind."
    )


def test_texts_are_alike_if_they_share_words_that_few_texts_use() -> None:
    texts = [
        "A lemon cake for Mia; prefers quick recipes",
        "A party for Mia with twelve guests; prefers simple plans",
        "An error in Python; prefers short explanations",
    ]
    assert alike(texts) == [1]
    assert alike(texts[::-1]) == []
    assert alike(texts[:2]) == []


async def test_many_long_synopses_stay_within_the_budget(
    behavior: Synopses, scopes: Scopes
) -> None:
    many = (synopsis(f"sailing {n} " + "and more words " * 100, n) for n in range(20))
    await store_entries(scopes, PRIVATE, *many)
    text = await shown(behavior, "sailing")
    assert text.count("sailing") >= 3
    assert TOKENS.count(text) < 650


async def test_a_synopsis_of_untrusted_text_is_marked(behavior: Synopses, scopes: Scopes) -> None:
    await store_entries(scopes, PRIVATE, synopsis("Sailing", 3, trust=Trust.UNTRUSTED))
    assert (await shown(behavior, "sailing")).endswith(f"Request: Sailing. {UNTRUSTED_MARK}")


async def test_two_synopses_become_a_narrative(scopes: Scopes) -> None:
    await store_entries(scopes, PRIVATE, SAILING, TAXES, MARINA)
    model = ScriptedModel("In August the mainsail tore; in October she asked how to trim it.")
    behavior = narrating(scopes, model)
    assert await shown(behavior, "Strong wind today!") == (
        f"{HEADING}\nIn August the mainsail tore; in October she asked how to trim it."
    )
    question, *memories = map(json.loads, model.asked[0][1].splitlines())
    assert question == {"said": "Strong wind today!"}
    assert [memory["on"] for memory in memories] == [
        "12 August 2025, 3 months ago",
        "11 October 2025, 5 weeks ago",
    ]


async def test_a_narrative_serves_the_same_synopses(scopes: Scopes) -> None:
    await store_entries(scopes, PRIVATE, SAILING, TAXES, MARINA)
    model = ScriptedModel("A narrative.", "Never asked for.")
    behavior = narrating(scopes, model)
    for _ in range(3):
        assert await shown(behavior, "Strong wind today!") == f"{HEADING}\nA narrative."
    assert len(model.asked) == 1


async def test_other_words_do_not_get_the_narrative_of_the_words_before(scopes: Scopes) -> None:
    await store_entries(scopes, PRIVATE, SAILING, TAXES, MARINA)
    behavior = narrating(scopes, ScriptedModel("A narrative.", "A new one."), when="always")
    assert "A narrative." in await shown(behavior, "Strong wind today!")
    assert "A new one." in await shown(behavior, "Strong wind again!")


@pytest.mark.parametrize(
    ("when", "later", "calls"), [("auto", DAY - 1, 1), ("auto", DAY, 2), ("always", 1, 2)]
)
async def test_the_next_narrative_is_written_after_a_day_unless_set_to_always(
    scopes: Scopes, when: str, later: int, calls: int
) -> None:
    await store_entries(scopes, PRIVATE, SAILING, TAXES, MARINA, synopsis("A tax refund", 8))
    model = ScriptedModel("A narrative.", "A new one.")
    behavior = narrating(scopes, model, when=when)
    await shown(behavior, "Strong wind today!")
    then = replace(call_context(), now=NOW + later)
    await behavior.on_model_invoke(then, [said(9, "What of my tax?")])
    assert len(model.asked) == calls


@pytest.mark.parametrize("how", ["erasure", "erasure by another process"])
async def test_a_narrative_ends_with_an_erasure(scopes: Scopes, how: str) -> None:
    await store_entries(scopes, PRIVATE, SAILING, TAXES, MARINA, synopsis("Cake", 9))
    behavior = narrating(scopes, ScriptedModel("A narrative.", "A new one."), when="always")
    await shown(behavior, "Strong wind today!")
    if how == "erasure":
        await scopes.update(PRIVATE, lambda _: Revision(records=[4]))
    else:
        await scopes.store.tell_erased(PRIVATE)
        await scopes.drop_erased()
    assert await shown(behavior, "Strong wind today!") == f"{HEADING}\nA new one."


@pytest.mark.parametrize("trouble", [InternalModelUnavailable("down"), "  ", None])
async def test_without_a_narrative_the_dated_list_is_shown(
    scopes: Scopes,
    behavior: Synopses,
    trouble: str | Exception | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if trouble is None:  # it never answers
        monkeypatch.setattr("memory.behaviors.synopses._TIME_LIMIT_S", 0.01)
    await store_entries(scopes, PRIVATE, SAILING, TAXES, MARINA)
    model = ScriptedModel(*([] if trouble is None else [trouble, "A narrative."]))
    failing = narrating(scopes, model)
    text = "Strong wind today!"
    assert await shown(failing, text) == await shown(behavior, text)
    if trouble is not None:
        assert await shown(failing, text) == f"{HEADING}\nA narrative."  # it is asked for again


@pytest.mark.parametrize(("when", "calls"), [("off", 0), ("auto", 0), ("always", 1)])
async def test_one_synopsis_becomes_a_narrative_only_if_set_to_always(
    scopes: Scopes, when: str, calls: int
) -> None:
    model = ScriptedModel("A narrative.")
    behavior = narrating(scopes, model, when=when)
    await shown(behavior, "hello")
    assert model.asked == []  # there is none yet
    await store_entries(scopes, PRIVATE, TAXES)
    await shown(behavior, "tax office")
    assert len(model.asked) == calls


async def test_a_cancelled_turn_awaits_no_narrative(scopes: Scopes) -> None:
    await store_entries(scopes, PRIVATE, SAILING, TAXES, MARINA)
    behavior = narrating(scopes, ScriptedModel())
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await shown(behavior, "Strong wind today!")


def test_a_synopsis_that_continues_an_untrusted_one_is_untrusted(behavior: Synopses) -> None:
    began = replace(synopsis("A table", 0), trust=Trust.UNTRUSTED)
    for at, trust in ((NOW, Trust.UNTRUSTED), (NOW + DAY, Trust.DERIVED)):
        taught = batch(said(3, "x", at=at), here=scope_memory(began))
        (entry,) = behavior.learn(taught, SynopsisPart(result="x")).entries
        assert isinstance(entry, Synopsis)
        assert entry.trust == trust
