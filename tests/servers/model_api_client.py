"""A client of the local model server: the real SDK, which the bot uses too."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from openai import AsyncOpenAI

from tests.servers.model_api import ModelApiServer


@asynccontextmanager
async def client_of(server: ModelApiServer) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(base_url=server.base_url, api_key="any", max_retries=0) as client:
        yield client
