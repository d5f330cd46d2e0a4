/* Remember the selected language of code samples. Arrow keys between tabs are handled in app.js. */
(() => {
  "use strict";
  const all = (query) => [...document.querySelectorAll(query)];
  const choose = (tab) => {
    const language = tab.dataset.language;
    all("[data-language]").forEach((one) => {
      const on = one.dataset.language === language;
      one.setAttribute("aria-selected", String(on));
      one.tabIndex = on ? 0 : -1;
      document.getElementById(one.getAttribute("aria-controls")).hidden = !on;
    });
    document.cookie = `language=${language};path=/docs;max-age=31536000;samesite=lax`;
  };
  document.addEventListener("click", ({ target }) => {
    const tab = target.closest("[data-language]");
    if (tab) choose(tab);
  });
  document.addEventListener("keydown", (event) => {
    if (!event.target.matches("[data-language]")) return;
    const end = { Home: "firstElementChild", End: "lastElementChild" }[event.key];
    if (end) {
      event.preventDefault();
      event.target.parentElement[end].focus();
    }
    if (end || /^Arrow(Left|Right)$/.test(event.key)) choose(document.activeElement);
  });
})();
