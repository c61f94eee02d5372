"""What can go wrong between us and Telegram; each class says when, so the caller knows what to do.

    TelegramError                 a call failed
    ├── Unreachable               the request never left: safe to repeat
    ├── OutcomeUnknown            it left and no readable answer came: never repeated blindly
    ├── FloodWait                 too many calls: wait `retry_after_s`
    ├── Blocked                   403: the person or the group no longer wants us
    ├── Refused                   400: this request will never pass as it is; `reason` says why
    ├── ChatMigrated              the group became a supergroup: use `new_chat_id`
    ├── Conflict                  409: somebody else polls, or a webhook is set
    ├── WebhookTaken              a webhook has the updates, and we may not take it away
    └── BadToken                  401 or 404: Telegram does not know this token
    DeliveryError                 an update could not be handed on
    ├── UnreadableUpdate          it is not what the Bot API describes: counted and left behind
    └── NotAccepted               it could not be stored: Telegram keeps it and delivers it again
        └── IntakeClosed          messages have to wait: commands and buttons behind it need not

Texts carry only fixed words: never a token, an address or what somebody wrote. `WebhookTaken` names
the host of a webhook: its path may be a secret.
"""

from typing import Literal

RefusalReason = Literal[
    "entities",
    "reply_gone",
    "topic_gone",
    "message_gone",
    "unchanged",
    "too_long",
    "too_big",
    "other",
]


class TelegramError(Exception):
    """Raised when a call to Telegram did not do what it was asked to."""


class Unreachable(TelegramError):  # noqa: N818 - the names say when
    """Raised when the connection failed before the request could be sent."""


class OutcomeUnknown(TelegramError):  # noqa: N818
    """Raised when the request was sent, and whether it was done is unknown."""


class FloodWait(TelegramError):  # noqa: N818
    """Raised on 429; calling again sooner than `retry_after_s` lengthens the ban."""

    def __init__(self, retry_after_s: float) -> None:
        super().__init__(f"too many calls: wait {retry_after_s:g} s")
        self.retry_after_s = retry_after_s


class Blocked(TelegramError):  # noqa: N818
    """Raised when the bot was blocked, removed or silenced in that chat."""


class Refused(TelegramError):  # noqa: N818
    """Raised when Telegram understood the request and declines it.

    `description` is Telegram's own sentence: for the operator's eyes, where the request held
    nothing that a person wrote.
    """

    def __init__(self, reason: RefusalReason, description: str = "") -> None:
        super().__init__(f"refused: {reason}")
        self.reason = reason
        self.description = description

    @property
    def bad_entities(self) -> bool:
        """Tell whether the same text would pass without its formatting."""
        return self.reason == "entities"


class ChatMigrated(TelegramError):  # noqa: N818
    """Raised when the group lives on as a supergroup under `new_chat_id`."""

    def __init__(self, new_chat_id: int) -> None:
        super().__init__("the group became a supergroup")
        self.new_chat_id = new_chat_id


class Conflict(TelegramError):  # noqa: N818
    """Raised when another process polls with this token, or a webhook is set."""


class WebhookTaken(TelegramError):  # noqa: N818
    """Raised instead of polling while a webhook is set; `host` is where it leads."""

    def __init__(self, host: str) -> None:
        super().__init__(
            f"a webhook delivers this bot's messages to {host}. If this is that bot, set "
            "WEBHOOK_URL; to poll instead, set TAKE_OVER_WEBHOOK=yes, and the process there gets "
            "no messages any more; else use another token"
        )
        self.host = host


class BadToken(TelegramError):  # noqa: N818
    """Raised when Telegram does not accept the token."""


DECLINED = (Blocked, ChatMigrated, Refused)
"""After these the same call would be declined again."""


class DeliveryError(Exception):
    """Raised when an update could not be handed on."""


class UnreadableUpdate(DeliveryError):  # noqa: N818
    """Raised when an update is not what the Bot API describes; its id may be known."""

    def __init__(self, update_id: int | None) -> None:
        super().__init__(f"unreadable update {update_id}")
        self.update_id = update_id


class NotAccepted(DeliveryError):  # noqa: N818
    """Raised when an update cannot be stored now: storage is down, or intake is full."""


class IntakeClosed(NotAccepted):
    """Raised when there is no room for messages; what is no message may be taken all the same."""
