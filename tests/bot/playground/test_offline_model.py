"""The offline model says what it is, uses the tools and quotes; it invents nothing."""

import asyncio
import re
import sys
import tomllib
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Literal

import orjson
import pytest

from bot.features.claims.feature import claims_to_have_saved
from bot.features.documents.scans import PAGE_QUESTION
from bot.features.pictures.feature import PICTURE_QUESTION
from bot.features.voice.servers import Transcriber
from bot.language.catalogue import Catalogue
from bot.model.call import ModelRequest, PromptMessage, watching
from bot.playground.offline_memory import (
    OfflineInternalModel,
    OfflineServer,
    begins_with_wish,
    reminder_in,
)
from bot.playground.offline_model import OfflineChatModel, spoken_in
from bot.playground.offline_quotes import SAYS, tells_nothing
from bot.turn.notes import QUESTION_ALONE
from memory.behaviors.steps import ToolCall
from memory.behaviors.tool import ToolDefinition
from memory.message import Picture
from memory.text.internal_model import AnswerShape
from tests.acceptance.test_pictures import jpeg
from tests.work import QUADRATIC, ratio

INTRODUCTIONS = [says["intro"] for says in SAYS.values()]
INTRODUCTION = SAYS["en"]["intro"]
NEWCOMER = tomllib.loads(Path(__file__).with_name("newcomer.toml").read_text("utf-8"))
WEDNESDAY = datetime(2026, 11, 25, 10, tzinfo=UTC)
TOOLS = tuple(
    ToolDefinition(name, "", {"type": "object"})
    for name in ("current_time", "read_page", "search_memory")
)
REMINDING = (*TOOLS, ToolDefinition("set_reminder", "", {"type": "object"}))
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
[note.txt] The cellar key is in the pot.
</memory>

