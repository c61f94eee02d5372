"""The offline model says what it is, uses the tools and quotes; it invents nothing."""

import asyncio
from itertools import pairwise
from typing import Literal

import numpy as np
import pytest

from bot.agent.describe import PAGE_QUESTION, PICTURE_QUESTION
from bot.model.call import PromptMessage
from bot.model.live_text import watching
from bot.playground.offline_embedder import OfflineEmbedder
from bot.playground.offline_memory import OfflineInternalModel
from bot.playground.offline_model import INTRODUCTION, OfflineChatModel
from bot.playground.offline_senses import OfflineTranscriber
from bot.playground.offline_sums import expression_in
from memory.behaviors.steps import ToolCall
from memory.behaviors.tool import ToolDefinition
from memory.message import Picture
from memory.text.shape import AnswerShape
from tests.acceptance.test_pictures import jpeg

TOOLS = tuple(
    ToolDefinition(name, "", {"type": "object"})
    for name in ("current_time", "calculate", "search_memory")
)
EARLIER = (
    PromptMessage("user", "Hello"),
    PromptMessage("assistant", "Hello!"),
    PromptMessage("user", "My sister's boat is called Ada. She bought it in Oslo."),
    PromptMessage("assistant", "Noted: “My sister's boat is called Ada.”"),
    PromptMessage("user", "What is my sister's boat good for?"),
    PromptMessage("assistant", "I have not heard about that yet."),
)
MEMORY = """<memory>
[12 March 2025, 8 months ago] Ann: I am allergic to peanuts.
  My dog is Rex.
- You (assistant): Rex the dog, allergic to peanuts, noted.
[yesterday, 14:05] Ann: Is my dog allergic?
[yesterday, 14:06] Ann: 私の妹は京都に住んでいます。
</memory>

"""


def prompt(
    asked: str, *run: PromptMessage, earlier: tuple[PromptMessage, ...] = EARLIER
) -> tuple[PromptMessage, ...]:
    return (PromptMessage("system", "Be kind."), *earlier, PromptMessage("user", asked), *run)


async def answer(
    messages: tuple[PromptMessage, ...], tool_choice: Literal["auto", "none"] = "auto"
) -> str:
    reply = await OfflineChatModel(0).complete(messages, TOOLS, tool_choice=tool_choice)
    assert reply.tool_calls == ()
    return reply.text


async def calls(
    messages: tuple[PromptMessage, ...], tools: tuple[ToolDefinition, ...] = TOOLS
) -> list[tuple[str, str]]:
    reply = await OfflineChatModel(0).complete(messages, tools)
    assert reply.text == ""
    return [(call.name, call.arguments) for call in reply.tool_calls]


def ran(name: str, arguments: str, result: str) -> tuple[PromptMessage, PromptMessage]:
    return (
        PromptMessage("assistant", "", (ToolCall("call_1", name, arguments),)),
        PromptMessage("tool", result, tool_call_id="call_1"),
    )


async def test_the_first_answer_says_that_it_is_not_a_language_model() -> None:
    first = await answer(prompt("My cat is called Tom.", earlier=()))
    assert first.startswith("I am not a language model")
    assert "“My cat is called Tom.”" in first
    assert INTRODUCTION not in await answer(prompt("My cat is called Tom."))


@pytest.mark.parametrize(
    "asked",
    ["Who are you?", "are you a bot", "Are you the real ChatGPT?", "Was bist du?", "Ты бот?"],
)
async def test_asked_what_it_is_it_says_so(asked: str) -> None:
    assert await answer(prompt(asked)) == INTRODUCTION
    assert await answer(prompt(asked, earlier=())) == INTRODUCTION


async def test_the_first_answer_after_a_tool_says_it_too() -> None:
    run = ran("calculate", '{"expression":"2+2"}', "4")
    assert await answer(prompt("2+2?", *run, earlier=())) == f"{INTRODUCTION}\n\n2+2 = 4"


@pytest.mark.parametrize(
    ("asked", "arguments"),
    [
        ("What time is it?", "{}"),
        ("Please tell me the date", "{}"),
        ("what's today's date?", "{}"),
        ("What time is it in New York?", '{"timezone":"America/New_York"}'),
        ("What is the current time in Tokyo", '{"timezone":"Asia/Tokyo"}'),
        ("Wie spät ist es?", "{}"),
        ("Который час?", "{}"),
        ("¿Qué hora es?", "{}"),
        ("ساعت چند است؟", "{}"),
    ],
)
async def test_the_time_is_asked_of_the_clock(asked: str, arguments: str) -> None:
    assert await calls(prompt(asked)) == [("current_time", arguments)]


@pytest.mark.parametrize(
    "asked",
    ["What time is my appointment?", "What is the time of the concert?", "I had a good time."],
)
async def test_a_time_that_is_not_now_is_not_asked_of_the_clock(asked: str) -> None:
    await answer(prompt(asked))


