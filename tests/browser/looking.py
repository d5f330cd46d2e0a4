"""What is looked at on a page: what axe finds, its width, what the keyboard reaches, what moves while it loads."""

from __future__ import annotations

import gzip
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Page, Response

from webapp.paths import ROOT

AXE: Final = ROOT / "tests" / "browser" / "node_modules" / "axe-core" / "axe.min.js"
TAGS: Final = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
# Colours fade from one to the other.
_STILL: Final = """
() => Promise.all(document.getAnimations().filter((one) => one.effect.getComputedTiming().iterations !== Infinity)
  .map((one) => one.finished.catch(() => null)))
"""
COLOURS: Final = ["color-contrast", "link-in-text-block"]
WIDTHS: Final = (320, 390, 768, 1280, 2560)
HEIGHT: Final = 800
HTML_BYTES: Final = 60_000
"""Of a page's HTML, compressed as it is sent."""
SHIFT: Final = 0.01
"""Of the Layout Instability score: a tenth of what is still called good."""

# Installed before a page's own scripts; shifts after user input do not count.
COUNTS_SHIFTS: Final = """
window.shifts = [];
new PerformanceObserver((list) => {
  for (const one of list.getEntries()) if (!one.hadRecentInput) window.shifts.push([one.value,
    one.sources.map((s) => s.node && (s.node.id || s.node.className || s.node.nodeName)).join(", ")]);
}).observe({ type: "layout-shift", buffered: true });
"""
_CONTROLS: Final = """
window.wanted = () => {
  const asks = document.querySelector('dialog:modal') || document;
  const all = 'a[href], button, input, select, textarea, summary, [tabindex], [contenteditable=true]';
  return [...asks.querySelectorAll(all)].filter((e) => e.tabIndex >= 0 && !e.disabled && e.type !== 'hidden'
    && !e.closest('[inert], dialog:not([open])')
    && e.checkVisibility({visibilityProperty: true, contentVisibilityAuto: true})
    && !(e.nodeName === 'SUMMARY' && e !== e.parentNode.querySelector(':scope > summary'))
    && !(e.type === 'radio' && !e.checked && [...document.getElementsByName(e.name)].some((o) => o.checked
      && o.form === e.form))
    && !(e.type === 'radio' && !e.checked && [...document.getElementsByName(e.name)].find((o) =>
      o.form === e.form) !== e));
};
window.seen = new Set();
window.unmarked = [];
window.told = (e) => e.outerHTML.slice(0, 160);
// The element, and its index among elements of the same kind: a list that refreshes itself replaces its links.
window.key = (e) => window.told(e) + [...document.getElementsByTagName(e.nodeName)]
  .filter((o) => window.told(o) === window.told(e)).indexOf(e);
document.addEventListener('focusin', ({target: e}) => {
  window.seen.add(window.key(e));
  const marks = (at) => { const s = getComputedStyle(at);
    return (s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) > 0) || s.boxShadow !== 'none'; };
  if (marks(e) || (e.parentElement && marks(e.parentElement)) || e.closest('.CodeMirror, .diagram')) return;
  window.unmarked.push(window.told(e));
});
"""
# What looks as though it could be pressed and is nothing that a keyboard gets to.
_POINTED: Final = """
() => [...document.body.querySelectorAll('*')].filter((e) => e.checkVisibility({visibilityProperty: true})
  && getComputedStyle(e).cursor === 'pointer' && e.matches(':not(svg *)')
  && !e.closest('a[href], button, summary, label, select, input, [tabindex], option, [inert]'))
  .map((e) => e.outerHTML.slice(0, 160))
"""


@pytest.fixture(scope="session")
def axe() -> Path:
    """axe-core, by its own lock file; fetched once, like the browser code."""
    if not AXE.is_file():
        npm = shutil.which("npm")
        command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"] if npm else None
        if (
            command is None
            or subprocess.run(command, cwd=AXE.parents[2], capture_output=True, check=False).returncode
        ):
            pytest.skip("axe-core is not there and cannot be fetched: npm ci in tests/browser")
    return AXE