"""


def prompt(
    asked: str, *run: PromptMessage, earlier: tuple[PromptMessage, ...] = EARLIER
) -> tuple[PromptMessage, ...]:
    return (PromptMessage("system", "Be kind."), *earlier, PromptMessage("user", asked), *run)


async def answer(
    messages: tuple[PromptMessage, ...], tool_choice: Literal["auto", "none"] = "auto"
) -> str:
    reply = await OfflineChatModel(0).complete(
        ModelRequest(messages, TOOLS, tool_choice=tool_choice)
    )
    assert reply.tool_calls == ()
    return reply.text


async def calls(
    messages: tuple[PromptMessage, ...], tools: tuple[ToolDefinition, ...] = TOOLS
) -> list[tuple[str, str]]:
    reply = await OfflineChatModel(0).complete(ModelRequest(messages, tools))
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


@pytest.mark.parametrize("asked", NEWCOMER["who"].split("|"))
async def test_asked_what_it_is_it_says_so(asked: str) -> None:
    for earlier in (EARLIER, ()):
        assert await answer(prompt(asked, earlier=earlier)) in INTRODUCTIONS


async def test_the_first_answer_after_a_tool_says_it_too() -> None:
    run = ran("current_time", "{}", "Monday")
    said = await answer(prompt("Which day is today?", *run, earlier=()))
    assert said == f"{INTRODUCTION}\n\nMy clock says: Monday"
    asked = ran("set_reminder", '{"text":"row"}', "Asked: which time zone?")
    assert await answer(prompt("Remind me at 9 to row", *asked, earlier=())) == INTRODUCTION


@pytest.mark.parametrize("line", NEWCOMER["clock"].strip().splitlines())
async def test_the_time_is_asked_of_the_clock(line: str) -> None:
    asked, arguments = re.split(" {2,}", line)
    assert await calls(prompt(asked)) == [("current_time", arguments)]


@pytest.mark.parametrize(
    "asked",
    ["What time is my appointment?", "What is the time of the concert?", "I had a good time."],
)
async def test_a_time_that_is_not_now_is_not_asked_of_the_clock(asked: str) -> None:
    await answer(prompt(asked), "none")
    reply = await OfflineChatModel(0).complete(ModelRequest(prompt(asked), TOOLS))
    assert "current_time" not in [call.name for call in reply.tool_calls]


@pytest.mark.parametrize("line", NEWCOMER["searches"].strip().splitlines())
async def test_a_question_about_the_past_searches_by_its_words_and_by_words_that_mean_the_same(
    line: str,
) -> None:
    asked, queries = re.split(" {2,}", line)
    wanted = [("search_memory", f'{{"query":"{query}"}}') for query in queries.split(", ")]
    assert await calls(prompt(asked)) == wanted


async def test_several_requests_become_several_calls() -> None:
    assert await calls(prompt("What time is it, and what is on https://a.example/b?")) == [
        ("current_time", "{}"),
        ("read_page", '{"url":"https://a.example/b"}'),
    ]


async def test_only_allowed_tools_are_called() -> None:
    asked = prompt("What time is it, and what is on https://a.example/b?")
    assert await answer(asked, "none")
    assert await calls(asked, TOOLS[1:]) == [("read_page", '{"url":"https://a.example/b"}')]


async def test_the_answer_has_a_tools_result() -> None:
    failed = ran("current_time", "{}", "Error: no such zone")
    assert await answer(prompt("Tell me.", *failed)) == "That did not work out, sorry."
    told = ran("current_time", "{}", "Friday, 2026-03-06T09:05:59+01:00 (Europe/Berlin)")
    clock = "My clock says: Friday, 2026-03-06, 09:05 (Europe/Berlin)"
    assert await answer(prompt("Tell me.", *told)) == clock


async def test_a_search_result_is_quoted_with_its_date() -> None:
    found = "[3 May 2024, 2 years ago] #1 Ann: Lunch.\n- #5 Ann: My dentist is Dr. Krone.\n"
    found += "- #6 Ann: And hers too.\n- #7 [… shortened] You (assistant): […] My dentist is\n"
    found += "[today] #8 Ann: Bye."
    run = ran("search_memory", '{"query":"dentist"}', found)
    asked = prompt("Do you remember my dentist?", *run)
    assert await answer(asked) == "From 3 May 2024, 2 years ago: “My dentist is Dr. Krone.”"
    nothing = ran("search_memory", '{"query":"dentist"}', "nothing found")
    boat = ran("search_memory", '{"query":"Boot"}', "[3 May 2024, 2 years ago] #1 Ann: Boot: Ada.")
    reply = await answer(prompt("Wie heißt mein Boot?", *boat))
    assert reply.startswith("Gesagt, 3. Mai 2024: „Boot: Ada.“")
    asked = prompt("Do you remember my dentist?", *nothing)
    assert await answer(asked) == "I looked, and found nothing about that."


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (
            "What is my sister's boat called?",
            "Earlier: “My sister's boat is called Ada. She bought it in Oslo.”",
        ),
        (
            "what are my allergies",
            "From 12 March 2025, 8 months ago: “I am allergic to peanuts.\nMy dog is Rex.”",
        ),
        ("where is the cellar key", "From note.txt: “The cellar key is in the pot.”"),
        ("私の妹はどこに住んでいますか", "From yesterday, 14:06: “私の妹は京都に住んでいます。”"),
    ],
)
async def test_a_question_is_answered_with_a_persons_whole_message(asked: str, said: str) -> None:
    assert await answer(prompt(MEMORY + asked), "none") == said


async def test_asked_to_remember_anything_it_quotes_the_last_thing_said() -> None:
    recalled = await answer(prompt(f"{MEMORY}What did I say?", earlier=()), "none")
    assert recalled.endswith("From yesterday, 14:06: “私の妹は京都に住んでいます。”")
    said = await answer(prompt("What did I say?"), "none")
    assert said == "Earlier: “My sister's boat is called Ada. She bought it in Oslo.”"
    found = (
        "<memory>\n[today] Anna: My sister's boat is called Ada. She bought it in Oslo.\n</memory>"
    )
    assert await answer(prompt(f"{found}\n\nWhat is my sister's boat called?"), "none") == said


async def test_a_statement_is_noted() -> None:
    for said, kept in (("Я живу в Риге.",) * 2, ("One.\nTwo.",) * 2, ("w" * 200, f"{'w' * 120} …")):
        noted = f"You said: “{kept}”\nWhile memory is on, you can ask me about it."
        assert await answer(prompt(said)) == noted


async def test_it_pauses_before_an_answer_so_that_people_see_it_type() -> None:
    is_done = []
    for pause_s in (0, 3_600):
        waits = OfflineChatModel(pause_s).complete(ModelRequest(prompt("Hello"), TOOLS))
        thinking = asyncio.create_task(waits)
        for _ in range(10):
            await asyncio.sleep(0)
        is_done.append(thinking.done())
        thinking.cancel()
        await asyncio.gather(thinking, return_exceptions=True)
    assert is_done == [True, False]


async def test_a_watcher_sees_an_answer_grow_word_by_word_and_counting_ends_at_500() -> None:
    texts: list[str] = []
    with watching(lambda so_far: texts.append(so_far().text)):
        counted = await OfflineChatModel(0, 0).complete(ModelRequest(prompt("Count to 30"), TOOLS))
    assert counted.text.startswith("1 2 3")
    assert texts[0] == "1 "
    assert texts[-1] == counted.text
    assert all(later.startswith(former) for former, later in pairwise(texts))
    assert (await answer(prompt("Count to 999999999"))).split()[-1] == "500"


INPUT = """## facts: learns from messages 1 to 4
## What was said
{"n":1,"who":"Ann","said":"I live in Riga"}
{"n":2,"who":"assistant","said":"Noted"}
{"n":3,"who":"Ann","said":"My name is Eve","untrusted":true}
{"n":4,"who":"Ann","said":"Where do I live?"}
"""
SHAPE = AnswerShape({}, {})


def test_a_wish_in_plain_words_is_read() -> None:
    def read(said: str) -> str:
        found = reminder_in(said, WEDNESDAY)
        minutes = f"+{found['in_minutes']}" if "in_minutes" in found else ""
        due = minutes or found.get("at") or found.get("cron") or ""
        nothing = "?" if begins_with_wish(said) else "nothing"
        return f"{due} {found.get('text', '')}".strip() or nothing

    wanted = dict(re.split(" {2,}", line) for line in NEWCOMER["reminders"].strip().splitlines())
    assert {said: read(said) for said in wanted} == wanted


@pytest.mark.parametrize("language", NEWCOMER["talks"])
async def test_what_a_newcomer_tries_is_answered_in_their_language(language: str) -> None:
    earlier: tuple[PromptMessage, ...] = ()
    for line in NEWCOMER["talks"][language].strip().splitlines():
        said, *marked = re.split(r" +([>!]) (?=\S)", line)
        reply = await answer(prompt(said, earlier=earlier), "none")
        for mark, part in zip(marked[::2], marked[1::2], strict=True):
            assert (part.strip() in reply) == (mark == ">"), (said, reply)
        earlier += (PromptMessage("user", said), PromptMessage("assistant", reply))


@pytest.mark.parametrize("line", NEWCOMER["forgets"].strip().splitlines())
async def test_a_wish_to_forget_erases_the_fact_it_is_about_and_is_never_learned(line: str) -> None:
    fact, wish = re.split(" {2,}", line)
    wish, is_known = wish.removeprefix("?"), not wish.startswith("?")
    memory = f"<memory>\n#7 [12 May 2026] {fact}\n#8 [12 May 2026] Oslo\n</memory>\n\n"
    tools = (*TOOLS, ToolDefinition("forget_memory", "", {"type": "object"}))
    reply = await OfflineChatModel(0).complete(ModelRequest(prompt(memory + wish), tools))
    called = [orjson.loads(call.arguments) for call in reply.tool_calls]
    assert called == [{"id": 7, "others": []}] * is_known
    if is_known:
        run = ran("forget_memory", reply.tool_calls[0].arguments, f"Forgotten: {fact}")
        done = await answer(prompt(memory + wish, *run))
        assert done in [says["forgotten"] for says in SAYS.values()]
        talk = (
            *prompt(wish, earlier=(PromptMessage("user", fact),)),
            PromptMessage("assistant", done),
        )
        assert fact not in await answer(prompt(f"{fact}?", earlier=talk[1:]), "none")
    else:
        assert reply.text == SAYS["en"]["forget_what"]
    assert await learned(wish) == []


@pytest.mark.parametrize("language", Catalogue().languages)
async def test_a_wish_to_remember_calls_the_tool_and_is_not_learned_besides(language: str) -> None:
    told = Catalogue().text(language, "claims.nothing_kept")
    [wish] = re.findall("[“„«]([^…]*?) *…[ \u00a0]*[”“»]", told)
    call = ("remember", '{"text":"my dog is Rex"}')
    memory = "<memory>\n#7 [12 May 2026] My dog is Rex\n</memory>\n\n"
    tools = [ToolDefinition(name, "", {}) for name in ("remember", "forget_memory")]
    for begins in (wish, *NEWCOMER["keeps"][language].split("|")):
        said = f"{memory}{begins} my dog is Rex?"
        assert await calls(prompt(said), (*TOOLS, *tools)) == [call], begins
    asks = ("Remember my dog?", "Remember that trip to Rome?", "Don't forget that.")
    for bare, is_kept in (*((each, False) for each in asks), ("remember my dog is Rex", True)):
        reply = await OfflineChatModel(0).complete(ModelRequest(prompt(bare), tools))
        assert any(call.name == "remember" for call in reply.tool_calls) == is_kept
    wish += " my dog is Rex"
    done = [await answer(prompt(wish, *ran(*call, said))) for said in ("Kept.", "This is known")]
    assert (*map(claims_to_have_saved, done),) == (True, True)
    asked = ran(*call, "Not kept yet: the person is asked.")
    assert await answer(prompt(wish, *asked)) == QUESTION_ALONE
    failed = await answer(prompt(wish, *ran(*call, "Error: memory is off")))
    assert not claims_to_have_saved(failed)
    assert "my dog is Rex" in failed
    assert await learned(wish) == []


async def test_in_a_group_the_name_before_a_message_is_not_a_part_of_it() -> None:
    model = OfflineChatModel(0, writers=lambda: ["Anna"])
    thanks = await model.complete(ModelRequest(prompt("Anna: Thanks!"), TOOLS))
    assert thanks.text == SAYS["en"]["thanks"]
    [reminder] = (
        await model.complete(ModelRequest(prompt("Anna: Remind me at 9 to row"), REMINDING))
    ).tool_calls
    assert orjson.loads(reminder.arguments)["text"] == "row"
    noted = await model.complete(ModelRequest(prompt("Note: the boat is red"), TOOLS))
    assert noted.text == SAYS["en"]["noted"].format("Note: the boat is red")
    recalled = "<memory>\n[today] Anna: My dog is Rex\n</memory>\n\nAnna: What is my dog called?"
    asked = prompt(recalled, earlier=(PromptMessage("user", "Anna: My dog is Rex"),))
    once = await model.complete(ModelRequest(asked, TOOLS, tool_choice="none"))
    assert once.text.endswith("Earlier: “Anna: My dog is Rex”")
    assert once.text.count("Rex") == 1


async def test_a_file_with_a_caption_is_quoted_and_a_mark_is_no_word_of_the_person() -> None:
    came = "<memory>\nFrom documents:\n[gate.txt] The code is 5512.\n</memory>\n\nOur contract"
    assert (await answer(prompt(came))).endswith("\nFrom gate.txt: “The code is 5512.”")
    unseen = "[attached live photo: you cannot see or hear it] "
    noted = SAYS["en"]["noted"].format("Our trip")
    assert await answer(prompt(f"{unseen}Our trip")) == noted


async def test_a_correction_replaces_what_is_known_and_what_was_said_before_it() -> None:
    said = ("I live in Riga", "I live in Oslo", "where do i live", "I moved to Bergen")
    assert await replaced("I live in Rome", *said) == [(said[-1], 7)]
    boat = "نه، اسم قایق خواهرم زورا است"
    assert await replaced("اسم قایق خواهرم آرورا است", boat) == [(boat, 7)]


def test_arabic_is_not_taken_for_persian() -> None:
    spoken = {"ما اسم قارب أختي؟": "en", "لدي حساسية من الجوز": "en", "سلام، قایق خواهرم": "fa"}
    assert {said: spoken_in([said]) for said in spoken} == spoken


async def replaced(known: str, *said: str) -> list[tuple[str, int | None]]:
    """Return the facts that are learned beside fact 7, each with the one that it replaces."""
    lines = [{"n": n, "who": "Ann", "said": each} for n, each in enumerate(said, 1)]
    shown = map(orjson.dumps, ({"id": 7, "since": "today", "fact": known}, *lines))
    content = b"\n".join((b"## facts", *shown)).decode()
    parts = await OfflineInternalModel().fill("## facts", content, SHAPE)
    found = parts["facts"]["facts"]  # type: ignore[index]
    return [(each["text"], each["replaces"]) for each in found]


@pytest.mark.parametrize("line", NEWCOMER["stays"].strip().splitlines())
async def test_who_has_not_moved_or_moved_something_else_lives_where_they_lived(line: str) -> None:
    home, others = re.split(" {2,}", line)
    for said in others.split("|"):
        assert [old for _, old in await replaced(home, said) if old] == [], said


@pytest.mark.parametrize("asked", NEWCOMER["ordinary"].strip().splitlines())
async def test_an_ordinary_question_is_not_taken_for_one_about_us(asked: str) -> None:
    said = await answer(prompt(asked), "none")
    assert said in [says["unknown"] for says in SAYS.values()]


LONGEST = """\
a |may |No, my sister |remind me |every day at 8 |habe ich dir |<memory>|"“‘«|e\u0301|٣|五月|!?|
1 May 2020 |not x |31 February |in two hours |what do you know """


@pytest.mark.parametrize("part", LONGEST.replace("\n", "").split("|"))
async def test_the_longest_message_costs_no_more_than_its_beginning_and_its_end(part: str) -> None:
    async def calls(text: str) -> int:
        count = 0

        def one_more(*_: object) -> None:
            nonlocal count
            count += 1

        messages = prompt(text, earlier=EARLIER[:2])
        await OfflineChatModel(0).complete(ModelRequest(messages, TOOLS))
        sys.setprofile(one_more)
        await OfflineChatModel(0).complete(ModelRequest(messages, TOOLS))
        sys.setprofile(None)
        return count

    once = await calls(part * (4_000 // len(part)))
    assert await calls(part * (100_000 // len(part))) <= 1.1 * once


@pytest.mark.parametrize("language", Catalogue().languages)
async def test_the_example_of_reminders_and_help_sets_one_and_teaches_nothing(
    language: str,
) -> None:
    example = Catalogue().text(language, "reminders.none").rpartition(": ")[2]
    assert example.rstrip(".").lower() in Catalogue().text(language, "help.ways").lower()
    [(name, arguments)] = await calls(prompt(example), REMINDING)
    at = datetime.fromisoformat(orjson.loads(arguments)["at"])
    assert (name, at.hour, at.minute) == ("set_reminder", 9, 0)
    assert await learned(f"{example} My boat is Ada") == []


@pytest.mark.parametrize("language", Catalogue().languages)
async def test_the_example_of_a_task_is_silent_if_nothing_is_known(language: str) -> None:
    shown = Catalogue().text(language, "reminders.task_example")
    [(name, arguments)] = await calls(prompt(re.split(": |، ?مثلاً: ", shown)[-1]), REMINDING)
    wanted = orjson.loads(arguments)
    assert (name, wanted["cron"], wanted["is_task"]) == ("set_reminder", "0 8 * * 1", True)
    assert await answer(prompt(f"⏰ {wanted['text']}"), "none") == QUESTION_ALONE


async def test_a_short_message_is_quoted_with_what_stands_beside_it() -> None:
    memory = (
        "<memory>\n[3 May 2024] Ann: I talked with Ines about nuts.\n- Ann: Walnuts!\n</memory>\n"
    )
    quote = await answer(prompt(f"{memory}Which walnuts?", earlier=()), "none")
    assert quote.endswith("From 3 May 2024: “I talked with Ines about nuts.” “Walnuts!”")


async def test_a_learned_fact_answers_before_a_message_that_says_no_more() -> None:
    memory = (
        "<memory>\nFacts, by id and since when they are known:\n#4 [3 May 2024] Weighs 80 kilos.\n"
        "[4 May 2024] Ann: Do I weigh less now? I hope that I weigh less.\n</memory>\n"
    )
    quote = await answer(prompt(f"{memory}How heavy am I?", earlier=()), "none")
    assert "What I learned, 3 May 2024: “Weighs 80 kilos.”" in quote.splitlines()[2]


async def test_it_learns_facts_from_a_persons_own_statements() -> None:
    parts = await OfflineInternalModel().fill("Learn.\n\n## facts\nFacts.", INPUT, SHAPE)
    fact = {"text": "I live in Riga", "message": 1, "replaces": None, "repeats": None}
    fact["lasts"] = "changes"
    assert parts == {"facts": {"facts": [fact]}, "running_state": None, "synopses": None}


async def test_each_sentence_of_a_person_teaches_a_fact_of_its_own() -> None:
    said = "Great! My dog is called Rex. He is four. Is it raining? It is wet. I live in Riga. "
    said += "Remind me tomorrow to feed him. My tea is cold."
    assert await learned(said) == ["My dog is called Rex. He is four.", "I live in Riga."]
    assert await learned("Dr. Smith is my doctor.") == ["Dr. Smith is my doctor."]


async def learned(said: str) -> list[str]:
    line = orjson.dumps({"n": 1, "who": "Ann", "said": said}).decode()
    parts = await OfflineInternalModel().fill("## facts", f"## What was said\n{line}", SHAPE)
    return [each["text"] for each in parts["facts"]["facts"]]  # type: ignore[index]


async def test_a_fact_goes_on_while_it_fits_and_a_sentence_that_is_cut_is_not_learned() -> None:
    more = " The sea was grey and cold that day."
    assert await learned("My name is Ann." + 6 * more) == ["My name is Ann." + 5 * more]
    assert await learned("w" * 980 + ". My boat is called Aurora.") == []


async def test_it_writes_a_narrative_of_the_dated_memories() -> None:
    lines = '{"on":"3 May","memory":"Lunch"}\n{"on":"4 May","memory":"A walk"}'
    assert await OfflineInternalModel().write("Weave.", lines, 100) == "3 May: Lunch\n4 May: A walk"


async def test_of_a_picture_only_size_and_colors_are_told_and_a_page_is_not_read() -> None:
    picture = Picture(1, jpeg("blue"), "image/jpeg", 640, 480)
    model, seen = OfflineChatModel(0), "JPEG picture, 640 × 480 pixels"
    for asked, words, is_blind in ((PICTURE_QUESTION, seen, False), (PAGE_QUESTION, "", True)):
        reply = await model.complete(
            ModelRequest((PromptMessage("user", asked, pictures=(picture,)),))
        )
        assert (reply.text, reply.is_blind) == (words, is_blind)
    shown = PromptMessage("user", "[photo]\n\nOur stamp", pictures=(picture,))
    reply = await model.complete(ModelRequest((*EARLIER, shown), TOOLS))
    assert reply.text.startswith(f"I see this: {seen}.\n\nYou said: “Our stamp”")
    # What it said of a picture may be stored as what that picture shows; that is quoted by nobody.
    asks = PromptMessage("user", "[photo]\n\nWhat is in this picture?", pictures=(picture,))
    said = PromptMessage("user", f"[photo] I see this: {seen}. What it shows I cannot tell.")
    answered = PromptMessage("assistant", f"I see this: {seen}.")
    reply = await model.complete(ModelRequest((*EARLIER, said, answered, asks)))
    assert reply.text == f"I see this: {seen}.\n\n{SAYS['en']['caption']}"


async def test_a_sound_has_the_words_that_were_typed_with_it() -> None:
    server = OfflineServer()
    for number in range(30):
        server.keep(b"%d" % number, f"words {number}")
    transcriber = Transcriber(server, "m", 5)
    assert await transcriber.words(b"29", "ogg") == "words 29"
    assert [await transcriber.words(sound, "ogg") for sound in (b"0", b"other")] == ["", ""]


def test_a_text_of_many_blanks_takes_linear_time() -> None:
    long, short = (f"remind me{' ' * blanks}!" for blanks in (8_000, 500))
    assert ratio(lambda: tells_nothing(long), lambda: tells_nothing(short), QUADRATIC) < QUADRATIC
