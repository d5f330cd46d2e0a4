/* The documentation: scroll the list of pages to the current page, and select search results with arrow keys. */
"use strict";
(() => {
  const box = () => document.querySelector("[data-docs-search] input");
  const found = () => document.getElementById("docs-found");
  const close = () => found().replaceChildren();
  const side = document.querySelector(".docs-side"), here = side?.querySelector("[aria-current]");
  if (here && side.scrollHeight > side.clientHeight) side.scrollTop = here.offsetTop - side.clientHeight / 2;
  document.addEventListener("keydown", (event) => {
    const inside = event.target === box() || found()?.contains(event.target);
    if (!inside || event.altKey || event.ctrlKey || event.metaKey) return;
    const links = [...found().querySelectorAll("a")], now = links.indexOf(document.activeElement);
    if (event.key === "Escape") {
      close();
      box().focus();
      return;
    }
    const next = { ArrowDown: now + 1, ArrowUp: now - 1 }[event.key];
    if (next === undefined || !links.length) return;
    event.preventDefault();
    (links[Math.min(next, links.length - 1)] || box()).focus();
  });
  document.addEventListener("pointerdown", (event) => {
    if (found()?.firstChild && !found().contains(event.target) && event.target !== box()) close();
  });
})();