def faults_found_by_axe(page: Page, axe: Path, rules: list[str] | None = None) -> list[str]:
    """Every rule that the page breaks, or every one of `rules`."""
    if not page.evaluate("typeof axe === 'object'"):
        page.evaluate(axe.read_text())
    page.evaluate("window.scrollTo(0, 0)")  # content that is currently covered by the header is not an error
    only = {"type": "rule", "values": rules} if rules else {"type": "tag", "values": TAGS}
    found = page.evaluate("only => axe.run(document, {runOnly: only})", only)
    first = [(fault["id"], fault["impact"], fault["nodes"][0]) for fault in found["violations"]]
    return [
        f"{page.url}: {rule} ({impact}): {node['html']} {node['failureSummary']}"
        for rule, impact, node in first
    ]


def settled(page: Page) -> None:
    """Wait until the page has asked for all that it asks for by itself, and has drawn it."""
    page.wait_for_load_state("load")
    page.wait_for_function(
        "!document.querySelector('.htmx-request, [hx-trigger~=load]:not([data-done]) > .waiting')"
    )
    page.evaluate("() => new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)))")


def colours(page: Page, axe: Path) -> list[str]:
    """Return all violations found by axe in the light theme, and colour contrast violations in the dark theme."""
    found = faults_found_by_axe(page, axe)
    page.emulate_media(color_scheme="dark")
    page.evaluate(_STILL)
    found += [f"dark: {item}" for item in faults_found_by_axe(page, axe, COLOURS)]
    page.emulate_media(color_scheme="light")
    page.evaluate(_STILL)
    return found


def widths(page: Page) -> list[str]:
    """Widths at which it has to be pushed sideways to be read; it is left at 1280."""
    found = []
    for width in (*WIDTHS, 1280):
        page.set_viewport_size({"width": width, "height": HEIGHT})
        wide = page.evaluate("document.documentElement.scrollWidth")
        if wide > width:
            widest = page.evaluate(
                "w => [...document.body.querySelectorAll('*')].filter(e => e.getBoundingClientRect().right > w + 1)"
                ".map(e => e.outerHTML.slice(0, 120)).slice(0, 3)",
                width,
            )
            found.append(f"{page.url} is {wide} wide on {width}: {widest}")
    return found


def heavy(response: Response | None) -> list[str]:
    """Whether the HTML of a page is larger than a page may be."""
    if response is None:
        return []
    size = len(gzip.compress(response.body()))
    return [f"{response.url} has {size:,} bytes"] if size > HTML_BYTES else []


def shifts(page: Page) -> list[str]:
    """What moved by itself since the page was opened."""
    seen = page.evaluate("window.shifts")
    total = sum(value for value, _ in seen)
    return [f"{page.url} moves by {total:.3f}: {seen}"] if total > SHIFT else []


def keyboard(page: Page) -> list[str]:
    """Controls that Tab does not reach from the page's beginning, or that do not show that they have the focus."""
    page.evaluate(_CONTROLS)
    found = [f"{page.url}: only a mouse presses {item}" for item in page.evaluate(_POINTED)]
    page.evaluate("document.activeElement.blur(); window.scrollTo(0, 0); window.seen.clear()")
    missed: list[str] = ["everything"]
    for _ in range(4):  # browsers stop at boxes that scroll too, so there may be more stops than controls
        for _ in range(len(missed) if len(missed) > 1 else page.evaluate("window.wanted().length")):
            if page.evaluate("document.activeElement.closest('.CodeMirror') !== null"):
                page.keyboard.press("Escape")  # Tab indents there, until then
            page.keyboard.press("Tab")
        missed = page.evaluate(
            "window.wanted().filter((e) => !window.seen.has(window.key(e))).map(window.told)"
        )
        if not missed:
            break
    found += [f"{page.url}: Tab does not get to {item}" for item in missed]
    return found + [
        f"{page.url}: no mark of the focus on {item}" for item in page.evaluate("[...window.unmarked]")
    ]
