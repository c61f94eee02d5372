"""What a tool is, and when it asks the person before it writes.

A tool has a name and a description for the model, typed arguments, and a function. It asks if
untrusted text was in the prompt, because such text may have told the model to write or erase
something (see README.md).
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict

from memory.behaviors.context import AgentContext
from memory.scopes.entries import Fact
from memory.scopes.writes import Remember, SetDomain, ToolWrite
from memory.search.words import beginnings_of
from memory.text.untrusted_text import UNTRUSTED_MARK, seen_by_people


class Arguments(BaseModel):
    """Base of all tool arguments: flat, without unknown fields, each described for the model."""

    model_config = ConfigDict(extra="forbid", frozen=True)


A = TypeVar("A", bound=Arguments)

_NOT_SHOWN = ("title", "minLength", "maxLength")


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool as the model sees it; `parameters` is a JSON schema object."""

    name: str
    description: str
    parameters: Mapping[str, object]


class ToolError(Exception):
    """Raised by a tool. The model reads the text: what was wrong, and what would be right."""


@dataclass(frozen=True, slots=True)
class Tool(Generic[A]):
    """One tool. `run` takes validated arguments and returns the text that the model reads.

    It may also return a `ToolOutput` with files, which are sent to the person with the answer.
    """

    name: str
    description: str
    arguments: type[A]
    run: Callable[[A, AgentContext], Awaitable[str]]
    is_final: bool = False  # its output is the reply, unchanged
    # Its output may hold text of others, as all that is fetched or looked up. After such output, or
    # one with `UNTRUSTED_MARK`, the person is asked before anything is written.
    is_untrusted: bool = True
    is_reader: bool = False  # it only reads: no answer means it that says it saved something
    uses_memory: bool = True  # it does not run off the record
    timeout_s: float = 0  # how long a call may take; 0: as long as `TOOL_TIMEOUT_S` says
    parameters: Mapping[str, object] | None = None  # the JSON schema, if not that of `arguments`

    @property
    def definition(self) -> ToolDefinition:
        """Return the definition; the same tool gives the same one, so prompts stay cacheable."""
        parameters = self.parameters
        if not parameters:
            schema = self.arguments.model_json_schema()
            for noise in ("title", "description", "additionalProperties"):
                schema.pop(noise, None)
            properties = schema.get("properties", {}).items()
            described = {name: _described(each) for name, each in properties}
            parameters = {**schema, "properties": described}
        return ToolDefinition(self.name, self.description, parameters)


def _described(described: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the model is told of an argument, in few tokens.

    What is optional is left out rather than empty or null. Lengths are only checked.
    """
    told = {name: value for name, value in described.items() if name not in _NOT_SHOWN}
    if told.get("default", ...) in (None, "", 0):
        del told["default"]
    match [each for each in told.get("anyOf", ()) if each != {"type": "null"}]:
        case [only]:
            del told["anyOf"]
            return _described(only) | told
    return told


DOCUMENTS_HEADING = "From documents:"
"""Stands above passages of documents, so that we see whether a prompt holds any."""


def holds_untrusted(context: AgentContext) -> bool:
    """Return whether the prompt of this run holds untrusted text.

    Untrusted is what was forwarded or quoted, what documents say, what tools brought, and what
    rests on such text: answers, the running state, synopses.
    """
    is_window_trusted = all(message.is_first_party for message in context.background.window)
    return not is_window_trusted or is_answer_untrusted(context)


def is_answer_untrusted(context: AgentContext) -> bool:
    """Return whether an answer written now may repeat untrusted text.

    Earlier answers in the window do not count. Otherwise one forwarded message would mark all
    answers after it.
    """
    background = context.background
    asked = (message for message in background.window if message.role == "user")
    shown = {message.seq for message in background.window}
    replied = (message for message in background.replied_to() if message.seq not in shown)
    results = (result for step in context.completed_steps for result in step.results)
    messages = (context.user_message, *asked, *background.recalled_messages(), *replied)
    return (
        not all(message.is_first_party for message in messages)
        or any(result.is_untrusted for result in results)
        or DOCUMENTS_HEADING in background.memory_context
        or UNTRUSTED_MARK in background.memory_context
    )


def must_ask(context: AgentContext, write: ToolWrite, facts: Sequence[Fact] = ()) -> bool:
    """Return whether to ask the person before this is written; `facts` are those of the scope.

    In a group it is enough that anybody else has ever talked to the assistant there. A new fact
    that the speaker states in the message being answered is written without asking.
    """
    if holds_untrusted(context):
        return True
    if isinstance(write, SetDomain) or context.conversation.is_private:
        return False
    said = context.user_message
    in_history = (m.sender_id for m in context.chat_history.messages if m.role == "user")
    in_facts = (source.sender_id for fact in facts for source in fact.sources)
    others = {*in_history, *in_facts} - {said.sender_id}
    # What other topics of the group said (`t` codes) may be of anybody.
    if not others and not any(code.startswith("t") for code in context.call_context.used):
        return False
    if isinstance(write, Remember) and not write.replaces:
        # The message may have other endings of the words.
        return not beginnings_of(write.text) <= beginnings_of(f"{said.sender_name} {said.text}")
    return True


def held_back(context: AgentContext, write: ToolWrite) -> ToolWrite:
    """Return a write with `asks_first` set if the rule asks for it (the tool did not look).

    It then holds only characters that the person sees in the question.
    """
    if write.asks_first or not must_ask(context, write):
        return write
    if isinstance(write, SetDomain):
        write = replace(write, fields=seen_by_people(write.fields))
    return replace(write, asks_first=True, sender_id=context.user_message.sender_id)
