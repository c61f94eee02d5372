"""What all tests share: a real Valkey for each worker, and a network that ends at loopback."""

import asyncio
import gc
import os
import re
import sys
import warnings
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from importlib import import_module
from ipaddress import ip_address
from pathlib import Path
from types import ModuleType
from typing import Any

import jinja2
import pytest
import structlog
import uvloop
from hypothesis import HealthCheck, settings
from hypothesis.internal import charmap
from hypothesis.internal.conjecture import providers
from hypothesis.internal.intervalsets import IntervalSet
from redis._parsers.commands import AsyncCommandsParser
from redis.asyncio.cluster import ClusterNode, NodesManager
from redis.cluster import PRIMARY

from memory.memory import Memory
from memory.search.embeddings import Embedder
from memory.store import client as redis_client
from memory.store.client import RedisClient
from memory.text.tokens import TokenCounter
from tests.memory.clients import DyingClient
from tests.memory.conftest import OPTIONS, memory_of
from tests.valkey import OneNodeCluster, ValkeyServer, opened


def _stay_on_loopback(event: str, args: tuple[object, ...]) -> None:
    if event in {"socket.connect", "socket.sendto"}:
        address = args[1]
        _check(address[0] if isinstance(address, tuple) else None)
    elif event in {"socket.getaddrinfo", "socket.gethostbyname"}:
        _check(args[0])


def _check(host: object) -> None:
    if host and not _is_here(host.decode() if isinstance(host, bytes) else str(host)):
        raise RuntimeError(f"a test tried to reach {host}")


def _is_here(host: str) -> bool:
    """Accept loopback, and what servers bind to."""
    try:
        address = ip_address(host)
    except ValueError:
        return host in ("localhost", "2130706433", "0x7f.1")  # other ways to write 127.0.0.1
    return address.is_loopback or address.is_unspecified


sys.addaudithook(_stay_on_loopback)
for _name in ("http_proxy", "https_proxy", "all_proxy"):  # they would be asked for loopback, too
    os.environ.pop(_name, None)
    os.environ.pop(_name.upper(), None)


class LoopbackLoop(uvloop.Loop):
    """The bot's own event loop, which opens connections without a word to the hook above."""

    async def create_connection(
        self, protocol_factory: Any, host: Any = None, port: Any = None, **kwargs: Any
    ) -> Any:
        _check(host)
        return await super().create_connection(protocol_factory, host, port, **kwargs)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """End what waits when a test's time is over.

        pytest-timeout raises that from a signal, and uvloop takes it for an error of a callback,
        reports it and waits on for ever.
        """
        if isinstance(context.get("exception"), pytest.fail.Exception):
            for task in asyncio.all_tasks(self):
                task.cancel(str(context["exception"]))
        super().call_exception_handler(context)

    def close(self) -> None:
        """Close what a test left open, and fail with the first of it.

        uvloop warns of each open handle, leaves it open if the warning is an error, and then waits
        for it for ever.
        """
        with warnings.catch_warnings(record=True) as left_open:
            warnings.simplefilter("always")
            super().close()
        for warning in left_open:
            raise ResourceWarning(str(warning.message))


def pytest_asyncio_loop_factories() -> dict[str, type[LoopbackLoop]]:
    """Run tests on the bot's event loop; it also takes a tenth less of the processor."""
    return {"uvloop": LoopbackLoop}


_ask_for_commands = AsyncCommandsParser.initialize
_commands: dict[str, Any] = {}


async def _know_commands(parser: AsyncCommandsParser, node: Any = None) -> None:
    """Ask a Cluster for its table of commands once, not for each of a thousand clients."""
    if _commands:
        parser.node, parser.commands = node or parser.node, _commands
    else:
        await _ask_for_commands(parser, node)
        _commands.update(parser.commands)


setattr(AsyncCommandsParser, "initialize", _know_commands)  # noqa: B010 - a method for mypy

_ask_for_slots = NodesManager.initialize
_alone: set[str] = set()


async def _know_slots(manager: NodesManager, *args: Any, **kwargs: Any) -> None:
    """Tell a new client that a node has all slots, if an earlier client has learned it.

    The SDK lists all 16,384, which takes longer than many tests. It is asked as usual if a client
    has to learn the slots again.
    """
    [name, *others] = manager.startup_nodes
    if name in _alone and not others and not manager.slots_cache:
        asked = manager.startup_nodes[name]
        node = ClusterNode(asked.host, asked.port, PRIMARY, **manager.connection_kwargs)
        manager.default_node, nodes = node, [node]
        manager.set_nodes(manager.nodes_cache, {name: node})
        manager.slots_cache = defaultdict(lambda: nodes, {0: nodes})
        return
    await _ask_for_slots(manager, *args, **kwargs)
    if [*manager.nodes_cache] == [name]:
        _alone.add(name)


setattr(NodesManager, "initialize", _know_slots)  # noqa: B010

