"""The chat model: does it stream, call tools, and answer in a shape.

A check costs about `PROMPT_TOKENS` tokens of the model. The first row decides: a model that does
not answer at all is not asked for more.
"""

import time
from collections.abc import Sequence
from dataclasses import replace

import orjson
from pydantic import BaseModel

from bot.check.model_trouble import trouble
from bot.check.prompt_front import whole_prompt
from bot.check.recognition import KnownServer, recognize
from bot.check.rows import Row, Rows
from bot.model.call import ChatModel, PromptMessage
from bot.model.chat import OpenAIChatModel
from bot.model.model_errors import ModelError, ModelRefused
from bot.model.models import wishes_of
from bot.model.openai_client import open_client
from bot.model.structured import StructuredModel
from config.settings import Settings
from memory.behaviors.steps import ToolCall
from memory.behaviors.tool import ToolDefinition
from memory.text.shape import PartInvalid, Shape
from memory.text.tokens import TokenCounter

_PATIENCE_S = 60.0
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
    "json_object": "has JSON mode and no strict schema, which will do",
    "prompt": "has neither JSON schema nor JSON mode; asked in words it answers so",
}


class _Favorite(BaseModel):
    """What the person likes best."""

    color: str | None


_FAVORITE = Shape.of({"favorite": _Favorite})


async def check_chat(settings: Settings) -> Rows:
    """Yield a row for each thing that turns ask of the model."""
    key = settings.openai_api_key
    timeout_s = min(_PATIENCE_S, settings.model_timeout_s)
    secret = key.get_secret_value() if key else None
    known = await recognize(settings.openai_base_url, secret)
    async with open_client(
        settings.openai_base_url, secret, timeout_s, api=settings.openai_api
    ) as client:
        model = OpenAIChatModel(client, settings.openai_model, timeout_s, wishes_of(settings))
        answered = await stream(model, settings.openai_model, known)
        if answered.verdict == "fail":
            yield _with_api(answered, settings)
            return
        yield answered
        called = await tool_call(model, known)
        yield server_row(known, model)
        yield called
        structured = StructuredModel(
            client,
            settings.openai_memory_model,
            timeout_s,
            reasoning=settings.openai_memory_reasoning,
        )
        yield await structured_answer(structured, settings.openai_memory_model, known)
        tokens = await TokenCounter.load()
        size = settings.prompt_tokens - settings.reply_tokens
        yield await whole_prompt(model, tokens, size, known)


def server_row(known: KnownServer, model: OpenAIChatModel) -> Row:
    """Say which server it is, and by which API it is asked now that it was offered a tool."""
    name = known.name or "none that docs/models.md knows"
    api = "Responses" if model.api == "Responses" else "chat completions"
    return Row("Model server", "ok", f"{name}, asked over {api}")


def _with_api(failed: Row, settings: Settings) -> Row:
    if settings.openai_api == "auto":
        return failed
    return replace(failed, advice=f"{failed.advice}; OPENAI_API=auto asks by the API it takes")


async def stream(model: ChatModel, name: str, known: KnownServer) -> Row:
    """Ask for one word: every call of the bot is streamed."""
    what, began = "Model stream", time.perf_counter()
    try:
        reply = await model.complete(_asked("Reply with the word: ready"), ())
    except ModelError as error:
        return trouble(what, error, known=known)
    seconds = time.perf_counter() - began
    if not reply.text.strip():
        return Row(what, "warn", f"{name} answered nothing", "try another OPENAI_MODEL")
    return Row(what, "ok", f"{name} answered in {seconds:.1f} s")


async def tool_call(model: ChatModel, known: KnownServer) -> Row:
    """Ask for a call of the one tool on offer."""
    what = "Model tool call"
    question = "Note the color blue: call the tool note_color."
    tools = known.tools or "a model of another kind, or an option of the server, may call them"
    try:
        reply = await model.complete(_asked(question), (_NOTE_COLOR,))
    except ModelError as error:
        row = trouble(what, error, known=known)
        is_refused = isinstance(error, ModelRefused) and error.may_concern_parameters
        return replace(row, advice=f"{row.advice}; {tools}") if is_refused else row
    if any(_notes_blue(call) for call in reply.tool_calls):
        return Row(what, "ok", "called as asked")
    advice = f"without tools it cannot search its memory: try another OPENAI_MODEL; {tools}"
    seen = "called with other arguments" if reply.tool_calls else "not called"
    return Row(what, "warn", seen, advice)


async def structured_answer(model: StructuredModel, name: str, known: KnownServer) -> Row:
    """Ask for JSON of one shape, as learning does, and say which way of asking the server takes."""
    what = "Model JSON"
    try:
        parts = await model.fill(_EXTRACT, "My favorite color is blue.", _FAVORITE)
        part = _FAVORITE.validate("favorite", parts["favorite"])
    except ModelError as error:
        return trouble(what, error, "OPENAI_MEMORY_MODEL", known)
    except PartInvalid:
        seen, advice = f"{name} answers in another shape", "try another OPENAI_MEMORY_MODEL"
        return Row(what, "fail", seen, advice)
    if not isinstance(part, _Favorite) or "blue" not in (part.color or "").casefold():
        seen, advice = f"{name} left it empty", "try another OPENAI_MEMORY_MODEL"
        return Row(what, "warn", seen, advice)
    return Row(what, "ok", f"{name} {_MODES[model.mode]}")


def _asked(question: str) -> Sequence[PromptMessage]:
    return (PromptMessage("system", _ASSISTANT), PromptMessage("user", question))


def _notes_blue(call: ToolCall) -> bool:
    try:
        arguments = orjson.loads(call.arguments)
    except orjson.JSONDecodeError:
        return False
    if not isinstance(arguments, dict):
        return False
    return call.name == _NOTE_COLOR.name and "blue" in str(arguments.get("color")).casefold()
