/* The shell: the search box, and the panel of running jobs. It is loaded when it opens and refreshed while it is
   open; while it is closed, the number of running jobs is refreshed in larger intervals. */
(() => {
  "use strict";
  const OPEN_EVERY = 3000, CLOSED_EVERY = 20000;
  const $ = (query, root = document) => root.querySelector(query);
  let later = 0, asking = null;

  const counted = (found) => {
    const running = Number(found.dataset.running), wrong = Number(found.dataset.attention), live = $("[data-live]");
    if (live) {
      live.hidden = !running;
      $("b", live).textContent = running;
    }
    const bell = $("[data-bell]");
    bell.hidden = !running && !wrong;
    bell.classList.toggle("wrong", wrong > 0);
    bell.parentElement.ariaLabel = `Jobs: ${running} running, ${wrong} with failures`;
  };
  const refresh = async () => {
    const box = $("#now"), panel = box?.parentElement;
    clearTimeout(later);
    asking?.abort();
    asking = new AbortController();
    try {
      const answer = await fetch(box.dataset.now, { headers: { "HX-Request": "true" }, signal: asking.signal });
      if (!answer.ok || answer.redirected) return; // signed out, or busy
      const found = new DOMParser().parseFromString(await answer.text(), "text/html").body.firstElementChild;
      counted(found);
      const at = document.activeElement,
        held = box.contains(at) && (at.getAttribute("href") || at.form?.getAttribute("action"));
      if (panel.matches(":popover-open") || !$("[data-running]", box)) box.replaceChildren(found);
      if (held) $(`a[href="${CSS.escape(held)}"], form[action="${CSS.escape(held)}"] button`, box)?.focus();
    } catch { /* offline or cut off: the next request tries again */ }
    later = setTimeout(
      () => (document.hidden ? 0 : refresh()),
      panel.matches(":popover-open") ? OPEN_EVERY : CLOSED_EVERY,
    );
  };
  // Search: a list of links that the arrow keys choose from while the focus stays in the input
  const dialog = () => $("#search"), options = () => [...dialog().querySelectorAll("[role=option]")];
  let typed = 0, wanted = null;
  const choose = (option) => {
    options().forEach((one) => one.setAttribute("aria-selected", String(one === option)));
    $("#search-q").setAttribute("aria-activedescendant", option?.id ?? "");
    option?.scrollIntoView({ block: "nearest" });
  };
  const find = async () => {
    const box = $("#search-found"), q = $("#search-q").value;
    wanted?.abort();
    wanted = new AbortController();
    const load = async (part) => {
      const answer = await fetch(`${box.dataset.from}?part=${part}&q=${encodeURIComponent(q)}`, {
        headers: { "HX-Request": "true" },
        signal: wanted.signal,
      });
      return answer.ok ? [...new DOMParser().parseFromString(await answer.text(), "text/html").body.childNodes] : [];
    };
    try {
      box.replaceChildren(...await load("fast"));
      choose(options()[0]);
      const docs = q.trim() ? await load("docs") : [];
      if (docs.some((node) => node.nodeType === 1)) $("[data-none]", box)?.remove();
      box.append(...docs);
      if (!$("[aria-selected=true]", box)) choose(options()[0]);
      $("#search-count").textContent = options().length ? `${options().length} results` : "No results";
    } catch { /* a newer query cut it off */ }
  };
  const search = () => {
    document.querySelectorAll(":popover-open").forEach((one) => one.hidePopover());
    if (dialog().open) return;
    $("#search-q").value = "";
    dialog().showModal();
    find();
  };
  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-search]") || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    search();
  });
  document.addEventListener("input", (event) => {
    if (event.target.id !== "search-q") return;
    clearTimeout(typed);
    typed = setTimeout(find, 60);
  });
  document.addEventListener("keydown", (event) => {
    if (
      (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey && event.key.toLowerCase() === "k"
      && dialog()
    ) {
      event.preventDefault();
      search();
    } else if (event.target.id === "search-q" && /^(ArrowUp|ArrowDown|Enter)$/.test(event.key)) {
      event.preventDefault();
      const all = options(), now = all.findIndex((one) => one.ariaSelected === "true");
      if (event.key !== "Enter") choose(all[(now + (event.key === "ArrowDown" ? 1 : -1) + all.length) % all.length]);
      else if (all[now] && (event.ctrlKey || event.metaKey)) window.open(all[now].href);
      else if (all[now]) location.assign(all[now].href);
    }
  });

  document.addEventListener("toggle", (event) => {
    if (event.target.id === "m-now" && event.newState === "open") refresh();
  }, true);
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && $("#now")) refresh();
  });
  document.addEventListener("DOMContentLoaded", () => {
    if ($("#now")) later = setTimeout(refresh, CLOSED_EVERY);
  });
})();
