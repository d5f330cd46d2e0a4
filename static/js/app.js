/* The main script. All events are delegated from the document, so swapped-in content needs no event listeners. Except
   for keyboard shortcuts and dialogs, everything also works without JavaScript. */
(() => {
  "use strict";
  const $ = (query, root = document) => root.querySelector(query);
  const $$ = (query, root = document) => [...root.querySelectorAll(query)];

  const time = (toast) => { // ten seconds; paused while the pointer or the focus is in the toast
    let left = toast.dataset.timed = 10;
    const tick = setInterval(() => {
      if (!toast.matches(":hover, :focus-within") && --left <= 0) {
        clearInterval(tick);
        toast.remove();
      }
    }, 1000);
  };
  const timeAll = () => $$("[data-toast]:not([data-timed])").forEach(time);
  const make = (tag, more) => Object.assign(document.createElement(tag), more);
  const toast = (text, undo) => {
    if (!undo && $$("#toasts span").some((one) => one.textContent === text)) return;
    const box = make("div", { className: "toast" });
    box.dataset.toast = "";
    box.append(make("span", { textContent: text }));
    if (undo) {
      box.append(make("button", {
        type: "button",
        textContent: "Undo",
        onclick: () => {
          undo();
          box.remove();
        },
      }));
    }
    $("#toasts").append(box);
    time(box);
  };

  const open = (id) => {
    const dialog = $(`dialog[id="${id}"]:not([open])`);
    if (!dialog) return;
    if (id === "asked") dialog.replaceChildren(); // remove the content for another object
    dialog.showModal();
    [dialog, ...$$("[hx-trigger^=show]", dialog)].forEach((part) => htmx.trigger(part, "show"));
  };

  // Tabs
  const show = (tab) => {
    $$("[role=tab]", tab.parentElement).forEach((one) => {
      const on = one === tab;
      one.setAttribute("aria-selected", String(on));
      one.tabIndex = on ? 0 : -1;
      const panel = document.getElementById(one.getAttribute("aria-controls"));
      panel.hidden = !on;
      if (on) {
        $$("[hx-trigger^=show]", panel).forEach((part) => {
          part.replaceChildren();
          htmx.trigger(part, "show");
        });
      }
    });
  };

  // Show errors next to their inputs without rendering the form again: a list on the page contains the errors, the ids
  // of their inputs and a selector of the form.
  const mark = (part) => {
    const target = $(part.dataset.marks);
    if (!target) return; // the result has replaced the form
    const described = (input) =>
      (input.getAttribute("aria-describedby") || "").split(" ").filter((id) => id && !id.endsWith("-err"));
    const describe = (input, ids) =>
      ids.length ? input.setAttribute("aria-describedby", ids.join(" ")) : input.removeAttribute("aria-describedby");
    const outside = (one) => !part.contains(one);
    $$("[aria-invalid]", target).filter(outside).forEach((one) => {
      one.removeAttribute("aria-invalid");
      describe(one, described(one));
    });
    $$(".field .err, .problems", target).filter(outside).forEach((one) => one.remove());
    $$("[data-for]", part).forEach((item) => {
      const input = document.getElementById(item.dataset.for), id = `${item.dataset.for}-err`;
      if (!input) return;
      input.setAttribute("aria-invalid", "true");
      describe(input, [...described(input), id]);
      input.closest(".field").append(make("span", { className: "err", id, textContent: item.textContent }));
    });
  };

  document.addEventListener("click", async (event) => {
    const at = (query) => event.target.closest(query);
    if (at("[data-open]")) {
      at("[popover]")?.hidePopover();
      return open(at("[data-open]").dataset.open);
    }
    if (at("[data-close]")) return (at(".toast") ? at(".toast").remove() : at("dialog")?.close());
    if (event.target.matches("dialog")) return event.target.close(); // the backdrop
    if (at("[data-copy]")) {
      const button = at("[data-copy]"),
        from = button.dataset.copy ? $(button.dataset.copy) : $("pre", button.parentElement);
      await navigator.clipboard.writeText(from.value ?? from.textContent);
      return toast("Copied");
    }
    if (at("[data-clear]")) return $(at("[data-clear]").dataset.clear).replaceChildren();
    if (at("[role=tab]")) return show(at("[role=tab]"));
  });

  document.addEventListener("pointerover", ({ target }) => {
    if (target.matches?.(".side-on :is(td, th)")) target.title ||= target.textContent;
  });
  document.addEventListener("submit", (event) => {
    const sent = event.target;
    if (sent.matches("[data-theme-form]")) {
      event.preventDefault();
      const root = document.documentElement, scheme = getComputedStyle(root).colorScheme;
      const dark = scheme === "dark" || (!root.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
      const theme = root.dataset.theme = dark ? "light" : "dark";
      document.cookie = `theme=${theme};path=/;max-age=31536000;samesite=lax`;
    } else if (sent.matches("[data-rail]")) {
      event.preventDefault();
      const rail = document.body.classList.toggle("rail") ? "on" : "off";
      event.submitter.value = rail === "on" ? "off" : "on";
      event.submitter.title = rail === "on" ? "Expand the sidebar" : "Collapse the sidebar";
      document.cookie = `rail=${rail};path=/;max-age=31536000;samesite=lax`;
    } else if (sent.matches("#export-form")) { // a download does not leave the page, but an error response would
      if ($("#estimate .err")) { // check again, because a quota may be available by now
        event.preventDefault();
        $("[aria-invalid]", sent)?.focus();
        return sent.dispatchEvent(new Event("input"));
      }
      if (event.submitter?.matches("[data-download]")) {
        sent.closest("dialog")?.close();
        toast("Download started");
      }
    }
  });

  // Keyboard shortcuts
  let went = 0;
  const places = {
    h: "/",
    t: "/templates",
    d: "/datasets",
    s: "/scenarios",
    c: "/connections",
    e: "/endpoints",
    f: "/workspace/files",
    a: "/activity",
    k: "/api-keys",
  };
  document.addEventListener("keydown", (event) => {
    const key = event.key,
      at = event.target,
      ctrl = event.ctrlKey || event.metaKey,
      stop = (act_) => {
        event.preventDefault();
        act_();
      };
    const next = at.matches("[role=tab]")
      && { ArrowRight: at.nextElementSibling, ArrowLeft: at.previousElementSibling }[key];
    if (next) {
      next.focus();
      return show(next);
    }
    if (ctrl && key === "s" && $("#save")) return stop(() => $("#save")?.click());
    if (
      ctrl || event.altKey || at.matches("input, textarea, select, [contenteditable]")
      || "keys" in document.documentElement.dataset || $("dialog[open]")
    ) return;
    if (key === "/") return stop(() => $("input[type=search]:not(dialog *)")?.focus());
    if (key === "?") return stop(() => open("keys-help"));
    if (key === "g") went = Date.now();
    else if (places[key] && Date.now() - went < 1500) location.assign(places[key]);
  });

  // htmx events. htmx restores the focus of elements with an id; this also restores it for links and buttons in lists
  // that refresh themselves.
  let held = "";
  document.addEventListener("htmx:beforeSwap", ({ detail }) => {
    const at = document.activeElement, link = at.getAttribute("href"), action = at.form?.getAttribute("action");
    held = at.id || !detail.target.contains(at)
      ? ""
      : link
      ? `a[href=${CSS.escape(link)}]`
      : action
      ? `form[action=${CSS.escape(action)}] ${at.localName}`
      : "";
  });
  document.addEventListener("htmx:afterSwap", (event) => {
    timeAll();
    if (held && document.activeElement === document.body) $(held)?.focus({ preventScroll: true });
    if (event.target.dataset.marks) mark(event.target);
    if (event.target.id === "clash") event.target.scrollIntoView({ block: "center" });
  });
  window.rowsmith = { $, $$, make, open, toast }; // for the scripts of single pages
  document.addEventListener("htmx:responseError", (event) => {
    const { responseText, status } = event.detail.xhr,
      page = new DOMParser().parseFromString(responseText, "text/html");
    const told = page.body.textContent.trim().replace(/\s+/g, " ").slice(0, 200) || `The server answered ${status}.`;
    const spot = $("dialog[open] .estimate"); // an open dialog would cover a toast
    if (spot) spot.replaceChildren(make("span", { className: "err", textContent: told }));
    else toast(told);
  });
  document.addEventListener("htmx:sendError", () => toast("The server cannot be reached."));
  document.addEventListener("DOMContentLoaded", () => {
    timeAll();
    // The connection whose page was open before in this tab is the first destination that is offered.
    const place = $("[data-destination]")?.dataset.destination;
    if (place) sessionStorage.setItem("destination", place);
    $$("[data-came-from]").forEach((one) => {
      one.value = sessionStorage.getItem("destination") ?? "";
    });
    if (location.hash === "#export") open("export");
    const here = $(".side [aria-current]"), side = here?.parentElement; // on narrow screens the list is horizontal
    if (here) side.scrollLeft = here.offsetLeft - side.offsetLeft - (side.clientWidth - here.offsetWidth) / 2;
  });
})();
