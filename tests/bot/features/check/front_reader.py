"""A model that does what a check asks; its server may cut the beginning of a prompt."""

import json

from tests.servers.model_api import ChatRequest, Reply, tool_call

TEST_WORDS = ("marzipan", "gyroscope")
SMALL = {"prompt_tokens": 4000, "reply_tokens": 500, "model_timeout_s": 5}


class FrontReader:
    """Answers from the messages that the server lets it see.

    `shown` is how many messages at the end of a prompt it sees, None for all; `keeps` is how many
    at the beginning survive the cut. `calls_tools` may be turned off. `extracts` is its answer to a
    request for JSON.
    """

    def __init__(self) -> None:
        self.shown: int | None = None
        self.keeps = 0
        self.calls_tools = True
        self.extracts: object = {"favorite": {"color": "blue"}}

    async def respond(self, request: ChatRequest) -> Reply:
        if request.usable_tools and self.calls_tools:
            return Reply(tool_calls=(tool_call("note_color", color="Blue"),))
        if "test words" in request.last_user_message:
            text = self._shown_text(request)
            return Reply(" and ".join(word for word in TEST_WORDS if word in text) or "I forgot.")
        if "favorite color" in request.last_user_message:
            return Reply(json.dumps(self.extracts))
        return Reply("ready")

    def _shown_text(self, request: ChatRequest) -> str:
        messages = request.messages
        if self.shown is not None:
            messages = (*messages[: self.keeps], *messages[-self.shown :])
        return "\n".join(message.content for message in messages)
