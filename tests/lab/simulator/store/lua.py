"""Runs Lua scripts as Redis does, in a real Lua 5.1; the only module that imports lupa.

One interpreter is enough for a process, because scripts keep nothing between calls. Lists pass
between Lua and Python as flat tokens, `true` and the length first, because Lua tables are slow
there.
"""

from collections.abc import Callable, Iterator
from typing import Any

import lupa.lua51 as lupa  # type: ignore[import-untyped]
import orjson

from tests.lab.simulator.store.keyspace import Args, RedisError, Reply, Status, written

Inside = Callable[[bytes, Args], Reply]

_BORDER = b"""
local call, pcall, decode, encode = ...

-- Reads a value of Python's from the tokens; returns it, then the position of the next one.
local function read(tokens, at)
  local token = tokens[at]
  if token ~= true then return token, at + 1 end
  local length, list = tokens[at + 1], {}
  at = at + 2
  if type(length) == 'string' then return {[length] = tokens[at]}, at + 1 end
  for i = 1, length do list[i], at = read(tokens, at) end
  return list, at
end

local function received(first, ...)
  if first ~= true then return first end
  return (read({true, ...}, 1))
end

cjson = {decode = decode, encode = encode}

redis = {
  call = function(...) return received(call(...)) end,
  pcall = function(...) return received(pcall(...)) end,
}

-- Writes what a script answers as tokens: nil and false are no value, a list ends at its first nil.
local function write(tokens, value)
  if type(value) ~= 'table' then
    if value == true then value = 1 end
    tokens[#tokens + 1] = value or false
    return
  end
  tokens[#tokens + 1] = true
  local kind = value.err and 'err' or value.ok and 'ok'
  if kind then
    tokens[#tokens + 1], tokens[#tokens + 2] = kind, value[kind]
    return
  end
  local at, length = #tokens + 1, 0
  tokens[at] = length
  while value[length + 1] ~= nil do
    length = length + 1
    write(tokens, value[length])
  end
  tokens[at] = length
end

return function(value)
  if type(value) ~= 'table' then return value end
  local tokens = {}
  write(tokens, value)
  return unpack(tokens)
end
"""


class Lua:
    """A Lua interpreter with only `redis.call`, `redis.pcall` and `cjson`."""

    def __init__(self) -> None:
        self._runtime = lupa.LuaRuntime(
            encoding=None, register_eval=False, unpack_returned_tuples=True
        )
        self._sent = self._runtime.compile(_BORDER)(
            self._call, self._pcall, self._decoded, _encoded
        )
        self._keys: dict[tuple[bytes, ...], Any] = {}
        self._compiled: dict[bytes, Callable[..., Any]] = {}
        self._inside: Inside = _no_server
        self._error: BaseException | None = None

    def run(self, source: bytes, keys: Args, args: Args, inside: Inside) -> Reply:
        """Run a script whose commands `inside` executes; raise `RedisError`."""
        script = self._compiled.get(source)
        if script is None:
            script = self._compiled[source] = self._compile(source)
        named = self._keys.get(tuple(keys))
        if named is None:
            named = self._keys[tuple(keys)] = self._runtime.table_from(keys)
        self._inside, self._error = inside, None
        try:
            answer = script(named, *args)
        except lupa.LuaError as error:
            if self._error is not None:
                raise self._error from error
            raise RedisError(f"ERR Error running script: {error}") from error
        return _read(iter(answer)) if isinstance(answer, tuple) else _plain(answer)

    def _decoded(self, text: bytes) -> Any:
        """Replace `cjson.decode`."""
        return self._in_lua(orjson.loads(text))

    def _in_lua(self, value: Any) -> Any:
        """Return a JSON value as a Lua value."""
        if isinstance(value, str):
            return value.encode()
        if isinstance(value, dict):
            pairs = {name.encode(): self._in_lua(each) for name, each in value.items()}
            return self._runtime.table_from(pairs)
        if isinstance(value, list):
            return self._runtime.table_from([self._in_lua(each) for each in value])
        return value

    def _compile(self, source: bytes) -> Callable[..., Any]:
        """Compile a script to a function: table of keys, arguments -> the answer's tokens."""
        frame = b"""
            local sent, script = ...
            return function(keys, ...) return sent(script(keys, {...})) end"""
        script = self._runtime.compile(b"local KEYS, ARGV = ... " + source)
        framed: Callable[..., Any] = self._runtime.compile(frame)(self._sent, script)
        return framed

    def _call(self, name: bytes, *args: object) -> Any:
        try:
            reply = self._inside(
                name, [arg if type(arg) is bytes else _argument(arg) for arg in args]
            )
            return reply if type(reply) is bytes else _tokens(reply)
        except BaseException as error:
            self._error = error
            raise

    def _pcall(self, name: bytes, *args: object) -> Any:
        try:
            return _tokens(self._inside(name, [_argument(arg) for arg in args]))
        except RedisError as error:
            return True, b"err", str(error).encode()


def _encoded(value: Any) -> bytes:
    """Replace `cjson.encode`: a table with a first element is a list."""
    return orjson.dumps(_in_python(value))


def _in_python(value: Any) -> Any:
    """Return a Lua value as a JSON value."""
    if isinstance(value, bytes):
        return value.decode()
    if lupa.lua_type(value) != "table":
        return value
    if value[1] is not None:
        return [_in_python(each) for each in value.values()]
    return {name.decode(): _in_python(each) for name, each in value.items()}


def _tokens(reply: Reply) -> Any:
    """Turn a reply into a Lua value: nil becomes false, a status a table."""
    if isinstance(reply, list):
        tokens: list[Any] = []
        _write(reply, tokens)
        return tuple(tokens)
    if isinstance(reply, Status):
        return True, b"ok", bytes(reply)
    return False if reply is None else reply


def _write(reply: list[Reply], tokens: list[Any]) -> None:
    tokens += (True, len(reply))
    for part in reply:
        if isinstance(part, list):
            _write(part, tokens)
        else:
            tokens.append(False if part is None else part)


def _read(tokens: Iterator[Any]) -> Reply:
    token = next(tokens)
    if token is not True:
        return _plain(token)
    match next(tokens):
        case b"err":
            raise RedisError(next(tokens).decode())
        case b"ok":
            return Status(next(tokens))
        case length:
            return [_read(tokens) for _ in range(length)]


def _plain(value: Any) -> Reply:
    """Turn a plain Lua value into a reply: numbers lose their fraction."""
    if isinstance(value, bytes):
        return value
    return None if value is None or value is False else int(value)


def _argument(value: object) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return b"%.17g" % value if isinstance(value, float) else written(value)
    raise RedisError("ERR Lua redis lib command arguments must be strings or integers")


def _no_server(name: bytes, _: Args) -> Reply:
    raise RedisError(f"ERR no server runs {name.decode()}")
