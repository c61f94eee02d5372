"""`AgentContext`: what one run of the agent works with, for one conversation.

Only the history is stored. All other fields live as long as the run.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from memory.behaviors.call_context import CallContext
from memory.behaviors.steps import CompletedStep, ToolQuestion
from memory.behaviors.tool_output import OutgoingFile
from memory.message import NOTHING_SAID, Message, Picture, RepliedTo
from memory.scopes.history import ChatHistory, HistoryParts
from memory.scopes.writes import ToolWrite
from memory.search.message_search import SearchResult
from memory.store.keys import Scope
from memory.text.message_lines import Speakers
from memory.work.item import WorkChanges


@dataclass(slots=True)
class AgentContext:
    """The history, this turn's message, what goes into the prompt, and the steps so far.

    `now`: Unix seconds. `user_message`: the message that is answered, not in the history yet. If it
    was joined from the person's own words and forwarded messages, `user_messages` are its parts.
    `replies` are the messages that it replies to. `window`, `recalled` and `memory_context` (the
    texts of the behaviors) are parts of the prompt. `asked` is what was searched for.
    `completed_steps` begins with the step that the person agreed to, if there is one; `is_agreed`
    is set while its tool runs.

    `speakers` names the people of a group; it is None in private chats. `writes`: what tools want
    written after the reply was sent. `work`: what they add and cancel. `used`: codes of the
    memories whose text stood in the newest prompt; `call_context.used` has all that were offered.
    `sizes`: tokens of the parts of that prompt by their names. If `is_off_record`, tools that use
    the memory refuse to run.

    `pictures` came with the message. `is_blind`: the model could not see them.
    `are_pictures_refused`: its server refused them, and they were removed. `seen` says what they
    show, by the id of the message, in the person's `language` if it can. `tool_question`: a call
    that ends the run, because its person has to agree first. `files` of tools are sent with the
    answer. `sites_read`: addresses that `read_page` was allowed after untrusted text, by site.
    """

    conversation: Scope
    chat_history: ChatHistory
    now: float
    user_message: Message = NOTHING_SAID
    user_messages: tuple[Message, ...] = ()
    is_group: bool = False
    is_off_record: bool = False
    speakers: Speakers | None = None
    replies: tuple[RepliedTo, ...] = ()
    window: tuple[Message, ...] = ()
    asked: str = ""
    recalled: tuple[SearchResult, ...] = ()
    memory_context: str = ""
    call_context: CallContext | None = None
    completed_steps: list[CompletedStep] = field(default_factory=list)
    writes: list[ToolWrite] = field(default_factory=list)
    work: WorkChanges = field(default_factory=WorkChanges)
    used: tuple[str, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)
    language: str = "en"
    pictures: tuple[Picture, ...] = ()
    is_blind: bool = False
    are_pictures_refused: bool = False
    seen: Mapping[int, str] = field(default_factory=dict)
    tool_question: ToolQuestion | None = None
    is_agreed: bool = False
    files: list[OutgoingFile] = field(default_factory=list)
    sites_read: dict[str, str] = field(default_factory=dict)

    @classmethod
    async def get_or_create(
        cls, context_keys: Mapping[str, object], parts: HistoryParts, *, now: float
    ) -> "AgentContext":
        """Return the context of these keys, in any order; a turn builds its own instead.

        The same keys give the same history in every process. A new conversation is empty.
        """
        history = await ChatHistory.read(parts, Scope.of_keys(context_keys))
        return cls(history.conversation, history, now)
