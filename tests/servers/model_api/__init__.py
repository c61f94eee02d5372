"""A model API on this machine: the server, the replies it gives and the faults it is asked for."""

from tests.servers.model_api.calls import Call as Call
from tests.servers.model_api.errors import ApiError as ApiError
from tests.servers.model_api.errors import content_filtered as content_filtered
from tests.servers.model_api.errors import rate_limited as rate_limited
from tests.servers.model_api.errors import server_error as server_error
from tests.servers.model_api.faults import Break as Break
from tests.servers.model_api.faults import Quirk as Quirk
from tests.servers.model_api.faults import StreamBreak as StreamBreak
from tests.servers.model_api.requests import ApiRequest as ApiRequest
from tests.servers.model_api.requests import ChatRequest as ChatRequest
from tests.servers.model_api.requests import EmbeddingsRequest as EmbeddingsRequest
from tests.servers.model_api.requests import Reply as Reply
from tests.servers.model_api.requests import Scripted as Scripted
from tests.servers.model_api.requests import SpeechRequest as SpeechRequest
from tests.servers.model_api.requests import TranscriptionRequest as TranscriptionRequest
from tests.servers.model_api.requests import is_chat as is_chat
from tests.servers.model_api.requests import is_embeddings as is_embeddings
from tests.servers.model_api.requests import is_image as is_image
from tests.servers.model_api.requests import is_responses as is_responses
from tests.servers.model_api.requests import is_speech as is_speech
from tests.servers.model_api.requests import is_transcription as is_transcription
from tests.servers.model_api.requests import tool_call as tool_call
from tests.servers.model_api.rules import Dialect as Dialect
from tests.servers.model_api.server import OPUS_HEAD as OPUS_HEAD
from tests.servers.model_api.server import PICTURE as PICTURE
from tests.servers.model_api.server import ModelApiServer as ModelApiServer
