/* The editor of a scenario's program: syntax highlighting, completion, error markers. The form still submits the
   textarea, which is also used without JavaScript. */
(() => {
  "use strict";
  const area = document.getElementById("code"), form = document.getElementById("scenario");
  if (!area || !window.CodeMirror) return;
  const $$ = (query) => [...document.querySelectorAll(query)];
  const known = fetch(area.dataset.names).then((answer) => answer.json()).catch(() => ({
    client: [],
    names: [],
    words: [],
  }));
  const variables = area.dataset.variables.split(" ").filter(Boolean);
  let dirty = false, names = { client: [], names: [], words: [] }, later = 0;
  known.then((found) => {
    names = found;
  });

  // Completion: after a dot the members of the object, in quotes after environ the variables, else all names
  const owners = (text) =>
    new Set([
      "client",
      ...[...text.matchAll(/(\w+)\s*(?::[^=\n]*)?=\s*(?:rowsmith\.)?Client\(/g)].map((hit) => hit[1]),
    ]);
  const drawn = (one) => ({
    text: one.name,
    render: (item) => {
      item.append(one.name, one.args === undefined ? "" : `(${one.args})`);
      if (one.doc || one.from) {
        item.append(Object.assign(document.createElement("small"), { textContent: one.doc || one.from }));
      }
    },
  });
  const hint = (cm) => {
    const at = cm.getCursor(), line = cm.getLine(at.line).slice(0, at.ch), text = cm.getValue();
    const start = /\w*$/.exec(line)[0], before = line.slice(0, line.length - start.length), low = start.toLowerCase();
    const owner = /(\w+)\.$/.exec(before)?.[1],
      said = [...new Set(text.match(/[A-Za-z_]\w{2,}/g))].filter((word) => word !== start);
    const plain = (words) => words.map((name) => ({ name }));
    let list;
    if (/environ(?:\.get\(|\[)\s*["']$/.test(before)) list = plain(variables);
    else if (owner && owners(text).has(owner)) list = names.client;
    else if (owner === "rowsmith" || owner === "fields") list = names.names;
    else if (owner) {
      list = plain(
        [...new Set([...text.matchAll(/\.([A-Za-z_]\w*)/g)].map((hit) => hit[1]))].filter((word) => word !== start),
      );
    } else list = [...plain(said), ...names.names, ...plain(names.words)];
    const once = new Set(),
      fits = list.filter(({ name }) => name.toLowerCase().startsWith(low) && !once.has(name) && once.add(name));
    return { list: fits.slice(0, 200).map(drawn), from: CodeMirror.Pos(at.line, at.ch - start.length), to: at };
  };
  const complete = (cm) => cm.showHint({ hint, completeSingle: false });

  // Tab indents, except after Escape, so that keyboard users can leave the editor
  const keys = {
    "Ctrl-Space": complete,
    "Ctrl-/": "toggleComment",
    "Cmd-/": "toggleComment",
    Tab: (cm) => (cm.somethingSelected() ? cm.execCommand("indentMore") : cm.execCommand("insertSoftTab")),
    "Shift-Tab": "indentLess",
    Esc: (cm) => cm.setOption("extraKeys", { ...keys, Tab: false, "Shift-Tab": false }),
  };
  const editor = CodeMirror.fromTextArea(area, {
    mode: { name: "python", version: 3 },
    lineNumbers: true,
    indentUnit: 4,
    matchBrackets: true,
    autoCloseBrackets: true,
    inputStyle: "contenteditable",
    gutters: ["CodeMirror-linenumbers", "fault-gutter"],
    extraKeys: keys,
    readOnly: area.readOnly,
    screenReaderLabel: "Program",
    spellcheck: false,
    autocorrect: false,
    autocapitalize: false,
  });
  editor.getInputField().setAttribute("aria-describedby", "code-keys");
  editor.on("focus", () => editor.setOption("extraKeys", keys));
  editor.on("inputRead", (cm, change) => {
    if (change.text.at(-1) === ".") complete(cm);
  });
  editor.on("change", () => {
    touch();
    clearTimeout(later);
    later = setTimeout(() => {
      editor.save();
      htmx.trigger(document.body, "check");
    }, 700);
  });
  const touch = () => {
    dirty = true;
    $$("[data-dirty]").forEach((one) => {
      one.hidden = false;
    });
  };
  form.addEventListener("input", ({ target }) => {
    if (target.name === "name") touch();
  });

  // Error markers in the gutter
  let marked = [];
  const mark = () => {
    marked.forEach((line) => editor.removeLineClass(line, "wrap", "faulty"));
    editor.clearGutter("fault-gutter");
    marked = $$("[data-line]").map((item) => {
      const line = editor.getLineHandle(Number(item.dataset.line) - 1);
      if (!line) return null;
      const sign = Object.assign(document.createElement("span"), {
        className: "fault-mark",
        textContent: "▲",
        title: item.textContent.trim(),
      });
      editor.setGutterMarker(line, "fault-gutter", sign);
      return editor.addLineClass(line, "wrap", "faulty");
    }).filter(Boolean);
  };
  document.addEventListener("click", (event) => {
    const link = event.target.closest("[data-goto]");
    if (!link) return;
    event.preventDefault();
    editor.setCursor(Number(link.dataset.goto) - 1, 0);
    editor.focus();
  });

  // Saving and running: submit the form, including the latest keystrokes
  area.required = false; // the browser cannot show a message at a hidden textarea; the server validates it
  const input = editor.display.input;
  document.addEventListener("submit", (event) => {
    if (input.readDOMTimeout) {
      clearTimeout(input.readDOMTimeout);
      input.readDOMTimeout = null;
      input.updateFromDOM();
    }
    editor.save();
    if (event.target !== form) dirty = false;
    else if (!form.hasAttribute("hx-post")) dirty = false;
  }, true);
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key === "Enter" && document.getElementById("run")) {
      event.preventDefault();
      document.getElementById("run").click();
    }
  });
  document.addEventListener("saved", () => {
    dirty = false;
    clearTimeout(later);
  });
  document.addEventListener("htmx:beforeOnLoad", ({ detail }) => {
    if (detail.xhr.getResponseHeader("HX-Redirect")) dirty = false;
  });
  document.addEventListener("htmx:afterSettle", () => {
    mark();
    if (dirty) touch();
  });
  addEventListener("beforeunload", (event) => {
    if (dirty) event.preventDefault();
  });
  mark();
})();
