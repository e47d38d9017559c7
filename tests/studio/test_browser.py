"""Every view's main path in Chromium, with pictures kept in out/studio; skipped where there is no browser."""

import os
import shutil
import threading
import time
from pathlib import Path
from queue import Queue

import pytest

playwright = pytest.importorskip("playwright.sync_api", reason="no playwright: pip install playwright")
BROWSER = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not BROWSER, reason="no chromium: apt-get install chromium")]
OUT = Path(__file__).parents[2] / "out" / "studio"
SIZES = {"wide": (1280, 860), "narrow": (390, 844)}


@pytest.fixture(scope="module")
def link(tmp_path_factory, people, people_model, tiny_images, image_model):
    """A server with what the tests of the server have, too."""
    import uvicorn

    from anyorder.modalities.registry import modality_of
    from anyorder.studio.server import build_app
    from anyorder.studio.workspace import Workspace

    space = Workspace(tmp_path_factory.mktemp("models"))
    space.add_data("people.csv", modality_of(people), people)
    space.add_data("bars", modality_of(tiny_images[0]), *tiny_images)
    space.add_model("people.ao", people_model, "d1")
    space.add_model("bars.ao", image_model, "d2")
    config = uvicorn.Config(build_app(space, "browser"), host="127.0.0.1", port=0, log_level="critical", lifespan="off")
    server, told = uvicorn.Server(config), Queue()
    server.install_signal_handlers = lambda: None
    threading.Thread(target=lambda: told.put(server.run()), daemon=True).start()
    while not server.started:
        time.sleep(0.02)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    told.get(timeout=10)
    space.close()


@pytest.fixture(scope="module")
def chromium():
    with playwright.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(params=["light", "dark"])
def theme(request):
    return request.param


@pytest.fixture
def page(chromium, link, theme):
    """A page with the token, in one theme; nothing may be said on its console."""
    context = chromium.new_context(viewport=dict(zip(("width", "height"), SIZES["wide"], strict=True)), color_scheme=theme)
    page = context.new_page()
    said = []
    page.on("console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(f"{link}/?token=browser")
    page.wait_for_selector("h1")
    yield page
    context.close()
    assert said == []


def go(page, path):
    page.goto("/".join(page.url.split("/")[:3]) + path)
    page.wait_for_selector("h1")


def keep(page, theme, name):
    """Pictures of a view, wide and narrow."""
    OUT.mkdir(parents=True, exist_ok=True)
    for size, (width, height) in SIZES.items():
        page.set_viewport_size({"width": width, "height": height})
        page.wait_for_timeout(250)
        page.screenshot(path=OUT / f"{name}-{theme}-{size}.png", full_page=True)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{name} is wider than a page of {width}"
    page.set_viewport_size(dict(zip(("width", "height"), SIZES["wide"], strict=True)))


def test_open_shows_columns_and_learns(page, theme):
    keep(page, theme, "open")
    go(page, "/open?data=d1")
    assert page.locator("tbody tr").count() == 5
    keep(page, theme, "data")
    page.select_option("select[aria-label='Kind of age']", "category")
    page.wait_for_selector("text=as found")
    page.select_option("select[aria-label='How long to learn']", "0.1")
    page.click("text=Learn it")
    page.wait_for_selector(".sentence", timeout=120_000)


def test_ask_redraws_as_the_slider_moves(page, theme):
    go(page, "/ask?model=m3&target=income")
    page.select_option("select[aria-label='a condition']", "age")
    page.wait_for_selector(".editor input[type=range]")
    page.wait_for_selector("text=/training rows match/")
    before = page.locator("dd").first.text_content()
    slider = page.locator("input[aria-label='low end of age, slider']")
    slider.focus()
    for _ in range(6):
        page.keyboard.press("ArrowRight")
    page.wait_for_function(
        "old => document.querySelector('dd')?.textContent !== old || location.search.includes('low')", arg=before
    )
    page.select_option("select[aria-label='an event']", "income")
    page.wait_for_selector("#chance")
    assert page.locator("#chance").text_content().endswith("%")
    page.wait_for_selector("text=What moved the answer")
    keep(page, theme, "ask")


def test_ask_by_keyboard_alone(page, theme):
    go(page, "/ask?model=m3&target=city")
    page.wait_for_selector("svg.plot")
    page.locator("#theme").focus()
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.getAttribute('aria-label')") == "a condition":
            break
    page.keyboard.type("income")
    page.keyboard.press("Enter")
    page.wait_for_function("location.search.includes('given')")


def test_the_table_is_filled_and_walked_by_keyboard(page, theme):
    go(page, "/table?model=m3&data=d1")
    page.wait_for_selector(".grid .line")
    page.locator(".grid").focus()
    page.keyboard.press("n")
    page.wait_for_selector("aside svg.plot")
    assert "A gap" in page.locator("aside").text_content()
    page.click("text=Fill all gaps")
    page.wait_for_selector(".grid .filled", timeout=60_000)
    keep(page, theme, "table")
    page.click("text=Undo all")
    page.wait_for_selector(".grid .filled", state="detached")
    page.wait_for_selector(".grid .gap")


def test_the_next_question_narrows_the_target(page, theme):
    go(page, "/next?model=m3&target=income")
    page.wait_for_selector("text=/^Ask for/")
    page.select_option("select[aria-label='What was measured']", "city")
    page.select_option("select[aria-label='Value of city']", "Rome")
    page.click("text=That is so")
    page.wait_for_function("location.search.includes('Rome')")
    page.wait_for_selector(".chip b")
    keep(page, theme, "next")


def test_paint_completes_a_picture(page, theme):
    go(page, "/paint?model=m4&data=d2")
    page.wait_for_selector("canvas.paint")
    page.click("text=left >> nth=0")
    page.click("text=Complete it")
    page.wait_for_selector("text=Use it", timeout=60_000)
    keep(page, theme, "paint")
    page.click("text=Likelihood map")
    page.wait_for_selector("text=bright: surprising", timeout=60_000)


def test_compress_shows_sizes(page, theme, people, tmp_path):
    go(page, "/compress")
    people.to_csv(tmp_path / "people.csv", index=False)
    page.set_input_files("input[type=file] >> nth=0", tmp_path / "people.csv")
    page.wait_for_selector("text=every byte came back", timeout=120_000)
    keep(page, theme, "compress")


def test_nothing_of_a_table_becomes_markup(page, theme, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("<img src=x onerror=alert(1)>,b\n" + "".join(f"<b>{k % 3}</b>,{k}\n" for k in range(30)))
    go(page, "/open")
    page.set_input_files("#file", path)
    page.wait_for_selector("tbody tr")
    assert page.locator("main img").count() == 0
    assert "<img" in page.locator("tbody").text_content()
