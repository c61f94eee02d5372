"""A model with a reasoning model's habits, in front of any script.

It thinks for long and shows nothing meanwhile, and its thoughts use up the room for the answer.
"""

from dataclasses import dataclass, field, replace

from tests.servers.model_api import ChatRequest, Reply, Responder

THOUGHTS = {"none": 0, "minimal": 20, "low": 100, "": 400, "medium": 400, "high": 2000}
"""Tokens of thoughts by effort; the server's own is medium."""
_TOKEN = "hm, "  # four bytes: a token, as the local server counts


@dataclass(slots=True)
class ReasoningModel:
    """Answers as `script` does, after thoughts.

    `room_tokens` is the bound of an answer when the client sets none, 0 means no bound. An answer
    beyond it is cut: a text at the bound, or no text at all when the thoughts have filled it.
    """

    script: Responder
    room_tokens: int = 0
    thinking_s: float = 0
    efforts: list[str] = field(default_factory=list)

    async def respond(self, request: ChatRequest) -> Reply:
        """Return the script's answer with thoughts of a length that the effort asks for."""
        self.efforts.append(request.effort)
        thoughts = THOUGHTS.get(request.effort, max(THOUGHTS.values()))
        reply = await self.script.respond(request)
        reply = replace(reply, thoughts=thoughts * _TOKEN, thinking_s=self.thinking_s)
        room = request.max_output_tokens or self.room_tokens
        if not room:
            return reply
        left = 4 * max(0, room - thoughts)
        if thoughts < room and len(reply.text.encode()) <= left:
            return reply
        shown = reply.text.encode()[:left].decode(errors="ignore")
        thought = min(thoughts, room) * _TOKEN
        return replace(reply, text=shown, tool_calls=(), thoughts=thought, finish_reason="length")
