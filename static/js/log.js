/* The log of a run in real time: lines are rendered in batches, a few thousand are kept on the page, and the view
   follows the end until the user scrolls up. Line numbers are permanent links. */
(() => {
  "use strict";
  const box = document.getElementById("log");
  if (!box) return;
  const MOST = 5000, BATCH = 1000, LONG = 4000; // lines on the page; lines per frame; characters per line
  const make = (tag, more) => Object.assign(document.createElement(tag), more);
  const list = box.querySelector(".lines"), newer = box.querySelector("[data-newer]");
  const [button, state, counter] = ["follow", "log-state", "log-count"].map((id) => document.getElementById(id));
  const number = (item) => (item ? Number(item.id.slice(1)) : 0),
    first = () => number(list.firstElementChild),
    last = () => number(list.lastElementChild);
  const escapes = /\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[@-_]|[\x00-\x08\x0b-\x1f\x7f-\x9f]/g;
  const wanted = () => (/^#L\d+$/.test(location.hash) ? Number(location.hash.slice(2)) : 0);
  let open = "open" in box.dataset, following = open && !wanted() && !box.dataset.at;
  let waiting = [],
    asked = false,
    begun = false,
    total = Number(counter.textContent.replace(/\D/g, "")),
    source = null,
    put = 0; // put: scroll position set by this script

  const piece = async (query) => {
    const answer = await fetch(`${box.dataset.pieces}?${query}`, { headers: { "HX-Request": "true" } });
    if (!answer.ok) throw new Error(`The server answered ${answer.status}.`);
    return [...make("template", { innerHTML: await answer.text() }).content.querySelectorAll("li")];
  };
  const say = (text) => {
      state.textContent = text;
    },
    soon = () => {
      if (!asked) {
        asked = true;
        requestAnimationFrame(draw);
      }
    };
  const place = (top) => {
    box.scrollTop = top;
    put = box.scrollTop;
  };
  const tell = () => { // update the line count and the links to older and newer lines
    counter.textContent = `${total.toLocaleString("en")} lines`;
    newer.hidden = (open && following) || last() >= total;
    button.hidden = !open || following;
    const older = box.querySelector("[data-older]");
    if (first() <= 1) older?.parentElement.remove();
    else if (!older) {
      list.insertAdjacentHTML(
        "beforebegin",
        "<p class=\"more\"><a class=\"btn s\" data-older href=\"#log\">Older lines</a></p>",
      );
    }
    if (open) say(following ? "Following new lines" : "Paused because you scrolled up");
  };

  // New lines: those that directly follow the page's lines are rendered, a batch per frame; others are only counted.
  const drawn = (at, text) => {
    const plain = text.replace(escapes, ""), item = make("li", { id: `L${at}` }), over = plain.length - LONG;
    const textContent = over > 0 ? `${plain.slice(0, LONG)} … and ${over.toLocaleString("en")} characters more` : plain;
    item.append(
      make("a", { href: `#L${at}`, textContent: at, tabIndex: -1, ariaLabel: `Line ${at}` }),
      make("span", { textContent }),
    );
    return item;
  };
  const draw = () => {
    asked = false;
    const part = document.createDocumentFragment(), behind = following && waiting.length - MOST;
    if (behind > 0) {
      waiting.splice(0, behind);
      list.replaceChildren();
    } // these lines would be removed again immediately
    let next = behind > 0 ? waiting[0][0] : last() + 1, room = following ? BATCH : MOST - list.children.length;
    for (const [at, text] of waiting.splice(0, BATCH)) {
      if (at !== next || room-- <= 0) continue;
      part.append(drawn(at, text));
      next += 1;
    }
    list.append(part);
    if (list.children.length) box.querySelector(".none")?.remove();
    if (following) {
      for (let over = list.children.length - MOST; over > 0; over -= 1) list.firstElementChild.remove();
      place(box.scrollHeight);
    }
    tell();
    if (waiting.length) soon();
  };

  const more = async (up) => {
    const top = first(), from = up ? Math.max(1, top - 500) : last() + 1, was = box.scrollHeight - box.scrollTop;
    const found = await piece(`first=${from}&most=${up ? top - from : 500}`);
    if (up) list.prepend(...found);
    else list.append(...found.filter((item) => number(item) > last()));
    if (up) place(box.scrollHeight - was);
    tell();
  };
  const show = async (at) => { // show a line with the lines around it, loading them if necessary
    following = false;
    if (!document.getElementById(`L${at}`)) {
      list.replaceChildren(...await piece(`first=${Math.max(1, at - 50)}&most=200`));
    }
    const item = document.getElementById(`L${at}`);
    [...list.children].forEach((one) => one.classList.toggle("at", one === item));
    if (item) place(item.offsetTop - box.clientHeight / 3);
    tell();
  };
  const follow = async () => {
    if (last() < total) list.replaceChildren(...await piece("most=500"));
    following = true;
    place(box.scrollHeight);
    tell();
  };
  const listen = () => {
    source = new EventSource(`${box.dataset.follow}?after=${last()}`);
    source.addEventListener("log", (event) => {
      total = Math.max(total, Number(event.lastEventId));
      // The state on the page is older than the line.
      if (!begun && document.querySelector("#work [data-status=queued]")) htmx.trigger(document.body, "begun");
      begun = true;
      waiting.push([Number(event.lastEventId), event.data]);
      soon();
    });
    source.addEventListener("end", () => {
      open = false;
      source.close();
      say("End of log.");
      soon();
      htmx.trigger(document.body, "ended");
    });
    Object.assign(source, { onopen: tell, onerror: () => open && say("Connection lost. Reconnecting …") });
  };

  box.addEventListener("scroll", () => {
    const low = box.scrollHeight - box.scrollTop - box.clientHeight < 12;
    if (!open || (following ? low || box.scrollTop >= put - 4 : !low || last() < total)) return;
    following = !following;
    tell();
  });
  document.addEventListener("click", (event) => {
    const at = (query) => event.target.closest(query);
    const stop = (act) => {
      event.preventDefault();
      act().catch((error) => say(error.message));
    };
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    const link = at("[data-line-link], .lines a");
    if (at("#follow")) stop(follow);
    else if (at("[data-older], [data-newer]")) stop(() => more(!at("[data-newer]")));
    else if (link) {
      history.replaceState(null, "", link.hash);
      stop(() => show(wanted()));
    }
  });
  addEventListener("hashchange", () => {
    if (wanted()) show(wanted());
  });
  addEventListener("pagehide", () => source?.close());
  if (wanted()) show(wanted());
  else if (!box.dataset.at) place(box.scrollHeight);
  if (open) listen();
  tell();
})();
