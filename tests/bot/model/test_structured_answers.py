"""What simple models write, and how it is read."""

import json

import pytest

from bot.model.model_errors import AnswerIncomplete, AnswerUnreadable, ContentRefused, ModelError
from bot.model.structured import read_object
from tests.bot.model.internal_calls import (
    ANSWER,
    CONTENT,
    PARTS,
    SCHEMALESS,
    TASK,
    UNAWARE,
    Call,
    Internal,
    fill,
    write,
)
from tests.servers.model_api import ApiError, Dialect, Reply
from tests.work import calls

# What models write


@pytest.mark.parametrize(
    "said",
    [
        f"```json\n{ANSWER}\n```",
        f"```\n{ANSWER}\n```\nI hope this helps!",
        f"Sure! Here is the {{updated}} memory:\n\n{ANSWER}\n\nLet me know {{if}} it fits.",
        f'<think>Maybe {{"state": null, "facts": null}}?</think>{ANSWER}',
        f'The format is {{"name": "x"}}. {ANSWER} As {{"name": "x"}} asks.',
        json.dumps(PARTS, indent=4).replace("\n", "\r\n"),
        ANSWER[:-1] + ', "reasoning": "She said so."}',
    ],
    ids=["fence", "bare fence", "prose", "thoughts", "other objects", "spread", "a field too many"],
)
async def test_json_is_found_in_any_surrounding_text(internal: Internal, said: str) -> None:
    internal.script.then(said)
    assert await internal.fill() == PARTS
    assert len(internal.chats) == 1


async def test_a_line_break_inside_a_string_is_read(internal: Internal) -> None:
    internal.script.then('{"state": {"first_name": "Ann\nLee", "goals": []}, "facts": null}')
    state = {"first_name": "Ann\nLee", "goals": []}
    assert await internal.fill() == {"state": state, "facts": None}


USELESS = [
    "I cannot update the memory.",
    "",
    f"[{ANSWER}]",
    '"text"',
    "null",
    "{}",
    '{"name": "Ann"}',
    ANSWER[:-4],
    '{"a":' * 5_000,
    "{" * 5_000,
]


@pytest.mark.parametrize("said", USELESS, ids=lambda said: said[:12])
def test_an_answer_without_the_parts_that_were_asked_for_is_unreadable(said: str) -> None:
    with pytest.raises(AnswerUnreadable, match="no such JSON object"):
        read_object(said, PARTS)


def test_objects_that_do_not_end_are_walked_through_only_a_few_times() -> None:
    """Walked through from each brace, 60 kB of text hold the loop for seconds."""
    for rest in ("[" + "1," * 1_000, '"' + "x" * 2_000):

        def read(text: str = '{"a":' * 300 + rest) -> None:
            with pytest.raises(AnswerUnreadable):
                read_object(text, PARTS)

        assert calls(read) < 100


@pytest.mark.parametrize("dialect", [Dialect(), SCHEMALESS, UNAWARE])
async def test_an_unreadable_answer_is_retried_once(internal: Internal, dialect: Dialect) -> None:
    internal.server.dialect = dialect
    internal.script.then(USELESS[0])
    assert await internal.fill() == PARTS
    assert len(internal.chats) == 2
    internal.script.then(USELESS[0], USELESS[0])
    with pytest.raises(AnswerUnreadable) as caught:
        await internal.fill()
    assert str(caught.value) == "no such JSON object"
    assert len(internal.chats) == 4


@pytest.mark.parametrize(
    ("said", "parts"),
    [
        ('{"state": "null", "facts": {"facts": []}}', {"state": "null", "facts": {"facts": []}}),
        ('{"facts": {"facts": []}}', {"state": None, "facts": {"facts": []}}),
        ('{"state": {"goals": []}}', {"state": {"goals": []}, "facts": None}),
        ('{"state": ["Ann"], "facts": null}', {"state": ["Ann"], "facts": None}),
    ],
)
async def test_with_the_schema_in_the_prompt_a_missing_part_is_none_and_an_odd_one_stays(
    internal: Internal, said: str, parts: dict[str, object]
) -> None:
    internal.server.dialect = SCHEMALESS
    internal.script.then(said)
    assert await internal.fill() == parts
    assert len(internal.chats) == 1


