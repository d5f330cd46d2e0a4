/* The template builder. Every change is a request: the form says what was entered, and the server stores it as a
   revision of the draft and answers with the parts of the page that are different. Requests run one after the other.
   The inspector is redrawn only when its inputs change, so nothing that is typed is lost; what was typed while a
   request ran is entered again. */
(() => {
  "use strict";
  const { $, $$, open, toast } = window.rowsmith;
  const form = $("#builder");
  if (!form) return;
  const value = (name) => form.elements.namedItem(name)?.value ?? "";
  const inspector = () => $("#inspector");
  const openKey = () => $(".insp", inspector())?.dataset.key ?? "";
  const headOf = (key) => document.getElementById(`c-${key}`);
  const wait = (ms) => new Promise((go) => setTimeout(go, ms));

  // --- Requests -----------------------------------------------------------------------------------------------

  let queue = Promise.resolve();
  let timer = 0;
  let typed = new Map(); // inputs that were changed since the last request, by name
  let edited = null; // the textarea with JSON that was not sent
  let editing = 0;
  let doing = ""; // the verb of the last request
  let running = 0;
  const TYPING = 250; // milliseconds after the last key before a change is sent

  const ask = (address, values, target) =>
    htmx.ajax("POST", address, { source: form, target, swap: "innerHTML", values });
  const again = () => { // enter what was typed while the inspector was redrawn
    typed.forEach(({ text, checked }, name) => {
      const input = form.elements.namedItem(name);
      if (!input || input instanceof RadioNodeList || input.type === "hidden") return;
      if (/checkbox|radio/.test(input.type)) input.checked = checked;
      else input.value = text;
    });
  };
  const run = async (verb, values) => {
    clearTimeout(timer);
    doing = verb;
    const changed = [...typed.keys()].at(-1) ?? "", key = openKey(), sent = typed;
    typed = new Map();
    running += 1;
    const left = $("#wrap")?.scrollLeft;
    try {
      await ask(form.action, { do: verb, changed, ...values }, "#table");
      if (!answered) throw new Error("no answer");
    } catch {
      typed = new Map([...sent, ...typed]);
      timer = setTimeout(() => send("set"), 3000); // the server cannot be reached: nothing is lost, try again
    } finally {
      running -= 1;
    }
    if (left !== undefined && /^(set|left|right|type|again)$/.test(verb.split(":")[0])) $("#wrap").scrollLeft = left;
    if (openKey() === key) again();
    if (typed.size) later();
    drawn(verb);
  };
  const send = (verb, values = {}) => {
    queue = queue.then(() => run(verb, values));
    return queue;
  };
  const later = () => {
    clearTimeout(timer);
    timer = setTimeout(() => send("set"), TYPING);
  };
  const sendJson = () => {
    clearTimeout(editing);
    const json = edited.value;
    edited = null;
    return send("json", { json });
  };
  const flush = () => {
    if (edited) sendJson();
    if (typed.size) send("set");
    return queue;
  };
  const refresh = async (values = {}) => {
    await flush();
    await ask(form.dataset.rows, values, "#table");
    drawn("rows");
  };

  let answered = false;
  document.addEventListener("htmx:beforeRequest", ({ detail }) => {
    if (detail.elt === form) answered = false;
  });
  document.addEventListener("htmx:afterOnLoad", ({ detail }) => {
    if (detail.elt === form) answered = true;
  });

  // --- After a change -----------------------------------------------------------------------------------------

  const drawn = (verb) => {
    const word = verb.split(":")[0];
    locate();
    highlight();
    filter();
    mark();
    htmx.trigger(document.body, "refreshed");
    const head = headOf(openKey());
    if (/^(add|paste|duplicate|insert|left|right)$/.test(word)) {
      head?.scrollIntoView({ inline: "nearest", block: "nearest" });
    }
    if (/^(left|right)$/.test(word) && document.activeElement === document.body) head?.focus();
    if (word === "remove" && document.activeElement === document.body) (head ?? $(".colhead, #add-button"))?.focus();
    if (/^(insert|inside)$/.test(word)) $(".insp .name")?.focus();
    if (word === "type" && document.activeElement === document.body) $("[data-pick]")?.focus();
  };
  const locate = () => { // a new template is a draft from its first change on: its views are views of the draft
    const draft = value("draft"), at = "/templates/new";
    if (!draft || location.pathname !== at) return;
    $$(".topbar a, .menu a, .toolbar a").filter((one) => one.pathname === at).forEach((one) => {
      const query = new URLSearchParams({ draft }), before = new URLSearchParams(one.search);
      ["view", "field"].forEach((name) => {
        if (before.get(name)) query.set(name, before.get(name));
      });
      one.search = query;
    });
  };
  const highlight = () => { // the column of the open field
    const key = openKey(), heads = $$(".heads th"), place = heads.findIndex((one) => one.contains(headOf(key)));
    heads.forEach((one, at) => one.classList.toggle("on", at === place));
    $$("#table [aria-current]").forEach((one) => one.removeAttribute("aria-current"));
    headOf(key)?.setAttribute("aria-current", "true");
    $$(".flist tr").forEach((one) => one.classList.toggle("on", one.contains(headOf(key))));
    $$(".cells td.on").forEach((one) => one.classList.remove("on"));
    if (place < 1) return;
    $$(".cells tbody tr").forEach((line, number) => {
      const skipped = number ? spanned(place) : 0;
      const cell = line.cells[place - skipped];
      if (cell && !(number && isSpanned(place))) cell.classList.add("on");
    });
  };
  // Cells of fields without values span all rows, so the other rows have fewer cells.
  const spanned = (place) =>
    [...($(".cells tbody tr")?.cells ?? [])].slice(0, place).filter((one) => one.rowSpan > 1).length;
  const isSpanned = (place) => ($(".cells tbody tr")?.cells[place]?.rowSpan ?? 1) > 1;
  const mark = () => { // errors at the inputs of the inspector
    const list = $("#field-faults");
    if (!list) return;
    $$(".insp [aria-invalid]").forEach((one) => one.removeAttribute("aria-invalid"));
    $$(".insp .err[data-made]").forEach((one) => one.remove());
    $$("[data-for]", list).forEach(({ dataset, textContent }) => {
      const input = document.getElementById(dataset.for);
      if (!input) return;
      input.setAttribute("aria-invalid", "true");
      const at = input.closest(".field") ?? input.parentElement;
      if (at.querySelector(".err") || input === document.activeElement) return; // not while one is typing
      const told = Object.assign(document.createElement("span"), {
        className: "err",
        id: `${dataset.for}-err`,
        textContent,
      });
      told.dataset.made = "";
      at.append(told);
      input.setAttribute("aria-describedby", told.id);
    });
  };

  // --- The inspector ------------------------------------------------------------------------------------------

  const show = async (key, focus) => {
    await flush();
    form.elements.namedItem("field").value = key;
    await htmx.ajax("POST", form.dataset.inspector, {
      source: form,
      target: "#inspector",
      swap: "innerHTML",
      values: { open: key },
    });
    highlight();
    mark();
    if (focus === "name") $(".insp .name")?.select();
    else if (focus === "fault") attend();
    else if (focus) $("[name=tab]:checked, .insp input:not([type=hidden])", inspector())?.focus();
  };
  const attend = () => { // go to the first input that needs attention
    const wrong = $(".insp [aria-invalid]");
    const part = wrong?.closest(".part")?.className.match(/p-(\w+)/)?.[1];
    if (part) $(`#tab-${part}`).checked = true;
    wrong?.closest("details")?.setAttribute("open", "");
    (wrong ?? $(".insp .name"))?.focus();
  };
  const shut = async () => {
    const head = headOf(openKey());
    await flush();
    form.elements.namedItem("field").value = "";
    inspector().replaceChildren();
    highlight();
    head?.focus();
  };

  // --- List: filter and selection -----------------------------------------------------------------------------

  const filter = () => {
    const box = $("[data-filter]"), lines = $$(".flist tbody tr");
    if (!box) return;
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean),
      only = $("[data-only][aria-pressed=true]")?.dataset.only;
    lines.forEach((line) => {
      line.hidden = !words.every((word) => line.dataset.line.includes(word))
        || Boolean(only && !(only in line.dataset));
    });
    const seen = lines.filter((line) => !line.hidden).length;
    $("#filtered").textContent = seen === lines.length ? `${seen} fields` : `${seen} of ${lines.length} fields`;
    picked();
  };
  const picked = () => {
    const count = $$("[name=pick]:checked").length, bar = $("#bulk");
    if (!bar) return;
    bar.hidden = !count;
    $("#picked").textContent = `${count} selected`;
  };

  // --- Type picker --------------------------------------------------------------------------------------------

  let picking = ""; // the field whose type is chosen; "" for a new field
  const options = () => $$("#picker [role=option]").filter((one) => !one.hidden);
  const typeOf = (option) => option.dataset.type || option.id.slice(2);
  // The ranks are those of `search` in webapp/row_templates/services/catalogue.py.
  const plain = (text) => text.toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");
  const nearly = (word, other) => {
    if (word === other) return true;
    if (word.length < 4 || Math.abs(word.length - other.length) > 1) return false;
    let at = 0;
    while (word[at] === other[at]) at += 1;
    const left = word.slice(at), right = other.slice(at);
    if (left.length === right.length) {
      return left.slice(1) === right.slice(1)
        || (left[0] === right[1] && left[1] === right[0] && left.slice(2) === right.slice(2));
    }
    return left.length > right.length ? left.slice(1) === right : left === right.slice(1);
  };
  const prepared = (names) => ({
    texts: names.map(plain),
    parts: names.map((name) => name.toLowerCase().split(/[^\p{L}\p{N}]+/u)),
  });
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
    const own = [typeOf(option), $("b", option).textContent],
      aliases = (option.dataset.find || "").split(",").filter(Boolean);
    option.ranked ||= [prepared([...own, ...aliases]), prepared(own)];
    const [all, named] = option.ranked.map((names) => rankBy(names, option, wanted, words));
    return 2 * all + Number(named !== all);
  };
  const select = (option) => {
    $$("#picker [aria-selected=true]").forEach((one) => one.setAttribute("aria-selected", "false"));
    $("#picker-q").setAttribute("aria-activedescendant", option?.id || "");
    option?.setAttribute("aria-selected", "true");
    option?.scrollIntoView({ block: "nearest" });
    about(option);
  };
  let aboutTimer = 0, abouts = null; // what is known of the selected type, with rows of this template
  const about = (option) => {
    clearTimeout(aboutTimer);
    abouts?.abort();
    const box = $("#about-type");
    if (!box || !box.checkVisibility()) return;
    if (!option) return box.replaceChildren();
    aboutTimer = setTimeout(async () => {
      abouts = new AbortController();
      const body = new FormData(form);
      body.set("do", `about:${picking}:${typeOf(option).split(" ")[0]}`);
      try {
        const answer = await fetch($("#picker-body").dataset.about, {
          method: "POST",
          body,
          headers: { "HX-Request": "true" },
          signal: abouts.signal,
        });
        if (answer.ok) {
          box.replaceChildren(...new DOMParser().parseFromString(await answer.text(), "text/html").body.childNodes);
        }
      } catch { /* another type was selected, or the server cannot be reached */ }
    }, 120);
  };
  const narrow = () => {
    const list = $("#picker-list"),
      query = $("#picker-q").value,
      words = query.toLowerCase().replaceAll("_", " ").split(/\s+/).filter(Boolean);
    if (!list) return;
    const family = $("#picker .cats [aria-pressed=true]")?.dataset.family,
      results = $("[data-results]", list),
      wanted = plain(query);
    const all = list.all ||= $$("[role=option]", list).map((one) => Object.assign(one, { home: one.parentElement }));
    all.forEach((one) => one.home.append(one));
    $$("[data-group]", list).forEach((part) => {
      part.hidden = words.length > 0 || Boolean(family && part.dataset.group !== family);
    });
    results.hidden = !words.length;
    const found = words.length
      ? all.map((one) => [rank(one, wanted, words), one]).filter(([place]) => place < 12)
      : all.map((one) => [0, one]);
    if (words.length) {
      results.append(
        ...found.filter(([, one]) => !family || one.home.dataset.group === family).sort(([one], [other]) => one - other)
          .map(([, one]) => one),
      );
    }
    $$("#picker .cats button").forEach((button) => { // how many match in each category
      const number = button.dataset.family
        ? found.filter(([, one]) => one.home.dataset.group === button.dataset.family).length
        : found.length;
      $("span", button).textContent = number || "";
      button.classList.toggle("none", !number);
    });
    const seen = options().filter((one) => list.contains(one) && !one.closest("[hidden]"));
    $("[data-none]").hidden = seen.length > 0;
    select((!words.length && seen.find((one) => typeOf(one) === value(`${picking}.type`))) || seen[0]);
  };
  const choose = (option) => {
    if (!$("#picker-list")) {
      $("#picker").dataset.eager = "";
      return;
    } // Enter before the list has loaded
    delete $("#picker").dataset.eager;
    $("#picker").close();
    if (!option) return;
    if (picking) send(`type:${picking}:${typeOf(option)}`);
    else add(typeOf(option));
  };
  const pick = (key) => {
    picking = key;
    const name = key ? value(`${key}.name`) : $("#add-name").value;
    if ($("#suggest-for")) {
      [$("#suggest-for").value, $("#suggest-name").textContent, $("#suggested").textContent] = [
        `suggest:${key}`,
        name || "this field",
        "",
      ];
    }
    $(".suggest", $("#picker"))?.toggleAttribute("hidden", !key);
    if ($("#picker-for")) $("#picker-for").textContent = name ? `Type of ${name}` : "";
    $$("#picker .cats button").forEach((one, place) => one.setAttribute("aria-pressed", String(!place)));
    $("#picker-q").value = "";
    open("picker");
    narrow();
    $("#picker-q").select();
  };

  // --- New fields ---------------------------------------------------------------------------------------------

  const add = (type = "") => {
    const input = $("#add-name"), name = input.value.trim();
    input.value = "";
    $("#add-types").replaceChildren();
    input.focus();
    return send(type ? `add::${type}` : "add", { add_name: name });
  };

  // --- Formulas -----------------------------------------------------------------------------------------------

  const insert = (area, text) => {
    area.setRangeText(text, area.selectionStart, area.selectionEnd, "end");
    area.focus();
    area.dispatchEvent(new Event("input", { bubbles: true }));
  };
  const find = (input) => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    $$("details", input.parentElement).forEach((part, place) => {
      $$("[data-find]", part).forEach((one) => {
        one.hidden = !words.every((word) => one.dataset.find.includes(word));
      });
      part.hidden = !$("[data-find]:not([hidden])", part);
      part.open = words.length ? !part.hidden : !place;
    });
  };

  // --- Saving and files ---------------------------------------------------------------------------------------

  const save = async (button) => {
    await flush();
    queue = queue.then(() => {
      doing = button.value;
      return ask(button.formAction, { do: button.value }, "#table");
    });
    await queue;
    drawn("save");
  };
  document.addEventListener("refused", ({ detail }) => {
    if (detail.name) $("#name").focus();
    else attend();
  });
  const download = async (button) => { // what is typed is in the file
    await flush();
    form.requestSubmit(button);
    button.closest("[popover]")?.hidePopover();
  };

  // --- Events -------------------------------------------------------------------------------------------------

  const isDraft = (input) =>
    input.form === form && input.name && !input.closest("#adder, #m-download")
    && !/^(seed|pick|tab|json|do)$/.test(input.name) && input.type !== "hidden" && input.type !== "file";
  document.addEventListener("input", ({ target }) => {
    if (target.matches("[data-find-in]")) return find(target);
    if (target.id === "picker-q") return narrow();
    if (target.matches("[data-filter]")) return filter();
    if (target.matches("[data-mirror]")) { // the slider of a number
      const number = document.getElementById(target.dataset.mirror);
      number.value = target.value;
      return number.dispatchEvent(new Event("input", { bubbles: true }));
    }
    if (target.id === "seed") {
      clearTimeout(timer);
      timer = setTimeout(refresh, TYPING);
      return;
    }
    if (target.matches("[data-json]")) {
      edited = target;
      clearTimeout(editing);
      editing = setTimeout(sendJson, TYPING * 2);
      return;
    }
    if (!isDraft(target)) return;
    const slider = $(`[data-mirror="${CSS.escape(target.name)}"]`);
    if (slider) slider.value = target.value || 0;
    typed.set(target.name, { text: target.value, checked: target.checked });
    later();
  });
  document.addEventListener("change", ({ target }) => {
    if (target.matches("[data-all]")) {
      $$(".flist tbody tr:not([hidden]) [name=pick]").forEach((one) => {
        one.checked = target.checked;
      });
    }
    if (target.matches("[data-all], [name=pick]")) return picked();
    if (target.form === form && (target.matches("[data-again]") || target.name.endsWith(".o.distribution"))) {
      typed.set(target.name, { text: target.value });
      send(`again:${openKey()}`);
    }
  });
  // Errors and hints move what is below them. Between pressing and releasing a button nothing may move, or the click
  // goes elsewhere.
  let pressed = false;
  const press = (on) => {
    pressed = on;
    $(".insp")?.classList.toggle("pressing", on);
    $$(".insp .keep").forEach((one) => one.classList.remove("keep"));
    if (on) document.activeElement?.closest(".insp .field")?.classList.add("keep");
    else mark();
  };
  document.addEventListener("pointerdown", () => press(true), true);
  ["pointerup", "pointercancel"].forEach((name) =>
    document.addEventListener(name, () => setTimeout(press, 0, false), true)
  );
  document.addEventListener("focusout", ({ target }) => {
    if (target.closest?.(".insp") && !pressed) setTimeout(mark);
  });
  document.addEventListener("changed", () => send("set"));

  document.addEventListener("click", (event) => {
    const at = (query) => event.target.closest(query),
      stop = (act) => {
        event.preventDefault();
        act();
      };
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (at("#picker .cats button")) {
      $$("#picker .cats button").forEach((one) => one.setAttribute("aria-pressed", String(one === at("button"))));
      return narrow();
    }
    if (at("[data-use]")) return choose(document.getElementById(`t-${at("[data-use]").dataset.use}`));
    if (at("#picker [role=option]")) return choose(at("[role=option]"));
    if (at("[data-only]")) {
      const chip = at("[data-only]"), on = chip.getAttribute("aria-pressed") !== "true";
      $$("[data-only]").forEach((one) => one.setAttribute("aria-pressed", String(on && one === chip)));
      return filter();
    }
    if (at("[data-pick]")) return pick(openKey());
    if (at("[data-add-type]")) {
      return at("[data-add-type]").dataset.addType
        ? add(at("[data-add-type]").dataset.addType)
        : pick("");
    }
    if (at(".formula [data-insert]")) return insert($("textarea", at(".formula")), at("[data-insert]").dataset.insert);
    if (at("[data-dice]")) return stop(dice);
    if (at("button[data-rows]")) return stop(() => refresh({ [at("button").name]: at("button").value }));
    if (at("[data-shut]")) return stop(shut);
    if (at("[data-field]")) {
      return stop(() =>
        show(at("[data-field]").dataset.field, "attend" in at("[data-field]").dataset ? "fault" : event.detail === 0)
      );
    }
    const button = at("button");
    if (button?.form !== form || button.type !== "submit") {
      const link = at("a[href]");
      if (link && (typed.size || edited || running) && link.origin === location.origin && !link.target) {
        stop(async () => {
          await flush();
          location.assign(link.href);
        });
      }
      return;
    }
    if (button.name === "format") {
      if (typed.size || edited || running) stop(() => download(button));
      else toast("Download started");
      return;
    }
    if ("plain" in button.dataset) return;
    if (/^(save|save-over:\d+|copy)$/.test(button.value)) return stop(() => save(button));
    if (button.name === "do") {
      return stop(() => {
        button.closest("[popover]")?.hidePopover();
        send(button.value);
      });
    }
  });
  const dice = () => {
    $("#seed").value = Math.random().toString(36).slice(2, 8);
    return refresh();
  };

  document.addEventListener("submit", (event) => {
    if (!event.target.matches("[data-paste]")) return;
    send("paste", { names: event.target.elements.names.value });
    event.target.reset();
  });
  document.addEventListener("paste", (event) => {
    const text = event.clipboardData?.getData("text") ?? "";
    if (event.target.id !== "add-name" || !/[\n,;\t]/.test(text.trim())) return;
    event.preventDefault();
    send("paste", { names: text });
  });
  $("#adder")?.addEventListener("toggle", ({ newState }) => {
    if (newState === "open") $("#add-name").focus();
  });

  document.addEventListener("keydown", (event) => {
    const { key, target: at } = event,
      ctrl = event.ctrlKey || event.metaKey,
      stop = (act) => {
        event.preventDefault();
        act();
      };
    if (at.id === "picker-q" && /^(Arrow(Up|Down)|Enter)$/.test(key)) {
      const seen = options().filter((one) => !one.closest("[hidden]")),
        now = seen.findIndex((one) => one.ariaSelected === "true");
      return stop(() =>
        key === "Enter"
          ? choose(seen[now])
          : select(seen[Math.max(0, Math.min(seen.length - 1, now + (key === "ArrowDown" ? 1 : -1)))])
      );
    }
    if ($("dialog[open]")) return;
    if (ctrl && key.toLowerCase() === "z" && !at.matches("[data-json]")) {
      return stop(() => send(event.shiftKey ? "redo" : "undo"));
    }
    if (ctrl && key === "Enter") return stop(dice);
    if (event.altKey && key.toLowerCase() === "n") {
      return stop(() => {
        $("#adder")?.showPopover();
        $("#add-name")?.focus();
      });
    }
    const field = at.closest?.(".colhead")?.dataset.field ?? (at.closest?.("#inspector") ? openKey() : "");
    if (event.altKey && /^Arrow(Left|Right)$/.test(key) && field && field !== "settings") {
      return stop(() => send(`${key === "ArrowLeft" ? "left" : "right"}:${field}`));
    }
    if (key === "Enter" && at.id === "add-name") return stop(() => add());
    if (at.id === "add-name" && key === "ArrowDown") return stop(() => $("#add-types button")?.focus());
    if (key === "Enter" && at.form === form && at.matches("input")) {
      return stop(() => at.id === "seed" ? refresh() : flush()); // Enter never saves
    }
    if (key === "Escape" && at.closest?.("#inspector")) return stop(shut);
    if (!at.matches?.(".colhead, .flist a[data-field]")) return;
    if (key === "F2") return stop(() => show(at.dataset.field, "name"));
    if (key === "Delete") return stop(() => send(`remove:${at.dataset.field}`));
    const heads = $$(".heads .colhead"), place = heads.indexOf(at);
    const next = { ArrowRight: heads[place + 1], ArrowLeft: heads[place - 1], Home: heads[0], End: heads.at(-1) }[key];
    if (place >= 0 && next && !event.altKey) stop(() => next.focus());
  });

  document.addEventListener("htmx:oobBeforeSwap", ({ detail }) => { // JSON that cannot be read yet stays as it is
    const kept = /^json-(text|state)$/.test(detail.target.id) && $("#json-state .err");
    if (kept && !/^(undo|redo|json)$/.test(doing)) detail.shouldSwap = false;
  });
  document.addEventListener("htmx:afterSwap", ({ target }) => {
    if (target.id === "export" && $("[data-unsaved]")) $("[data-unsaved]").hidden = !$("#state .dot");
    if (target.id === "picker-body") {
      narrow();
      if ("eager" in $("#picker").dataset) choose($("#picker [aria-selected=true]"));
    }
  });
  const LEFT = "builder-left"; // a change was on its way when the page was left
  const leave = () => { // what is typed is not lost when the page is left
    if (!typed.size && !edited) return;
    const data = new FormData(form);
    data.set("do", edited ? "json" : "set");
    navigator.sendBeacon(form.action, data);
    sessionStorage.setItem(LEFT, "1");
  };
  addEventListener("beforeunload", leave); // earlier than the next page is requested
  addEventListener("pagehide", leave); // for browsers that do not send the other on phones
  const returned = async () => { // a reload may be answered before the change has arrived
    if (!sessionStorage.getItem(LEFT)) return;
    sessionStorage.removeItem(LEFT);
    for (let turn = 0; turn < 10; turn += 1) {
      await wait(300);
      if (typed.size || edited || running) return;
      if (value("view") === "json" || openKey()) return location.reload(); // these inputs show what was before
      await refresh();
      if ($("#state .dot")) return;
    }
  };
  returned();
  mark();
})();
