/* The page of a dataset. Every change is a request that saves it; requests run one after the other. A change of a value
   replaces only texts that follow from it, never an input. A change of tables or relations replaces the diagram and the
   drawer; what was typed while such a request ran is entered again afterwards. */
(() => {
  "use strict";
  const { $, $$, toast } = window.rowsmith;
  // The source of requests is outside the form: they have only what was changed.
  const form = $("#dataset"), echo = $("#echo");
  if (!form) return;
  const PAUSE = 700, FIND = 250; // milliseconds after the last key

  let queue = Promise.resolve(), timer = 0, finding = 0, running = 0;
  let typed = new Map(); // inputs that were changed since the last request, by name
  let saving = new Map(); // those of the request that is under way
  let written = new Map(); // other inputs of the drawer (a relation before Apply), by name
  const say = (text) => {
    const state = $("[data-saving]");
    if (state) state.textContent = text;
  };
  const inputs = (name) => [...form.elements].filter((one) => one.name === name && one.type !== "hidden");
  const enter = (name, { text, checked }) =>
    inputs(name).forEach((input) => {
      if (input.type === "radio" || input.type === "checkbox") {
        input.checked = input.value === text
          ? checked
          : input.checked && !checked;
      } else if (input.value !== text) input.value = text;
    });
  const drawer = () => {
    const body = $("#drawer .dsbody");
    return body ? `${body.dataset.of}/${body.dataset.relation}` : "";
  };
  const refs = () => Object.fromEntries($$("#refs input").map(({ name, value }) => [name, value]));

  // --- Requests -----------------------------------------------------------------------------------------------

  let answered = false;
  document.addEventListener("htmx:afterOnLoad", ({ detail }) => {
    if (detail.elt === echo) answered = true;
  });
  const ask = (method, address, values, target) => {
    answered = false;
    return htmx.ajax(method, address, { source: echo, target, swap: "innerHTML", values });
  };
  const settle = () => { // inputs outside the parts that are replaced, for example after Undo
    const values = JSON.parse($("#refs").dataset.values);
    Object.entries(values).forEach(([name, text]) =>
      inputs(name).forEach((input) => {
        if (
          input !== document.activeElement && !typed.has(name) && input.getAttribute("aria-invalid") !== "true"
        ) input.value = text;
      })
    );
    $("h1").textContent = values.name;
  };
  const again = (open) => { // what was typed while the page was redrawn
    settle();
    typed.forEach((value, name) => enter(name, value));
    if (drawer() === open) written.forEach((value, name) => enter(name, value));
    else written = new Map();
    mark();
  };
  const run = async (verb, more = {}) => {
    clearTimeout(timer);
    const sent = verb === "set" ? typed : new Map(),
      open = drawer(),
      at = document.activeElement?.id,
      left = $("#canvas")?.scrollLeft,
      top = $("#canvas")?.scrollTop;
    if (verb === "set") {
      typed = new Map();
      saving = sent;
    }
    running += 1;
    say("saving …");
    const values = Object.fromEntries([...sent].map(([name, { text }]) => [name, text]));
    const extra = /^(relate|children)/.test(verb) ? Object.fromEntries(new FormData(form)) : {};
    try {
      await ask("POST", form.action, { ...own(extra), ...refs(), ...values, ...more, do: verb }, "#echo");
      if (!answered) throw new Error("no answer");
      if (/^(relate|children|unrelate)/.test(verb) && !$("#drawer [role=alert]:not(:empty)")) written = new Map();
    } catch {
      typed = new Map([...sent, ...typed]);
      say("not saved yet");
      if (typed.size) timer = setTimeout(() => send("set"), 3000); // the server cannot be reached: try again
    } finally {
      running -= 1;
      saving = new Map();
    }
    again(open);
    const canvas = $("#canvas");
    if (canvas && left !== undefined) {
      canvas.scrollLeft = left;
      canvas.scrollTop = top;
    }
    if (document.activeElement === document.body) focusAfter(verb, at);
    if (typed.size) later();
  };
  const own = (all) => Object.fromEntries(Object.entries(all).filter(([name]) => name.startsWith("relation-")));
  const focusAfter = (verb, at) => {
    const word = verb.split(":")[0];
    const wanted = word === "remove"
      ? "#add-table"
      : word === "unrelate"
      ? "#drawer h2 a, #drawer [data-shut]"
      : at
      ? `#${CSS.escape(at)}`
      : "";
    const found = wanted && $(wanted);
    (found && !found.disabled ? found : $("#canvas"))?.focus({ preventScroll: true });
  };
  // What was typed before is a change of its own; what is typed later is not part of this one.
  const send = (verb, more) => {
    if (verb !== "set" && typed.size) queue = queue.then(() => run("set"));
    queue = queue.then(() => run(verb, more));
    return queue;
  };
  const later = () => {
    clearTimeout(timer);
    timer = setTimeout(() => send("set"), PAUSE);
  };
  const flush = () => {
    if (typed.size) send("set");
    return queue;
  };

  const mark = () => { // inputs whose value was not accepted
    $$("[data-save]").forEach((input) => {
      const bad = Boolean(
        document.getElementById(input.getAttribute("aria-describedby")?.split(" ").at(-1) ?? "")?.textContent.trim(),
      );
      if (bad) input.setAttribute("aria-invalid", "true");
      else input.removeAttribute("aria-invalid");
    });
  };
  const load = async (address, target) => { // another part of the page: its address is that of the page
    await flush();
    const open = drawer(), at = document.activeElement?.id;
    queue = queue.then(() => ask("GET", address, {}, `#${target}`));
    await queue;
    if (answered) history.replaceState(history.state, "", address);
    again(target === "drawer" ? "" : open);
    pick();
    const find = $("#find");
    if (find && target === "workspace" && wanted !== null) find.value = wanted;
    if (document.activeElement === document.body) {
      (at && document.getElementById(at) || $("#canvas"))?.focus({ preventScroll: true });
    }
  };
  const pick = () => { // the card or line that the drawer shows
    const { table, relation } = refs();
    $$("[data-table]").forEach((one) => one.classList.toggle("picked", one.dataset.table === table));
    $$(".pill").forEach((one) => one.classList.toggle("on", Boolean(relation) && one.id === `l-${table}-${relation}`));
    $$(".tcard h2 a").forEach((one) => one.toggleAttribute("aria-current", one.id === `o-${table}` && !relation));
  };
  const shut = () => {
    const { table, relation } = refs(),
      opener = document.getElementById(relation ? `l-${table}-${relation}` : `o-${table}`);
    const address = $("#drawer [data-shut]").href;
    flush();
    written = new Map();
    $("#drawer").replaceChildren();
    $$("#refs input").forEach((one) => {
      if (/^(table|relation)$/.test(one.name)) one.remove();
    });
    history.replaceState(history.state, "", address);
    pick();
    (opener?.getClientRects().length ? opener : $("#canvas"))?.focus({ preventScroll: true });
  };

  // --- Events -------------------------------------------------------------------------------------------------

  let wanted = null; // the text of the search that is under way
  document.addEventListener("input", ({ target }) => {
    if (target.matches("[data-find-table]")) {
      wanted = target.value;
      clearTimeout(finding);
      finding = setTimeout(() => {
        const address = new URL(target.dataset.findTable, location.href);
        if (wanted.trim()) address.searchParams.set("q", wanted.trim());
        load(address.pathname + address.search, "workspace");
      }, FIND);
      return;
    }
    const value = { text: target.value, checked: target.checked };
    if (target.matches("[data-save]")) {
      typed.set(target.name, value);
      say("saving …");
      later();
    } else if (target.name?.startsWith("relation-")) written.set(target.name, value);
  });
  document.addEventListener("change", ({ target }) => {
    if (target.matches("[data-save]") && typed.size) send("set");
  });

  document.addEventListener("click", (event) => {
    const at = (query) => event.target.closest(query),
      stop = (act) => {
        event.preventDefault();
        act();
      };
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (at("[data-open=fill]")) {
      $("#fill").replaceChildren(
        Object.assign(document.createElement("p"), {
          className: "pad muted",
          textContent: "Checking the columns of the database …",
        }),
      );
      return;
    }
    if (at("[data-to-file]")) {
      const { to, ...rest } = refs(), address = new URL(at("[data-to-file]").dataset.toFile, location.href);
      address.searchParams.set("to", $("#file-form [name=format]:checked").value);
      ["view", "table", "relation", "around", "q"].forEach((key) => {
        if (rest[key]) address.searchParams.set(key, rest[key]);
      });
      return stop(async () => {
        await flush();
        location.assign(address);
      });
    }
    if (at("[data-shut]")) return stop(shut);
    const link = at("[data-load]");
    if (link?.ariaDisabled === "true") return stop(() => {});
    if (link) {
      return stop(() => {
        wanted = null;
        load(link.getAttribute("href"), link.dataset.load);
      });
    }
    const button = at("button");
    if (button?.form === form && button.name === "do") return stop(() => send(button.value));
    const other = at("a[href]") ?? (button?.form && "plain" in button.dataset ? button : null);
    if (
      !other || !(typed.size || running) || other.target || other.hasAttribute("hx-get")
      || other.hasAttribute("data-open")
    ) return;
    if (other.href && new URL(other.href, location.href).origin !== location.origin) return;
    stop(async () => {
      await flush();
      if (other.href) location.assign(other.href);
      else form.requestSubmit(other);
    });
  });
  document.addEventListener("htmx:confirm", (event) => { // a plan or a list of templates follows what is saved
    if (!typed.size && !running) return;
    if (event.detail.elt === echo || !event.detail.elt.closest?.("#primary, #add-table")) return;
    event.preventDefault();
    flush().then(() => event.detail.issueRequest(true));
  });

  document.addEventListener("submit", (event) => {
    const sent = event.target;
    if (sent.matches("[data-adds]")) {
      event.preventDefault();
      const data = new FormData(sent), ids = data.getAll("add");
      sent.closest("dialog")?.close();
      if (ids.length) send("add", { add: ids, parents: data.get("parents") ?? "" });
    } else if (sent.matches("#to-file, #file-form") && typed.size) {
      event.preventDefault();
      flush().then(() => sent.submit());
    }
  });

  document.addEventListener("keydown", (event) => {
    const { key, target: at } = event,
      ctrl = event.ctrlKey || event.metaKey,
      stop = (act) => {
        event.preventDefault();
        act();
      };
    if ($("dialog[open]") && !at.closest("#settings")) return;
    if (ctrl && key.toLowerCase() === "z" && form.querySelector("#steps")) {
      return stop(() => send(event.shiftKey ? "redo" : "undo"));
    }
    if (ctrl && key.toLowerCase() === "s") return stop(flush);
    if (event.altKey && key.toLowerCase() === "n") return stop(() => $("#add-table")?.click());
    if (key === "Enter" && at.matches("input") && at.form === form) {
      return stop(() =>
        at.name.startsWith("relation-")
          ? (at.closest(".relate")?.querySelector("#relate") ?? $("#children"))?.click()
          : flush()
      );
    }
    if (key === "Enter" && at.matches("[data-find-table]")) return stop(() => {});
    if (key === "Escape" && at.closest("#drawer, .tcard, .pill, .dstable") && $("#drawer [data-shut]")) {
      return stop(shut);
    }
    const cards = $$(".tcard h2 a"), place = cards.indexOf(at);
    if (place < 0 || event.altKey || ctrl) return;
    const next = { ArrowDown: 1, ArrowUp: -1 }[key];
    if (next) return stop(() => cards[place + next]?.focus());
    if (key === "Home" || key === "End") return stop(() => cards.at(key === "Home" ? 0 : -1).focus());
    const side = { ArrowRight: 1, ArrowLeft: -1 }[key],
      columns = $$(".dcol"),
      column = columns.indexOf(at.closest(".dcol"));
    if (side && column >= 0) { // the nearest card of the next column
      const { top } = at.getBoundingClientRect();
      const near = columns[column + side]
        && $$(".tcard h2 a", columns[column + side]).sort((one, other) =>
          Math.abs(one.getBoundingClientRect().top - top) - Math.abs(other.getBoundingClientRect().top - top)
        )[0];
      if (near) stop(() => near.focus());
    } else if (key === "Delete") stop(() => $(`#remove-${CSS.escape(at.id.slice(2))}`)?.click());
  });

  addEventListener("pagehide", () => { // what is typed is not lost when the page is left
    if (!typed.size && !saving.size) return;
    const data = new FormData();
    data.set("csrf_token", form.elements.namedItem("csrf_token").value);
    data.set("do", "set");
    new Map([...saving, ...typed]).forEach(({ text }, name) => data.set(name, text)); // a request that is cut off too
    navigator.sendBeacon(form.action, data);
  });
  mark();
})();