_compile = jinja2.Environment.compile
_compiled: dict[tuple[object, ...], Any] = {}


def _compile_once(templates: jinja2.Environment, *source: Any) -> Any:
    """Compile the templates of a page once, not for each test that opens the page."""
    if source not in _compiled:
        _compiled[source] = _compile(templates, *source)
    return _compiled[source]


setattr(jinja2.Environment, "compile", _compile_once)  # noqa: B010

# Thousands of tests share two cores with bots and servers: fewer examples, none in a hurry.
settings.register_profile(
    "suite", max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("quick", settings.get_profile("suite"), max_examples=5)
settings.register_profile("long", settings.get_profile("suite"), max_examples=1000)
settings.load_profile("suite")
# Each worker would read all our sources for constants to try, which takes two seconds.
providers._get_local_constants = lambda: providers._local_constants
# Each worker would try to encode every character, which takes four seconds.
_UTF_8 = IntervalSet([(0, 0xD7FF), (0xE000, sys.maxunicode)])
setattr(charmap, "intervals_from_codec", {"utf-8": (_UTF_8, IntervalSet())}.__getitem__)  # noqa: B010
redis_client.CALL_TIMEOUT_S = 60.0  # on a busy machine one import may take the usual twelve

# Its usual tracebacks, with all variables, take long enough for leases to end meanwhile.
_plain = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
structlog.configure([*structlog.get_config()["processors"][:-1], _plain])


@pytest.fixture(scope="session")
def tokens() -> TokenCounter:
    return asyncio.run(TokenCounter.load())


@pytest.fixture(scope="session")
def launcher(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Have bots forked from one process from now on, which saves the seconds of their imports."""
    from tests.acceptance.bot_process import fork_bots  # noqa: PLC0415 - only for tests with bots

    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        fork_bots(folder.parent, os.getppid())  # one for all workers of this run
    else:
        fork_bots(folder, os.getpid())


@pytest.fixture(scope="session")
def valkey_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ValkeyServer]:
    with ValkeyServer(tmp_path_factory.mktemp("valkey")) as server:
        yield server


@pytest.fixture(scope="session")
def cluster_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OneNodeCluster]:
    with OneNodeCluster(tmp_path_factory.mktemp("cluster")) as server:
        yield server


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[ValkeyServer]:
    """Give a server that a test may break."""
    server = ValkeyServer(tmp_path)
    server.start()
    yield server
    server.kill()  # it may be writing its first append-only file and not react to a stop


@pytest.fixture
def valkey(valkey_server: ValkeyServer) -> str:
    """Give the address of an empty database."""
    valkey_server.ask("FLUSHALL")
    return valkey_server.url


@pytest.fixture
async def store(valkey: str) -> AsyncIterator[RedisClient]:
    """Give a client of an empty database."""
    async with opened(valkey) as client:
        yield client


@pytest.fixture
def embedder() -> Embedder | None:
    """Give no model of embeddings; tests that need one override this."""
    return None


@pytest.fixture
def memory(store: RedisClient, tokens: TokenCounter, embedder: Embedder | None) -> Memory:
    """Give the memory of a bot on an empty database."""
    return Memory(store, 42, tokens, embedder, OPTIONS)


@pytest.fixture
def other(store: RedisClient, tokens: TokenCounter, embedder: Embedder | None) -> Memory:
    """Give the memory of another process of the same bot."""
    return Memory(store, 42, tokens, embedder, OPTIONS)


@pytest.fixture
async def dying(valkey: str) -> AsyncIterator[DyingClient]:
    """Give a client of the same database whose process dies."""
    client = await DyingClient.open(valkey)
    yield client
    await client.close()


Doomed = Callable[[], Memory]


@pytest.fixture
def doomed(dying: DyingClient) -> Doomed:
    """Make the memory of a process that dies; a new process has read nothing yet."""
    return lambda: memory_of(dying)


@pytest.fixture
async def cluster_store(cluster_server: OneNodeCluster) -> AsyncIterator[RedisClient]:
    """Give a client of an empty Cluster."""
    cluster_server.ask("FLUSHALL")
    async with opened(cluster_server.url) as client:
        yield client


Documented = Callable[[str, str], ModuleType]
_DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture
def documented(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Documented]:
    """Import the example of a page that contains a text, as the module of an operator."""
    names: list[str] = []

    def imported(page: str, text: str) -> ModuleType:
        examples = re.findall(r"```python\n(.*?)```", (_DOCS / page).read_text(), re.DOTALL)
        [example] = [each for each in examples if text in each]
        names.append(f"documented_{len(names)}")
        (tmp_path / f"{names[-1]}.py").write_text(example)
        monkeypatch.syspath_prepend(str(tmp_path))
        return import_module(names[-1])

    yield imported
    for name in names:
        sys.modules.pop(name, None)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for garbage only once all is collected, and never again among what was collected."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
