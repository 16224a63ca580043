"""The translation page in a real browser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.serve import browser, stand_in
from tests.serve.browser import CHROMIUM, Page
from tests.serve.conftest import TOKEN
from tests.serve.stand_in import Server

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium (Debian: apt-get install chromium)")

TARGET = "document.getElementById('target').textContent"


@pytest.fixture(scope="module")
def one_browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with browser.opened(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


@pytest.fixture
def page(one_browser: Page) -> Page:
    """With no memory of the tests before."""
    one_browser.forget()
    return one_browser


def typed(page: Page, text: str) -> None:
    page.type(text)
    page.wait(f"{TARGET} === {json.dumps(text.upper())}")


def test_it_translates_as_one_types_without_a_click_and_loads_nothing_from_elsewhere(
    page: Page, server: Server
) -> None:
    page.open(server.url)
    typed(page, "hello world")  # the text has the focus from the start
    typed_more = "hello world, again"
    page.type(", again")
    page.wait(f"{TARGET} === {json.dumps(typed_more.upper())}")
    assert page.text("#source-label") == "English"
    assert page.text("#target-label") == "German"
    assert page.text("#count") == str(len(typed_more))
    assert all(url.startswith(server.url) for url in page.requested)
    assert page.complaints == []


def test_what_users_and_models_write_is_never_markup(page: Page, server: Server) -> None:
    hostile = "<IMG SRC=X ONERROR=DOCUMENT.TITLE='OWNED'><SCRIPT>DOCUMENT.TITLE='OWNED'</SCRIPT>"
    page.open(server.url)
    typed(page, hostile)
    assert (
        page.run("document.querySelectorAll('main img, main script, #others img, #others script').length")
        == 0
    )
    assert page.text("#alternatives li:first-child button") == hostile + "'"
    assert page.run("document.title") == "Dragoman"
    assert page.complaints == []


def test_even_a_script_that_got_in_would_not_run(page: Page, server: Server) -> None:
    page.open(server.url)
    page.run(
        "const s = document.createElement('script'); s.textContent = 'owned = 1'; document.body.append(s)"
    )
    page.run("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"owned = 1\">')")
    page.wait("document.querySelector('body > img').complete")
    assert page.run("window.owned") is None
    assert any("Content Security Policy" in complaint for complaint in page.complaints)


def test_alternatives_are_exchanged_with_the_translation_by_keyboard(page: Page, server: Server) -> None:
    page.open(server.url)
    typed(page, "hello")
    assert page.run("document.querySelectorAll('#alternatives button').length") == 3
    page.run("document.querySelector('#alternatives button').focus()")
    page.press("Enter")
    page.wait(f'{TARGET} === "HELLO\'"')
    assert page.text("#alternatives li:first-child button") == "HELLO"


def test_escape_clears_and_ctrl_enter_copies(page: Page, server: Server) -> None:
    page.open(server.url)
    typed(page, "hello")
    page.press("Enter", ctrl=True)
    page.wait("/Copied|Selected/.test(document.getElementById('state').textContent)")
    page.press("Escape")
    page.wait(f"{TARGET} === ''")
    assert page.run("document.activeElement.id") == "source"
    assert page.run("document.getElementById('others').hidden")


def test_everything_is_reached_with_the_tab_key(page: Page, server: Server) -> None:
    page.open(server.url)
    typed(page, "hello")
    reached = set()
    for _ in range(14):
        page.press("Tab")
        reached.add(page.run("document.activeElement.id || document.activeElement.tagName"))
    assert {"model", "theme", "source", "clear", "copy", "BUTTON", "A"} <= reached


@pytest.mark.parametrize("width", [1300, 400, 320])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_the_screen_in_the_colours_of_the_system(
    page: Page, server: Server, width: int, scheme: str
) -> None:
    page.open(server.url, width=width, scheme=scheme)
    typed(page, "Donaudampfschifffahrtsgesellschaft " * 5)
    assert page.run("document.documentElement.scrollWidth") <= width
    red, *_ = page.run("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
    assert (red < 80) == (scheme == "dark")
    sides = page.run(
        "['source', 'target'].map((id) => document.getElementById(id).getBoundingClientRect().left)"
    )
    assert (sides[0] < sides[1]) == (width > 700)


def test_the_theme_can_be_chosen_and_is_kept(page: Page, server: Server) -> None:
    page.open(server.url, scheme="light")
    page.run("document.getElementById('theme').click()")
    page.open(server.url + "?again", scheme="light")
    assert page.run("document.documentElement.dataset.theme") == "dark"
    assert page.text("#theme") == "Light"


def test_another_model_can_be_chosen(page: Page, server: Server) -> None:
    page.open(server.url)
    page.run(
        "const m = document.getElementById('model'); m.value = 'back'; m.dispatchEvent(new Event('change'))"
    )
    assert (page.text("#source-label"), page.text("#target-label")) == ("German", "English")
    page.run("document.getElementById('source').focus()")
    typed(page, "hallo")


def test_a_token_is_asked_for_and_used(page: Page, guarded: Server) -> None:
    page.open(guarded.url)
    page.type("hello")
    page.wait("!document.getElementById('access').hidden")
    page.run("document.getElementById('token').focus()")
    page.type(TOKEN)
    page.press("Tab")
    page.run("document.querySelector('#access button').click()")
    page.wait(f"{TARGET} === 'HELLO'")
    assert page.run("document.getElementById('access').hidden")


def test_a_server_that_has_gone_is_reported(page: Page, tmp_path: Path) -> None:
    with stand_in.started(tmp_path) as server:
        page.open(server.url)
        typed(page, "hello")
    page.type(" again")
    page.wait("document.getElementById('state').textContent === 'The server cannot be reached.'")