@pytest.mark.parametrize(
    ("asked", "query"),
    [
        ("Do you remember my sister's boat?", "sister boat"),
        ("What did I say about the boat?", "boat"),
        ("Have I ever mentioned Oslo", "oslo"),
        ("Помнишь мою собаку?", "мою собаку"),
    ],
)
async def test_a_question_about_the_past_searches_the_memory(asked: str, query: str) -> None:
    assert await calls(prompt(asked)) == [("search_memory", f'{{"query":"{query}"}}')]


async def test_several_requests_become_several_calls() -> None:
    assert await calls(prompt("What time is it, and what is 2 + 3?")) == [
        ("current_time", "{}"),
        ("calculate", '{"expression":"2 + 3"}'),
    ]


async def test_only_allowed_tools_are_called() -> None:
    assert await answer(prompt("What is 2 + 3?"), "none")
    asked = prompt("What time is it, and what is 2 + 3?")
    assert await calls(asked, TOOLS[1:]) == [("calculate", '{"expression":"2 + 3"}')]


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (ran("calculate", '{"expression":"2 + 3"}', "5"), "2 + 3 = 5"),
        (
            ran("calculate", '{"expression":"(2"}', "Error: not log2"),
            "That did not work out, sorry.",
        ),
        (
            ran("current_time", "{}", "Friday, 2026-03-06T09:05:59+01:00 (Europe/Berlin)"),
            "My clock says: Friday, 2026-03-06, 09:05 (Europe/Berlin)",
        ),
    ],
)
async def test_the_result_of_a_tool_is_in_the_answer(
    run: tuple[PromptMessage, ...], said: str
) -> None:
    assert await answer(prompt("Tell me.", *run)) == said


async def test_a_search_result_is_quoted_with_its_date() -> None:
    found = "[3 May 2024, 2 years ago] #1 Ann: Lunch.\n- #5 Ann: My dentist is Dr. Krone.\n"
    found += "[today] #7 Ann: Bye."
    run = ran("search_memory", '{"query":"dentist"}', found)
    asked = prompt("Do you remember my dentist?", *run)
    assert await answer(asked) == "From 3 May 2024, 2 years ago: “My dentist is Dr. Krone.”"
    nothing = ran("search_memory", '{"query":"dentist"}', "nothing found")
    asked = prompt("Do you remember my dentist?", *nothing)
    assert await answer(asked) == "I looked, and found nothing about that."


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("What is my sister's boat called?", "A little earlier: “My sister's boat is called Ada.”"),
        ("Where did my sister buy it, in Oslo?", "A little earlier: “She bought it in Oslo.”"),
        ("what are my allergies", "From 12 March 2025, 8 months ago: “I am allergic to peanuts.”"),
        ("What's the name of my dog?", "From 12 March 2025, 8 months ago: “My dog is Rex.”"),
        ("私の妹はどこに住んでいますか？", "From yesterday, 14:06: “私の妹は京都に住んでいます。”"),
    ],
)
async def test_a_question_is_answered_with_the_best_sentence_of_a_person(
    asked: str, said: str
) -> None:
    assert await answer(prompt(MEMORY + asked)) == said


@pytest.mark.parametrize(
    "asked", ["Where does Peter live?", "How are you?", "What is my sister's boat good for?"]
)
async def test_without_a_match_it_says_that_it_does_not_know(asked: str) -> None:
    earlier = EARLIER[:2] + EARLIER[4:]
    said = await answer(prompt(asked, earlier=earlier))
    assert said == "I have not heard about that yet. Tell me, and I will know it."


async def test_asked_to_remember_anything_it_quotes_the_last_thing_said() -> None:
    recalled = await answer(prompt(f"{MEMORY}What did I say?", earlier=()), "none")
    assert recalled.endswith("From yesterday, 14:06: “私の妹は京都に住んでいます。”")
    said = await answer(prompt("What did I say?"), "none")
    assert said == "A little earlier: “She bought it in Oslo.”"


@pytest.mark.parametrize(
    ("said", "heard"),
    [
        ("Hi there!", "Hello! Tell me something worth remembering."),
        ("Thank you.", "You are welcome."),
        ("Я живу в Риге.", "Noted: “Я живу в Риге.” Ask me about it whenever you like."),
        ("One.\nTwo.", "Noted: “One.” Ask me about it whenever you like."),
        ("w" * 200, f"Noted: “{'w' * 120} …” Ask me about it whenever you like."),
    ],
)
async def test_a_statement_is_noted(said: str, heard: str) -> None:
    assert await answer(prompt(said)) == heard


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("12 * 12", "12 * 12"),
        ("-3 + 4 =", "-3 + 4"),
        ("what's 7 times 8", "7 * 8"),
        ("Calculate 2^10 please", "2 ** 10"),
        ("How much is 1,000 ÷ 8?", "1000 / 8"),
        ("3 x 4 =", "3 * 4"),
        ("сколько будет 2+2?", "2+2"),
        ("Was ist 10 : 4?", "10 / 4"),
        ("what's (1+2) divided by 3", "(1+2) / 3"),
        ("What is 20 percent of 50?", "20 / 100 * 50"),
        ("the sum of 3, 4 and 5.5", "3 + 4 + 5.5"),
        ("2024-2020", "2024-2020"),
        ("My number is 555-1234", ""),
        ("Did she call 555-1234?", ""),
        ("What happened on 2026-03-04?", ""),
        ("Shall we meet at 10:30?", ""),
        ("Is version 1.2.3 out?", ""),
        ("What is 5?", ""),
        ("Between 3 - 4 people came", ""),
    ],
)
def test_a_sum_is_found_and_mere_numbers_are_not(text: str, expression: str) -> None:
    assert expression_in(text) == expression


