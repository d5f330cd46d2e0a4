/* Uploads with progress. Without JavaScript, the form uploads its files itself. */
(() => {
  "use strict";
  const form = document.getElementById("upload"), list = document.getElementById("uploads");
  const input = form.elements.file, most = Number(form.dataset.most);
  const make = (tag, more) => Object.assign(document.createElement(tag), more);
  const button = (text, onclick) => make("button", { type: "button", className: "btn s", textContent: text, onclick });
  const row = (file) => {
    const item = make("li"),
      bar = make("progress", { max: 1, value: 0 }),
      told = make("span", { className: "muted small num" });
    bar.setAttribute("aria-label", `Upload of ${file.name}`);
    item.append(make("b", { textContent: file.name }), bar, told);
    list.append(item);
    list.hidden = false;
    return { item, bar, told };
  };
  const leave = (item) => {
    item.remove();
    list.hidden = !list.children.length;
  };
  const failed = ({ item, bar, told }, text, ...more) => {
    bar.remove();
    told.textContent = text;
    told.className = "err";
    item.append(
      ...more,
      button("Dismiss", () => {
        leave(item);
        input.focus();
      }),
    );
  };
  const reason = (xhr) => {
    const page = new DOMParser().parseFromString(xhr.responseText || "", "text/html");
    return page.body.textContent.trim().replace(/\s+/g, " ").slice(0, 300) || `The server answered ${xhr.status}.`;
  };
  const refresh = () => htmx.ajax("GET", location.pathname + location.search, { target: "#list", swap: "innerHTML" });

  // Upload one file; `over`: replace an existing file with the same name.
  const send = (file, folder, over) =>
    new Promise((done) => {
      const parts = row(file), data = new FormData(), xhr = new XMLHttpRequest();
      if (file.size > most) {
        failed(
          parts,
          `A file may have ${most.toLocaleString("en")} bytes; this one has ${file.size.toLocaleString("en")}.`,
        );
        return done();
      }
      data.append("folder", folder);
      if (form.elements.shared?.checked) data.append("shared", "true");
      data.append("file", file, file.name);
      xhr.open("POST", form.action);
      xhr.setRequestHeader("X-CSRFToken", form.elements.csrf_token.value);
      xhr.setRequestHeader("HX-Request", "true");
      xhr.setRequestHeader("Accept", "text/html");
      if (!over) xhr.setRequestHeader("If-None-Match", "*");
      const stop = button("Cancel", () => xhr.abort());
      parts.item.append(stop);
      xhr.upload.onprogress = ({ loaded, total }) => {
        parts.bar.value = loaded / total;
        parts.told.textContent = `${Math.round((100 * loaded) / total)} %`;
      };
      xhr.onloadend = () => {
        stop.remove();
        if (xhr.status >= 200 && xhr.status < 300) leave(parts.item);
        else if (xhr.status === 412) {
          failed(
            parts,
            "There is a file of this name.",
            button("Replace it", () => {
              leave(parts.item);
              upload([file], true, folder);
            }),
          );
        } else if (xhr.status === 401) failed(parts, "You are signed out. Load the page again.");
        else if (xhr.status) failed(parts, reason(xhr));
        else {failed(
            parts,
            "It did not arrive.",
            button("Try again", () => {
              leave(parts.item);
              upload([file], over, folder);
            }),
          );}
        done();
      };
      xhr.send(data);
    });

  let line = Promise.resolve(); // one upload at a time
  const upload = (files, over, folder = form.elements.folder.value) => {
    [...files].forEach((file) => {
      line = line.then(() => send(file, folder, over));
    });
    line = line.then(refresh);
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    upload(input.files);
    form.elements.file.value = "";
  });
  input.addEventListener("change", () => form.requestSubmit());
  const carries = (event) => event.dataTransfer?.types.includes("Files");
  document.addEventListener("dragover", (event) => {
    if (carries(event)) {
      event.preventDefault();
      form.classList.add("over");
    }
  });
  document.addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) form.classList.remove("over");
  });
  document.addEventListener("drop", (event) => {
    if (!carries(event)) return;
    event.preventDefault();
    form.classList.remove("over");
    upload([...event.dataTransfer.files]);
  });
})();
