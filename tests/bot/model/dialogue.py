"""What the tests of chat models say and offer, whichever API carries it."""

from bot.model.call import PromptMessage
from memory.behaviors.tool import ToolDefinition
from tests.servers.model_api import tool_call

TEXT = "One two three four five six seven eight."
HELLO = (PromptMessage("system", "Be brief."), PromptMessage("user", "hello"))
CLOCK = ToolDefinition("clock", "Tell the time", {"type": "object", "properties": {}})
CALLS = (tool_call("clock", zone="Asia/Tokyo"), tool_call("sum", expression="1 + 1"))
