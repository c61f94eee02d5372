"""The chat models: does each one stream, call tools, answer in JSON, and read a whole prompt.

A check costs about `PROMPT_TOKENS` tokens of the model. If the model does not answer the first
question, the others are not asked.

Some servers cut a long prompt silently. So we hide one word in the system message and one in the
oldest message, and ask for both at the end.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count

import orjson
from pydantic import BaseModel

from bot.features.check.advice import OTHER, KnownServer, recognize, trouble
from bot.model.call import ChatModel, ModelReply, ModelRequest, PromptMessage
from bot.model.chat_model import OpenAIChatModel
from bot.model.model_errors import ContextTooLong, ModelError, ModelRefused
from bot.model.models import chat_parameters
from bot.model.openai_client import open_client
from bot.model.structured import StructuredModel
from bot.probe import Row, Rows
from bot.prompt.sections import messages_tokens
from config.settings import Settings
from config.values import secret_of
from memory.behaviors.steps import ToolCall
from memory.behaviors.tool import ToolDefinition
from memory.text.internal_model import AnswerShape, PartInvalid
from memory.text.tokens import TokenCounter

_MAX_TIMEOUT_S = 60.0
_ASSISTANT = "You are being tested. Do exactly what is asked, and say nothing else."
_EXTRACT = "Extract what the person says of themselves."
_NOTE_COLOR = ToolDefinition(
    "note_color",
    "Notes a color.",
    {
        "type": "object",
        "properties": {"color": {"type": "string", "description": "The color's name"}},
        "required": ["color"],
        "additionalProperties": False,
    },
)
_MODES = {
    "json_schema": "takes a strict schema",
    "json_object": "takes JSON mode but no strict schema, which is enough",
    "prompt": "takes neither a JSON schema nor JSON mode, but answers in JSON if asked to",
}


class _Favorite(BaseModel):
    """What the person likes best."""

    color: str | None


_FAVORITE = AnswerShape.of({"favorite": _Favorite})


async def check_chat(settings: Settings) -> Rows:
    """Yield a row for each thing that a turn or an internal call needs of the model."""
    key = secret_of(settings.openai_api_key)
    timeout_s = min(_MAX_TIMEOUT_S, settings.model_timeout_s)
    known = await recognize(settings.openai_base_url, key)
    async with open_client(
        settings.openai_base_url, key, timeout_s, api=settings.openai_api
    ) as client:
        model = OpenAIChatModel(client, settings.openai_model, timeout_s, chat_parameters(settings))
        answered = await _stream(model, settings.openai_model, known)
        if answered.verdict == "fail":
            other_api = "" if settings.openai_api == "auto" else "; or set OPENAI_API=auto"
            yield replace(answered, advice=f"{answered.advice}{other_api}")
            return
        yield answered
        called = await _tool_call(model, known)
        server = known.name or "a server that docs/models.md does not list"
        api = "Responses" if model.api == "Responses" else "chat completions"
        yield Row("Model server", "ok", f"{server}, asked over {api}")  # a tool has passed
        yield called
        name, reasoning = settings.openai_memory_model, settings.openai_memory_reasoning
        structured = StructuredModel(client, name, timeout_s, reasoning)
        yield await _structured_answer(structured, name, known)
        tokens = await TokenCounter.load()
        max_tokens = settings.prompt_tokens - settings.reply_tokens
        yield await whole_prompt(model, tokens, max_tokens, known)


async def check_second(settings: Settings) -> Rows:
    """Yield the same rows for the second model, with the names of its own settings."""
    of_second = settings.model_copy(
        update={
            "openai_model": settings.fallback_model,
            "openai_memory_model": settings.fallback_model,
            "openai_base_url": settings.fallback_base_url,
            "openai_api_key": settings.fallback_api_key,
            "fallback_model": None,
            # These are for the first model; the second one gets none of them.
            "openai_api": "auto",
            "openai_reasoning": None,
            "openai_memory_reasoning": None,
            "openai_verbosity": None,
            "openai_service_tier": None,
        }
    )
    async for row in check_chat(of_second):
        advice = row.advice.replace("OPENAI_MEMORY_", "OPENAI_").replace("OPENAI_", "FALLBACK_")
        yield replace(row, what=f"Second {row.what[0].lower()}{row.what[1:]}", advice=advice)


async def _stream(model: ChatModel, name: str, known: KnownServer) -> Row:
    what, began = "Model stream", time.perf_counter()
    try:
        reply = await model.complete(ModelRequest(_prompt("Reply with the word: ready")))
    except ModelError as error:
        return trouble(what, error, known=known)
    seconds = time.perf_counter() - began
    if not reply.text.strip():
        return Row(what, "warn", f"{name} gave an empty answer", "try another OPENAI_MODEL")
    return Row(what, "ok", f"{name} answered in {seconds:.1f} s")


async def _tool_call(model: ChatModel, known: KnownServer) -> Row:
    what = "Model tool call"
    question = "Note the color blue: call the tool note_color."
    hint = known.tools or "another model may call tools, or an option of the server may allow it"
    try:
        reply = await model.complete(ModelRequest(_prompt(question), (_NOTE_COLOR,)))
    except ModelError as error:
        row = trouble(what, error, known=known)
        is_refused = isinstance(error, ModelRefused) and error.may_concern_parameters
        return replace(row, advice=f"{row.advice}; {hint}") if is_refused else row
    if any(_notes_blue(call) for call in reply.tool_calls):
        return Row(what, "ok", "called as asked")
    advice = f"without tools it cannot search its memory: try another OPENAI_MODEL; {hint}"
    seen = "called with other arguments" if reply.tool_calls else "not called"
    return Row(what, "warn", seen, advice)


async def _structured_answer(model: StructuredModel, name: str, known: KnownServer) -> Row:
    what, advice = "Model JSON", "try another OPENAI_MEMORY_MODEL"
    try:
        parts = await model.fill(_EXTRACT, "My favorite color is blue.", _FAVORITE)
        part = _FAVORITE.validate("favorite", parts["favorite"])
    except ModelError as error:
        return trouble(what, error, "OPENAI_MEMORY_MODEL", known)
    except PartInvalid:
        return Row(what, "fail", f"{name} answered in another shape", advice)
    if not isinstance(part, _Favorite) or "blue" not in (part.color or "").casefold():
        return Row(what, "warn", f"{name} did not fill in what it was told", advice)
    return Row(what, "ok", f"{name} {_MODES[model.mode]}")


def _prompt(question: str) -> Sequence[PromptMessage]:
    return (PromptMessage("system", _ASSISTANT), PromptMessage("user", question))


def _notes_blue(call: ToolCall) -> bool:
    try:
        arguments = orjson.loads(call.arguments)
    except orjson.JSONDecodeError:
        return False
    if not isinstance(arguments, dict):
        return False
    return call.name == _NOTE_COLOR.name and "blue" in str(arguments.get("color")).casefold()


_WHAT = "Model prompt"
_SYSTEM_WORD, _FIRST_WORD = "marzipan", "gyroscope"
_SYSTEM = f"You are being tested. The first test word is {_SYSTEM_WORD}."
_OPENING = f"The second test word is {_FIRST_WORD}."
_QUESTION = "Two test words were given at the very beginning. Reply with both of them."
_NOTED = PromptMessage("assistant", "Noted.")
_FILLER = 20 * "On this day nothing happened that anybody would have to remember. "
_MIN_COUNTED_SHARE = 0.75  # with less, a server did not read all of it; vocabularies differ by less


async def whole_prompt(
    model: ChatModel, tokens: TokenCounter, max_tokens: int, known: KnownServer = OTHER
) -> Row:
    """Ask for both words at the end of a prompt of up to `max_tokens`."""
    front = [PromptMessage("system", _SYSTEM), PromptMessage("user", _OPENING)]
    end = [_NOTED, PromptMessage("user", _QUESTION)]
    tokens_left = max_tokens - messages_tokens(tokens.count, [*front, *end])
    messages = [*front, *_talk(tokens, tokens_left), *end]
    sent = messages_tokens(tokens.count, messages)
    try:
        reply = await model.complete(ModelRequest(messages))
    except ContextTooLong:
        return Row(_WHAT, "fail", f"the model does not take {sent} tokens", _advice(known))
    except ModelError as error:
        return trouble(_WHAT, error, known=known)
    return front_was_read(reply, sent, known)


def front_was_read(reply: ModelReply, sent: int, known: KnownServer = OTHER) -> Row:
    """Judge the answer to a prompt of `sent` tokens by its words and by what the server counted."""
    text, counted = reply.text.casefold(), reply.usage.prompt_tokens
    hidden = {_SYSTEM_WORD: "the system message", _FIRST_WORD: "the first message"}
    missing = [place for word, place in hidden.items() if word not in text]
    if not missing:
        return Row(_WHAT, "ok", f"all of {sent} tokens were read")
    seen = f"the model lost the beginning of a prompt of {sent} tokens: {' and '.join(missing)}"
    advice = _advice(known)
    if counted:
        seen += f"; the server counted {counted}"
    if counted >= _MIN_COUNTED_SHARE * sent:
        advice += ", or try another OPENAI_MODEL"
    return Row(_WHAT, "fail", seen, advice)


def _advice(known: KnownServer) -> str:
    return f"lower PROMPT_TOKENS, or raise {known.context or 'the context of the server'}"


def _talk(tokens: TokenCounter, tokens_left: int) -> Iterator[PromptMessage]:
    """Yield pairs of an answer and the next message, together at most `tokens_left`."""
    for day in count(1):
        pair = (_NOTED, PromptMessage("user", f"Day {day}. {_FILLER}"))
        tokens_left -= messages_tokens(tokens.count, pair)
        if tokens_left < 0:
            return
        yield from pair
