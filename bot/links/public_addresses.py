"""Which addresses of the internet the bot may connect to: public ones, and no others.

An address inside the operator's network would open what is closed to everybody else: other
services, routers, or the metadata of a cloud machine, which holds its credentials.
"""

import asyncio
import socket
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

_GLOBAL_IPV6 = ip_network("2000::/3")
"""All that is assigned; so neither IPv4-mapped, NAT64, local nor multicast addresses."""
_NOT_PUBLIC = tuple(
    ip_network(text)
    for text in (
        "192.0.0.0/24",  # protocols; older Pythons know only parts of it
        "192.88.99.0/24",  # relays of 6to4
        "2001::/23",  # Teredo, which carries an IPv4 address, and other protocols
        "2002::/16",  # 6to4, which carries an IPv4 address
        "3fff::/20",  # documentation
    )
)

Address = IPv4Address | IPv6Address


def is_public(address: Address) -> bool:
    """Return whether an address is reachable for everybody on the internet."""
    if address.version == 6 and address not in _GLOBAL_IPV6:
        return False
    if address.is_multicast or any(address in network for network in _NOT_PUBLIC):
        return False
    return address.is_global


async def resolved(host: str, port: int) -> list[Address]:
    """Return the addresses of a host, IPv4 first; raise `OSError` for an unknown one."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = {ip_address(str(where[0]).partition("%")[0]) for *_, where in found}
    return sorted(addresses, key=lambda address: (address.version, int(address)))
