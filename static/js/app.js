/* The main script. All events are delegated from the document, so swapped-in content needs no event listeners. Except
   for keyboard shortcuts and dialogs, everything also works without JavaScript. */
(() => {
  "use strict";
  const $ = (query, root = document) => root.querySelector(query);
  const $$ = (query, root = document) => [...root.querySelectorAll(query)];
  const form = () => $("#builder");
  let dirty = false;

  const time = (toast) => { // ten seconds; paused while the pointer or the focus is in the toast
    let left = toast.dataset.timed = 10;
    const tick = setInterval(() => { if (!toast.matches(":hover, :focus-within") && --left <= 0) { clearInterval(tick); toast.remove(); } }, 1000);
  };
  const timeAll = () => $$("[data-toast]:not([data-timed])").forEach(time);
  const make = (tag, more) => Object.assign(document.createElement(tag), more);
  const toast = (text, undo) => {
    if (!undo && $$("#toasts span").some((one) => one.textContent === text)) return;
    const box = make("div", { className: "toast" });
    box.dataset.toast = "";
    box.append(make("span", { textContent: text }));
    if (undo) box.append(make("button", { type: "button", textContent: "Undo", onclick: () => { undo(); box.remove(); } }));
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

  // Rows of the builder: a row moves together with its nested rows.
  const depth = (row) => Number(row.dataset.depth ?? 0), isRow = (node) => node?.matches?.(".row");
  const rowOf = (node) => node.closest?.(".row"), owner = (row) => $("[name=row]", row).value.split(" ")[3];
  const group = (row) => {
    const all = [row];
    for (let n = row.nextElementSibling; isRow(n) && depth(n) > depth(row); n = n.nextElementSibling) all.push(n);
    return all;
  };
  const level = (n, row) => (isRow(n) && depth(n) === depth(row) ? n : null);
  const before = (row) => {
    let n = row.previousElementSibling;
    while (isRow(n) && depth(n) > depth(row)) n = n.previousElementSibling;
    return level(n, row);
  };
  const after = (row) => level(group(row).at(-1).nextElementSibling, row);
  const equip = () => $$("tbody.row:not(:has(.grip))").forEach(({ rows: [{ cells }] }) => { // controls that need JavaScript
    const [moving, more] = $("#tools").content.cloneNode(true).children;
    cells[0].append(...moving.childNodes);
    cells[cells.length - 1].prepend(...more.childNodes);
  });
  const changed = () => {
    dirty = true;
    $("#count").textContent = $$(".row").length;
    htmx.trigger(document.body, "preview");
  };
  const move = (row, by) => {
    const focus = document.activeElement;
    const other = by < 0 ? before(row) : after(row);
    if (!other) return;
    if (by < 0) other.before(...group(row)); else group(other).at(-1).after(...group(row));
    focus?.focus();
    changed();
  };
  window.rowsmith = { rowOf, owner, depth, group, changed }; // for drag.js
  const remove = (row) => {
    const gone = group(row), next = gone.at(-1).nextElementSibling, name = $("[data-name]", row).value || "without a name";
    const neighbour = after(row) || before(row);
    gone.forEach((one) => one.remove());
    ($("[data-name]", neighbour || undefined) || $("[value=add]")).focus();
    changed();
    toast(`Field ${name} deleted`, () => { if (next?.isConnected) next.before(...gone); else $(".rows").append(...gone); changed(); });
  };
  let queue = Promise.resolve(); // requests run one after the other, because each depends on the rows of the previous one
  const ask = (...how) => { queue = queue.then(() => redraw(...how)).catch(() => {}); };
  const redraw = async (row, what, values = {}) => { // the server renders the row again, or new rows after it
    if (row && !row.isConnected) row = document.getElementById(row.id);
    const replaces = /^(open|close|type|guess|again)/.test(what), last = row ? group(row).at(-1) : $$(".row").at(-1);
    const verb = row ? what.replace(/^\w+/, (word) => `${word}:${row.id}`) : what;
    const known = new Set($$(".row").map((one) => one.id)), held = row?.contains(document.activeElement) && document.activeElement;
    const target = replaces ? row : last || $(".rows thead");
    await htmx.ajax("POST", form().dataset.rows, { source: $("#field-table"), target, swap: replaces ? "outerHTML" : "afterend", values: { do: verb, ...values } });
    const now = replaces ? document.getElementById(row.id) : $$(".row").find((one) => !known.has(one.id));
    if (!now) return;
    if (replaces && !$("[value^=inside]", now)) group(now).slice(1).forEach((one) => one.remove());
    if (!replaces) $("[data-name]", now).focus();
    else if (!document.activeElement || document.activeElement === document.body) { // the focused element was replaced
      const same = held?.name && held.name !== "do" ? `[name="${held.name}"]` : held?.ariaExpanded ? "[aria-expanded]" : ".pick";
      ($(same, now) || $(".pick", now)).focus();
    }
    if (!/^open|^close/.test(what)) changed();
  };
  const act = (verb, row) => {
    if (/^(up|down)$/.test(verb)) move(row, verb === "up" ? -1 : 1);
    else if (verb === "remove") remove(row);
    else if (verb === "pick") { if ($("#suggest-for")) [$("#suggest-for").value, $("#suggest-name").textContent, $("#suggested").textContent] = [`suggest:${row.id}`, $("[data-name]", row).value || "this field", ""]; $("#picker").dataset.row = row.id; open("picker"); narrow(); $("#picker-q").select(); }
    else if (verb === "dice") { $("#seed").value = Math.random().toString(36).slice(2, 8); htmx.trigger(document.body, "preview"); }
    else ask(verb === "add" ? null : row, verb);
  };

  // Load the shared choices of a select element; insert functions into formulas; search functions
  const fill = (select) => [...document.getElementById(select.dataset.list)?.options || []].forEach((one) => {
    if (![...select.options].some((own) => own.value === one.value)) select.add(new Option(one.text, one.value));
  });
  const insert = (area, text) => {
    area.setRangeText(text, area.selectionStart, area.selectionEnd, "end");
    area.focus();
    area.dispatchEvent(new Event("input", { bubbles: true }));
  };
  const find = (input) => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    $$("details", input.parentElement).forEach((part, place) => {
      $$("[data-find]", part).forEach((one) => { one.hidden = !words.every((word) => one.dataset.find.includes(word)); });
      part.hidden = !$("[data-find]:not([hidden])", part);
      part.open = words.length ? !part.hidden : !place;
    });
  };

  // Type picker
  const options = () => $$("#picker [role=option]").filter((one) => !one.hidden);
  const typeOf = (option) => option.dataset.type || option.id.slice(2);
  // The ranks are those of `search` in webapp/row_templates/services/catalogue.py.
  const plain = (text) => text.toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");
  const nearly = (typed, word) => {
    if (typed === word) return true;
    if (typed.length < 4 || Math.abs(typed.length - word.length) > 1) return false;
    let at = 0;
    while (typed[at] === word[at]) at += 1;
    const left = typed.slice(at), right = word.slice(at);
    if (left.length === right.length) return left.slice(1) === right.slice(1) || (left[0] === right[1] && left[1] === right[0] && left.slice(2) === right.slice(2));
    return left.length > right.length ? left.slice(1) === right : left === right.slice(1);
  };
  const prepared = (names) => ({ texts: names.map(plain), parts: names.map((name) => name.toLowerCase().split(/[^\p{L}\p{N}]+/u)) });
  const rankBy = ({ texts, parts }, option, wanted, words) => {
    const each = (fits) => parts.some((part) => words.every((word) => part.some((one) => fits(word, one))));
    if (wanted) {
      if (texts.includes(wanted)) return 0;
      if (each((word, one) => one === word)) return 1;
      if (texts.some((text) => text.startsWith(wanted)) || each((word, one) => one.startsWith(word))) return 2;
      if (texts.some((text) => text.includes(wanted))) return 3;
    }
    const text = option.text ||= `${option.textContent} ${option.home.dataset.group}`.toLowerCase();
    if (words.every((word) => text.includes(word))) return 4;
    return each(nearly) ? 5 : 6;
  };
  const rank = (option, wanted, words) => {
    const own = [typeOf(option), $("b", option).textContent], aliases = (option.dataset.find || "").split(",").filter(Boolean);
    option.ranked ||= [prepared([...own, ...aliases]), prepared(own)];
    const [all, named] = option.ranked.map((names) => rankBy(names, option, wanted, words));
    return 2 * all + Number(named !== all);
  };
  const select = (option) => {
    $$("#picker [aria-selected=true]").forEach((one) => one.setAttribute("aria-selected", "false"));
    $("#picker-q").setAttribute("aria-activedescendant", option?.id || "");
    option?.setAttribute("aria-selected", "true");
    option?.scrollIntoView({ block: "nearest" });
  };
  const narrow = () => {
    const list = $("#picker-list"), query = $("#picker-q").value, words = query.toLowerCase().replaceAll("_", " ").split(/\s+/).filter(Boolean);
    if (!list) return;
    const family = $("#picker .chip[aria-pressed=true]")?.dataset.family, results = $("[data-results]", list), wanted = plain(query);
    const all = list.all ||= $$("[role=option]", list).map((one) => Object.assign(one, { home: one.parentElement }));
    all.forEach((one) => one.home.append(one));
    $$("[data-group]", list).forEach((part) => { part.hidden = words.length > 0 || Boolean(family && part.dataset.group !== family); });
    results.hidden = !words.length;
    if (words.length) {
      const found = all.filter((one) => !family || one.home.dataset.group === family).map((one) => [rank(one, wanted, words), one]).filter(([place]) => place < 12);
      results.append(...found.sort(([one], [other]) => one - other).map(([, one]) => one));
    }
    const seen = options().filter((one) => list.contains(one) && !one.closest("[hidden]")), row = document.getElementById($("#picker").dataset.row);
    $("[data-none]").hidden = seen.length > 0;
    select((!words.length && seen.find((one) => row && typeOf(one) === $(`[name="${row.id}.type"]`, row)?.value)) || seen[0]);
  };
  const pick = (option) => {
    const row = document.getElementById($("#picker").dataset.row);
    $("#picker").close();
    if (option && row) ask(row, `type:${typeOf(option)}`);
  };
  // If the user presses Enter before the list of types has loaded, the match is selected after loading.
  const choose = (option) => { if ($("#picker-list")) pick(option); else $("#picker").dataset.eager = ""; };

  // Tabs
  const show = (tab) => {
    $$("[role=tab]", tab.parentElement).forEach((one) => {
      const on = one === tab;
      one.setAttribute("aria-selected", String(on));
      one.tabIndex = on ? 0 : -1;
      const panel = document.getElementById(one.getAttribute("aria-controls"));
      panel.hidden = !on;
      if (on) $$("[hx-trigger^=show]", panel).forEach((part) => { part.replaceChildren(); htmx.trigger(part, "show"); });
    });
    if ($("#results")) $("#results").hidden = tab.id !== "tab-fields";
  };

  // Return the row for the errors of a field. It is created on demand, because most fields have no errors.
  const under = (row) => {
    if (!$(".errs", row) && $(".c-blank", row)) row.insertAdjacentHTML("beforeend", '<tr class="errs"><td colspan="7" class="fault"></td></tr>');
    return $(".errs", row);
  };

  // Move errors from the preview, which lists them with the names of their inputs, to these inputs.
  const place = () => {
    $$("[aria-invalid]", form()).forEach((one) => one.removeAttribute("aria-invalid"));
    $$(".fault", form()).forEach((one) => { one.replaceChildren(); one.closest(".errs")?.setAttribute("hidden", ""); });
    $$("#preview [data-for]").forEach((item) => {
      const name = item.dataset.for, row = document.getElementById(name.split(".")[0]);
      const input = name.endsWith(".type") ? row && $(".pick", row) : name && form().elements.namedItem(name);
      input?.setAttribute?.("aria-invalid", "true");
      const spot = input?.closest?.(".formula") || (row && under(row)); // errors of a formula are shown below it
      if (spot) spot.hidden = false;
      if (spot) $(".fault", spot).append($(".why", item).cloneNode(true));
    });
  };

  // Show errors next to their inputs without rendering the form again: a list on the page contains the errors, the ids
  // of their inputs and a selector of the form.
  const mark = (part) => {
    const target = $(part.dataset.marks);
    if (!target) return; // the result has replaced the form
    const described = (input) => (input.getAttribute("aria-describedby") || "").split(" ").filter((id) => id && !id.endsWith("-err"));
    const describe = (input, ids) => ids.length ? input.setAttribute("aria-describedby", ids.join(" ")) : input.removeAttribute("aria-describedby");
    const outside = (one) => !part.contains(one);
    $$("[aria-invalid]", target).filter(outside).forEach((one) => { one.removeAttribute("aria-invalid"); describe(one, described(one)); });
    $$(".field .err, .problems", target).filter(outside).forEach((one) => one.remove());
    $$("[data-for]", part).forEach((item) => {
      const input = document.getElementById(item.dataset.for), id = `${item.dataset.for}-err`;
      if (!input) return;
      input.setAttribute("aria-invalid", "true");
      describe(input, [...described(input), id]);
      input.closest(".field").append(make("span", { className: "err", id, textContent: item.textContent }));
    });
  };

  ["focusin", "pointerdown"].forEach((kind) => document.addEventListener(kind, ({ target }) => target.matches?.("[data-list]") && fill(target)));
  document.addEventListener("click", async (event) => {
    const at = (query) => event.target.closest(query);
    if (at("[data-open]")) { at("[popover]")?.hidePopover(); return open(at("[data-open]").dataset.open); }
    if (at("[data-close]")) return (at(".toast") ? at(".toast").remove() : at("dialog")?.close());
    if (event.target.matches("dialog")) return event.target.close(); // the backdrop
    if (at("[data-copy]")) {
      const button = at("[data-copy]"), from = button.dataset.copy ? $(button.dataset.copy) : $("pre", button.parentElement);
      await navigator.clipboard.writeText(from.value ?? from.textContent);
      return toast("Copied");
    }
    if (at("[data-clear]")) return $(at("[data-clear]").dataset.clear).replaceChildren();
    if (at("[role=tab]")) return show(at("[role=tab]"));
    if (at("#picker .chip")) {
      const chip = at(".chip"), on = chip.getAttribute("aria-pressed") !== "true";
      $$("#picker .chip").forEach((one) => one.setAttribute("aria-pressed", String(on && one === chip)));
      return narrow();
    }
    if (at("#picker [role=option]")) return pick(at("[role=option]"));
    if (at(".formula [data-insert]")) return insert($("textarea", at(".formula")), at("[data-insert]").dataset.insert);
    const press = at("[data-do], .pick, [name=do][value*=':'], [name=do][value=add]");
    if (press && form()?.contains(press) && !press.value.startsWith("save")) {
      event.preventDefault();
      act(press.dataset.do || press.value.split(":")[0] || "pick", rowOf(press));
    }
  });

  document.addEventListener("pointerover", ({ target }) => { if (target.matches?.(".side-on :is(td, th)")) target.title ||= target.textContent; });
  document.addEventListener("input", (event) => {
    if (event.target.matches("[data-find-in]")) return find(event.target);
    if (event.target.id === "picker-q") narrow();
    else if (event.target.closest("#builder") && !event.target.matches("#seed, #grid-count, [name=goto]")) dirty = true;
  });
  document.addEventListener("change", (event) => {
    const row = rowOf(event.target);
    if (event.target.matches("[data-again]")) ask(row, "again");
    else if (row && "fresh" in row.dataset && event.target.matches("[data-name]") && event.target.value) ask(row, "guess");
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
    } else if (sent.matches("[data-paste]")) {
      ask(null, "paste", { names: sent.elements.names.value });
      sent.reset();
    } else if (sent.matches("#export-form")) { // a download does not leave the page, but an error response would
      if ($("#estimate .err")) { // check again, because a quota may be available by now
        event.preventDefault();
        $("[aria-invalid]", sent)?.focus();
        return sent.dispatchEvent(new Event("input"));
      }
      const was = dirty;
      dirty = false;
      setTimeout(() => { dirty = was; }, 1000);
      if (event.submitter?.matches("[data-download]")) { sent.closest("dialog")?.close(); toast("Download started"); }
    } else if (sent === form()) dirty = false;
  });

  // Keyboard shortcuts
  let went = 0;
  const places = { h: "/", t: "/templates", d: "/datasets", s: "/scenarios", c: "/connections", e: "/endpoints", f: "/workspace/files", a: "/activity", k: "/api-keys" };
  document.addEventListener("keydown", (event) => {
    const key = event.key, at = event.target, row = rowOf(at), ctrl = event.ctrlKey || event.metaKey, stop = (act_) => { event.preventDefault(); act_(); };
    if (at.id === "picker-q" && /^(Arrow(Up|Down)|Enter)$/.test(key)) {
      const seen = options().filter((one) => !one.closest("[hidden]")), now = seen.findIndex((one) => one.ariaSelected === "true");
      return stop(() => key === "Enter" ? choose(seen[now]) : select(seen[Math.max(0, Math.min(seen.length - 1, now + (key === "ArrowDown" ? 1 : -1)))]));
    }
    const next = at.matches("[role=tab]") && { ArrowRight: at.nextElementSibling, ArrowLeft: at.previousElementSibling }[key];
    if (next) { next.focus(); return show(next); }
    if (ctrl && key === "s" && $("#save")) return stop(() => $("#save")?.click());
    if (form() && ctrl && key === "Enter") return stop(() => act("dice"));
    if (row && event.altKey && /^Arrow(Up|Down)$/.test(key)) return stop(() => move(row, key === "ArrowUp" ? -1 : 1));
    if (key === "Enter" && at.matches("#builder input:not([data-name])")) return stop(() => at.id === "grid-count" ? $("#generate").click() : at.dispatchEvent(new Event("change", { bubbles: true })));
    if (at.matches("[data-name]") && key === "Enter") return stop(() => (isRow(row.nextElementSibling) ? $("[data-name]", row.nextElementSibling).focus() : act("add")));
    if (ctrl || event.altKey || at.matches("input, textarea, select, [contenteditable]") || "keys" in document.documentElement.dataset || $("dialog[open]")) return;
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
    held = at.id || rowOf(at) || !detail.target.contains(at) ? "" // rows of the builder: redraw sets the focus
       : link ? `a[href=${CSS.escape(link)}]` : action ? `form[action=${CSS.escape(action)}] ${at.localName}` : "";
  });
  document.addEventListener("htmx:afterSwap", (event) => {
    timeAll();
    if (held && document.activeElement === document.body) $(held)?.focus({ preventScroll: true });
    if (event.target.id === "preview" && form()) place();
    if (event.target.id === "picker-body") { narrow(); if ("eager" in $("#picker").dataset) pick($("#picker [aria-selected=true]")); }
    if (event.target.dataset.marks) mark(event.target);
    if (event.target.id === "export") $("[data-unsaved]").hidden = !dirty;
    if (event.target.id === "clash") event.target.scrollIntoView({ block: "center" });
  });
  document.addEventListener("htmx:responseError", (event) => {
    const { responseText, status } = event.detail.xhr, page = new DOMParser().parseFromString(responseText, "text/html");
    const told = page.body.textContent.trim().replace(/\s+/g, " ").slice(0, 200) || `The server answered ${status}.`;
    const spot = $("dialog[open] .estimate"); // an open dialog would cover a toast
    if (spot) spot.replaceChildren(make("span", { className: "err", textContent: told })); else toast(told);
  });
  document.addEventListener("htmx:sendError", () => toast("The server cannot be reached."));
  document.addEventListener("htmx:load", equip);
  document.addEventListener("saved", () => { dirty = false; });
  addEventListener("beforeunload", (event) => { if (dirty && form()) event.preventDefault(); });
  document.addEventListener("DOMContentLoaded", () => {
    timeAll();
    if (location.hash === "#export") open("export");
    const here = $(".side [aria-current]"), side = here?.parentElement; // on narrow screens the list is horizontal
    if (here) side.scrollLeft = here.offsetLeft - side.offsetLeft - (side.clientWidth - here.offsetWidth) / 2;
  });
})();
