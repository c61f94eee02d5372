"""Adds the behavior of a reasoning model to any script.

It thinks for long and shows nothing meanwhile. Its thoughts count towards the answer's maximum.
"""

from dataclasses import dataclass, field, replace

from tests.servers.model_api import ChatRequest, Reply, Responder

THOUGHTS = {"none": 0, "minimal": 20, "low": 100, "": 400, "medium": 400, "high": 2000}
"""Tokens of thoughts by effort; the default effort is medium."""
_TOKEN = "hm, "  # four bytes: a token, as the local server counts


@dataclass(slots=True)
class ReasoningModel:
    """Thinks, then answers as `script` does.

    `max_answer_tokens` limits an answer, thoughts included, if the client sets no limit; 0 means no
    limit. The text of a longer answer is cut, and it is empty if the thoughts have used all tokens.
    """

    script: Responder
    max_answer_tokens: int = 0
    efforts: list[str] = field(default_factory=list)

    async def respond(self, request: ChatRequest) -> Reply:
        """Return the script's answer with thoughts whose length depends on the effort."""
        self.efforts.append(request.effort)
        thoughts = THOUGHTS.get(request.effort, max(THOUGHTS.values()))
        reply = await self.script.respond(request)
        reply = replace(reply, thoughts=thoughts * _TOKEN)
        limit = request.max_output_tokens or self.max_answer_tokens
        if not limit:
            return reply
        left = 4 * max(0, limit - thoughts)
        if thoughts < limit and len(reply.text.encode()) <= left:
            return reply
        shown = reply.text.encode()[:left].decode(errors="ignore")
        thought = min(thoughts, limit) * _TOKEN
        return replace(reply, text=shown, tool_calls=(), thoughts=thought, finish_reason="length")
