"""Take screenshots of every page for docs/img, light and dark, wide and narrow: `.venv/bin/python docs/screenshots.py`.

Starts the product like a user (`./rowsmith up`) with a new data folder, signs in with the printed link, uses the demo's
templates, takes the screenshots and stops it. TEST_CHROMIUM selects another browser than the one on the PATH; arguments
on the command line select pages by name. The preparation of each page is in pictures/. The pages of a fill use the
PostgreSQL database of the connection string in PICTURES_DATABASE, and are left out without it.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright
from playwright.sync_api import Error as PlaywrightError

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(1, str(ROOT))  # fake targets of the tests are used as the user's targets
IMAGES = ROOT / "docs" / "img"
SIZES = {"wide": (1280, 800), "narrow": (390, 844)}
SCHEMES = ("light", "dark")
MOST_BYTES = 130_000
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--headless", "--disable-background-networking"]


@contextmanager
def running() -> Iterator[str]:
    """The product on a fresh data folder; gives the one-time sign-in link."""
    with tempfile.TemporaryDirectory(prefix="rowsmith-pictures-") as folder:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        command = [str(ROOT / "rowsmith"), "up", "--data-dir", folder, "--port", str(port)]
        around = {**os.environ, "TARGET_NETWORKS": "127.0.0.0/8"}
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=around)
        try:
            link = next(m[1] for line in process.stdout if (m := re.search(r"sign in\s+(http\S+)", line)))
            told = threading.Thread(target=lambda: sys.stderr.writelines(process.stdout), daemon=True)
            told.start()  # whatever else it says, a part that dies above all
            yield link
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(timeout=60)


def take(
    browser: Browser, link: str, pages: Mapping[str, Callable[[Page], None]], wanted: list[str]
) -> list[str]:
    """Take every picture, and return those that failed. A picture larger than it should be is an error."""
    from pictures.smaller import smaller

    origin = link.split("/sign-in")[0]
    context = browser.new_context(base_url=origin)
    page = context.new_page()
    page.goto(link)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(lambda url: "/sign-in" not in url)
    state = context.storage_state()
    desk = browser.new_context().new_page()
    failed: list[str] = []
    filled = "PICTURES_DATABASE" in os.environ

    def shoot(page: Page, name: str) -> None:
        """One picture of what is in view."""
        page.wait_for_load_state("networkidle")
        path = IMAGES / f"{name}.png"
        path.write_bytes(smaller(desk, page.screenshot(caret="initial")))
        length = path.stat().st_size
        print(f"{path.relative_to(ROOT)}  {length / 1000:.0f} kB", flush=True)
        if length > MOST_BYTES:
            raise SystemExit(f"{path.name} has {length:,} bytes; {MOST_BYTES:,} are allowed.")

    for size, (width, height) in SIZES.items():
        for scheme in SCHEMES:
            look = {
                "viewport": {"width": width, "height": height},
                "color_scheme": scheme,
                "base_url": origin,
            }
            context = browser.new_context(storage_state=state, **look)
            stranger = browser.new_context(**look)
            if not wanted or "sign-in" in wanted:
                page = stranger.new_page()
                page.goto("/sign-in")
                shoot(page, f"sign-in-{size}-{scheme}")
            for name, show in pages.items():
                if (wanted and name not in wanted) or (name.startswith("fill") and not filled):
                    continue
                page = context.new_page()
                page.on("dialog", lambda dialog: dialog.accept())
                page.goto("/templates")
                try:
                    show(page)
                    shoot(page, f"{name}-{size}-{scheme}")
                except (PlaywrightError, AssertionError) as error:
                    failed.append(f"{name}-{size}-{scheme}: {str(error).splitlines()[0]}")
                    print(f"failed: {failed[-1]}", flush=True)
                page.close()
            context.close()
            stranger.close()
    return failed


def main() -> None:
    """Start, take, stop."""
    from pictures.pages import PAGES  # its targets are found by the path that was added above

    IMAGES.mkdir(parents=True, exist_ok=True)
    path = os.environ.get("TEST_CHROMIUM") or shutil.which("chromium")
    with running() as link, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        failed = take(browser, link, PAGES, sys.argv[1:])
        browser.close()
    if failed:
        sys.exit("\n".join(failed))


if __name__ == "__main__":
    main()
