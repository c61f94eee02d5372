"""Only addresses that everybody on the internet reaches are public."""

from ipaddress import ip_address

import pytest

from bot.features.links.page_fetch import is_public, resolved


@pytest.mark.parametrize("address", ["1.1.1.1", "151.101.1.140", "2606:4700:4700::1111"])
def test_addresses_of_the_internet_are_public(address: str) -> None:
    assert is_public(ip_address(address))


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254"),
        *("100.64.0.1", "100.127.255.254", "192.0.0.8", "198.18.0.1", "192.0.2.1", "192.88.99.1"),
        *("224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255"),
        *("::", "::1", "fe80::1", "fc00::1", "fd00:ec2::254", "fec0::1", "ff02::1", "ff0e::1"),
        *("::ffff:1.1.1.1", "::ffff:127.0.0.1", "::127.0.0.1", "64:ff9b::a9fe:a9fe"),
        *("64:ff9b:1::1", "2002:7f00:1::", "2001:0:1::1", "2001:db8::1", "3fff::1", "100::1"),
    ],
)
def test_all_other_addresses_are_refused(address: str) -> None:
    assert not is_public(ip_address(address))


@pytest.mark.parametrize("host", ["127.0.0.1", "2130706433", "0x7f.1", "localhost"])
async def test_every_spelling_of_a_local_host_is_resolved_before_it_is_judged(host: str) -> None:
    assert not any(map(is_public, await resolved(host, 80)))
