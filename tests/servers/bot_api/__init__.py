"""The local Telegram for tests."""

from tests.servers.bot_api import contents as contents
from tests.servers.bot_api.calls import Call as Call
from tests.servers.bot_api.calls import DropConnection as DropConnection
from tests.servers.bot_api.calls import FloodWait as FloodWait
from tests.servers.bot_api.calls import Hang as Hang
from tests.servers.bot_api.calls import Refuse as Refuse
from tests.servers.bot_api.calls import SentThenDrop as SentThenDrop
from tests.servers.bot_api.calls import ServerError as ServerError
from tests.servers.bot_api.calls import SlowAnswer as SlowAnswer
from tests.servers.bot_api.chats import Chat as Chat
from tests.servers.bot_api.chats import Message as Message
from tests.servers.bot_api.people import Person as Person
from tests.servers.bot_api.server import BOT as BOT
from tests.servers.bot_api.server import BotApiServer as BotApiServer
from tests.servers.bot_api.updates import Pace as Pace
from tests.servers.bot_api.updates import Waiting as Waiting
from tests.servers.bot_api.values import Button as Button
from tests.servers.bot_api.values import Entity as Entity
from tests.servers.bot_api.values import MediaKind as MediaKind
from tests.servers.bot_api.values import Topic as Topic
from tests.servers.bot_api.values import Upload as Upload
from tests.servers.bot_api.values import User as User
from tests.servers.bot_api.values import utf16_length as utf16_length
