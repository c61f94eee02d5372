"""The bot's command menus and descriptions, each by language.

A person sees the menu of the narrowest scope that has one, and within a scope the menu in their
language before the one without a language.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from bot.playground.bot_api.chats import LocalChat
from bot.playground.bot_api.values import MenuCommand, User


@dataclass(frozen=True, slots=True)
class CommandScope:
    """Who sees a menu; an id that the type does not need is 0."""

    type: str = "default"
    chat_id: int = 0
    user_id: int = 0


class Profile:
    """The menus by (scope, language), the descriptions by language; "" is any other language."""

    def __init__(self) -> None:
        self.menus: dict[tuple[CommandScope, str], tuple[MenuCommand, ...]] = {}
        self.descriptions: dict[str, str] = {}
        self.short_descriptions: dict[str, str] = {}

    def menu(self, person: User, chat: LocalChat) -> tuple[MenuCommand, ...]:
        """Return the commands that `person` is offered in `chat`."""
        for scope in _scopes(person, chat):
            for language in (person.language_code[:2], ""):
                if menu := self.menus.get((scope, language)):
                    return menu
        return ()


def _scopes(person: User, chat: LocalChat) -> Iterator[CommandScope]:
    """Yield the scopes of a person in a chat, the narrowest first."""
    if chat.kind == "private":
        yield CommandScope("chat", chat.id)
        yield CommandScope("all_private_chats")
    else:
        member = chat.members.get(person.id)
        is_admin = member is not None and member.is_admin
        yield CommandScope("chat_member", chat.id, person.id)
        if is_admin:
            yield CommandScope("chat_administrators", chat.id)
        yield CommandScope("chat", chat.id)
        if is_admin:
            yield CommandScope("all_chat_administrators")
        yield CommandScope("all_group_chats")
    yield CommandScope()