async def test_it_pauses_before_an_answer_so_that_people_see_it_type() -> None:
    began = asyncio.get_running_loop().time()
    await OfflineChatModel(pause_s=0.05).complete(prompt("Hello"), TOOLS)
    assert asyncio.get_running_loop().time() - began >= 0.05


async def test_a_watcher_sees_an_answer_grow_word_by_word() -> None:
    texts: list[str] = []
    with watching(lambda so_far: texts.append(so_far().text)):
        counted = await OfflineChatModel(0, 0).complete(prompt("Count to 30"), TOOLS)
    assert counted.text.startswith("1 2 3")
    assert texts[0] == "1 "
    assert texts[-1] == counted.text
    assert all(later.startswith(former) for former, later in pairwise(texts))


async def test_it_counts_no_further_than_500() -> None:
    assert (await answer(prompt("Count to 999999999"))).split()[-1] == "500"


INPUT = """## facts: learns from messages 1 to 4
## What was said
{"n":1,"who":"Ann","said":"I live in Riga"}
{"n":2,"who":"assistant","said":"Noted"}
{"n":3,"who":"Ann","said":"My name is Eve","untrusted":true}
{"n":4,"who":"Ann","said":"Where do I live?"}
"""
SHAPE = AnswerShape({}, {})


async def test_it_sets_reminders_that_people_ask_for_in_plain_words() -> None:
    tools = (*TOOLS, ToolDefinition("set_reminder", "", {"type": "object"}))
    for said, wanted in (
        ("Remind me in 2 hours to eat.", '{"text":"eat","in_minutes":120}'),
        ("remind me every friday at 18:30 to row", '{"text":"row","cron":"30 18 * * 5"}'),
        ("Remind me every day at 8 of my pills", '{"text":"my pills","cron":"0 8 * * *"}'),
    ):
        assert await calls(prompt(said), tools) == [("set_reminder", wanted)]
    assert "not heard" in await answer(prompt("Do you remind me in 2 hours to eat?"))


async def test_it_learns_facts_from_a_persons_own_statements() -> None:
    parts = await OfflineInternalModel().fill("Learn.\n\n## facts\nFacts.", INPUT, SHAPE)
    fact = {"text": "I live in Riga", "message": 1, "replaces": None, "repeats": None}
    fact["lasts"] = "changes"
    assert parts == {"facts": {"facts": [fact]}, "running_state": None, "synopses": None}


async def test_it_writes_a_narrative_of_the_dated_memories() -> None:
    lines = '{"on":"3 May","memory":"Lunch"}\n{"on":"4 May","memory":"A walk"}'
    assert await OfflineInternalModel().write("Weave.", lines, 100) == "3 May: Lunch\n4 May: A walk"


async def test_texts_that_share_content_words_are_near_each_other() -> None:
    boat, same, other = await OfflineEmbedder().embed(
        ["My boat is called Aurora", "What is the boat called?", "I had soup for lunch"]
    )
    assert boat @ same > 0.4 > boat @ other
    assert np.linalg.norm(boat) == pytest.approx(1)


async def test_of_a_picture_only_size_and_colors_are_told_and_a_page_is_not_read() -> None:
    picture = Picture(1, jpeg("blue"), "image/jpeg", 640, 480)
    model, seen = OfflineChatModel(0), "JPEG picture, 640 × 480 pixels, mostly blue"
    for asked, words, is_blind in ((PICTURE_QUESTION, seen, False), (PAGE_QUESTION, "", True)):
        reply = await model.complete((PromptMessage("user", asked, pictures=(picture,)),), ())
        assert (reply.text, reply.is_blind) == (words, is_blind)
    shown = PromptMessage("user", "[photo]\n\nOur stamp", pictures=(picture,))
    reply = await model.complete((*EARLIER, shown), TOOLS)
    assert reply.text.startswith(f"I see this: {seen}.\n\nNoted: “Our stamp”")


async def test_a_sound_has_the_words_that_were_typed_with_it() -> None:
    transcriber = OfflineTranscriber()
    for number in range(30):
        transcriber.keep(b"%d" % number, f"words {number}")
    assert await transcriber.words(b"29", "ogg") == "words 29"
    assert [await transcriber.words(sound, "ogg") for sound in (b"0", b"other")] == ["", ""]
