"""Fills Redis with data that the bot cannot drop."""

from memory.memory import Memory

_CHUNK = bytes(2**14)
_TOO_MUCH_BYTES = 2**15


async def fill(memory: Memory, share: float) -> None:
    """Fill Redis up to a share of its limit."""
    while (await memory.capacity.fill_level()).share < share:
        await memory.client.call("RPUSH", "ballast", _CHUNK)


async def fill_up(memory: Memory) -> None:
    """Use a little more than the limit, so that nothing can be written."""
    await fill(memory, 0.95)
    used = (await memory.capacity.fill_level()).used
    await memory.client.call("CONFIG SET", "maxmemory", used - _TOO_MUCH_BYTES)


async def empty(memory: Memory) -> None:
    """Remove the data."""
    await memory.client.call("DEL", "ballast")