@pytest.mark.parametrize("said", ['{"state": {"goals": []}}', "Ann likes tea."])
async def test_a_server_that_ignores_the_schema_gets_it_in_the_prompt_from_then_on(
    internal: Internal, said: str
) -> None:
    internal.script.then(said)
    assert await internal.fill() == PARTS
    assert await internal.fill() == PARTS
    assert internal.modes == ["json_schema", "json_schema+", "json_schema+"]


async def test_if_the_schema_in_the_prompt_does_not_help_the_next_call_goes_without_it(
    internal: Internal,
) -> None:
    internal.script.then("No.", "No!")
    with pytest.raises(AnswerUnreadable):
        await internal.fill()
    await internal.fill()
    assert internal.modes == ["json_schema", "json_schema+", "json_schema"]


@pytest.mark.parametrize("call", [fill, write])
@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (Reply(ANSWER, finish_reason="length"), AnswerIncomplete),
        (Reply(refusal="I'm sorry, I can't help with Ann."), ContentRefused),
        (Reply(ANSWER, finish_reason="content_filter"), ContentRefused),
    ],
    ids=["cut", "refusal", "filter"],
)
async def test_an_answer_that_is_cut_or_declined_is_not_asked_for_again(
    internal: Internal, call: Call, reply: Reply, expected: type[ModelError]
) -> None:
    internal.script.then(reply)
    with pytest.raises(ModelError) as caught:
        await call(internal.model())
    assert type(caught.value) is expected
    assert "Ann" not in str(caught.value)
    assert len(internal.chats) == 1


# Prose


async def test_a_request_for_prose_has_a_token_limit_and_no_format(internal: Internal) -> None:
    internal.script.then("  In May Ann began to like tea.\n")
    assert await internal.write() == "In May Ann began to like tea."
    assert [chat.raw for chat in internal.chats] == [
        {
            "model": "gpt-test",
            "messages": [{"role": "system", "content": TASK}, {"role": "user", "content": CONTENT}],
            "max_completion_tokens": 300,
            "temperature": 0,
        }
    ]


@pytest.mark.parametrize(
    ("unsupported", "bounds"),
    [
        ({"max_completion_tokens"}, (None, 300)),
        ({"max_completion_tokens", "max_tokens", "temperature"}, (None, None)),
        ({"max_tokens"}, (300, None)),
    ],
)
async def test_the_token_limit_of_prose_has_the_name_that_the_server_takes(
    internal: Internal, unsupported: set[str], bounds: tuple[int | None, int | None]
) -> None:
    internal.server.dialect = Dialect(unsupported=frozenset(unsupported))
    await internal.write()
    await internal.write()
    names = ("max_completion_tokens", "max_tokens")
    asked = [tuple(chat.raw.get(name) for name in names) for chat in internal.chats]
    assert asked == [bounds] * 2


async def test_refusals_of_prose_do_not_change_the_format_of_json(internal: Internal) -> None:
    internal.server.faults.add(
        ApiError(400, "Bad request"), times=None, when=lambda request: "temperature" in request.raw
    )
    await internal.write()
    internal.server.faults.clear()
    await internal.fill()
    assert internal.modes[-1] == "json_schema"


async def test_blank_prose_is_asked_for_again_once(internal: Internal) -> None:
    internal.script.then(" \n", "Tea.")
    assert await internal.write() == "Tea."
    internal.script.then(" ", "")
    with pytest.raises(AnswerUnreadable):
        await internal.write()
    assert len(internal.chats) == 4


async def test_a_model_that_spends_a_token_limit_on_reasoning_gets_none(internal: Internal) -> None:
    internal.script.then(Reply("", finish_reason="length"), "Tea.")
    assert await internal.write() == "Tea."
    await internal.write()
    assert internal.sent("max_completion_tokens") == [300, None, None]
