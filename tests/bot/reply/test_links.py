"""A link opens the host that its text names, or shows the real host."""

import pytest

from bot.reply.parts import Entity, Part
from bot.reply.render import host_of
from tests.bot.reply.test_render import only


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://a.example/x?y#z", "a.example"),
        ("HTTP://A.example:8080", "a.example"),
        ("mailto:a@b.example", "b.example"),
        ("https://[2001:db8::1]/", "2001:db8::1"),
        ("https://пример.example", "пример.example"),
    ],
)
def test_web_and_mail_addresses_name_their_host(url: str, host: str) -> None:
    assert host_of(url) == host


@pytest.mark.parametrize(
    "url",
    ["", "/path", "#part", "javascript:alert(1)", "data:text/html,x", "ftp://a.example", "http://",
     "https:///x", "http://[bad", "tg:", "mailto:", "a.example", "tg://user?id=1",
     "https://mybank.com@evil.example/", "https://user:pass@evil.example",
     "https://evil.example\\@mybank.com", "https://evil.example\\.mybank.com",
     "https://a.example/" + "x" * 2048],
)  # fmt: skip
def test_an_address_that_opens_nothing_or_deceives_is_not_a_link(url: str) -> None:
    assert host_of(url) == ""


@pytest.mark.parametrize(
    "text",
    ["https://mybank.com/login", "mybank.com", "Log in at www.mybank.com", "MYBANK.COM",
     "mybank\u200b.com", "mybank\uff0ecom", "mybank。com", "me@mybank.com", "10.1.2.30"],
)  # fmt: skip
def test_a_link_whose_text_names_another_host_shows_its_own_host(text: str) -> None:
    part = only(f"So: [{text}](https://evil.example/x) **now**")
    shown = f"{text} (evil.example)"
    assert part.text == f"So: {shown} now"
    assert part.entities == (
        Entity("text_link", 4, len(shown), url="https://evil.example/x"),
        Entity("bold", 5 + len(shown), 3),
    )


@pytest.mark.parametrize(
    "markdown",
    ["[a text](https://good.example/x)", "[good.example](https://www.good.example/x)",
     "[https://good.example/a](https://good.example/b)", "[Version 1.2](https://good.example)",
     "<https://good.example/?to=other.example>", "[mail@good.example](mailto:mail@good.example)",
     "[😀 **good.example**](https://good.example)"],
)  # fmt: skip
def test_an_honest_link_is_not_changed(markdown: str) -> None:
    part = only(markdown)
    assert "(" not in part.text
    assert "text_link" in [one.type for one in part.entities]


def test_a_link_that_would_mention_a_person_is_text() -> None:
    assert only("[Admin](tg://user?id=777)") == Part("Admin")
    assert only("<tg://user?id=777>") == Part("<tg://user?id=777>")


@pytest.mark.parametrize(
    ("url", "types"),
    [
        ("tg://time?unix=1803888000", ["date_time"]),
        ("tg://time?unix=-5", []),
        ("tg://time?unix=123456789012", []),
        ("tg://time?unix=1803888000&format=r", []),
    ],
)
def test_each_client_shows_a_moment_in_its_own_zone(url: str, types: list[str]) -> None:
    part = only(f"On **[1 March, 09:00]({url})**")
    assert part.text == "On 1 March, 09:00"
    assert [each.type for each in part.entities if each.type != "bold"] == types
