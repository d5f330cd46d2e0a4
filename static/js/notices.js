/* Notifications about finished jobs, if enabled in this browser: a system notification, and a count in the title of
   hidden tabs. One tab polls for all tabs. */
(() => {
  "use strict";
  const EVERY = 30000, on = () => localStorage.getItem("notices") === "on";
  let marks = 0;
  const mark = () => {
    document.title = (marks ? `(${marks}) ` : "") + document.title.replace(/^\(\d+\) /, "");
  };
  const tell = ({ id, text, href }) => {
    if (!document.hidden && location.pathname === href) return; // the user is looking at this page
    if (document.hidden) {
      marks += 1;
      mark();
    }
    if (globalThis.Notification?.permission !== "granted") return;
    // The tag prevents duplicates from several tabs.
    const shown = new Notification("Rowsmith", { body: text, tag: id });
    shown.onclick = () => {
      globalThis.focus();
      location.assign(href);
    };
  };
  const look = async () => {
    const since = localStorage.getItem("notices-since");
    const answer = await fetch(`/notices${since ? `?since=${encodeURIComponent(since)}` : ""}`);
    if (!answer.ok || answer.redirected) return; // signed out, or busy
    const { now, items } = await answer.json();
    localStorage.setItem("notices-since", now);
    items.forEach(tell);
  };
  const loop = async () => {
    while (on()) {
      await look().catch(() => {}); // offline: the next request uses the same start time
      await new Promise((done) => {
        setTimeout(done, EVERY);
      });
    }
  };
  const begin = () => (navigator.locks ? navigator.locks.request("notices", loop) : loop());
  const draw = () =>
    document.querySelectorAll("[data-notify]").forEach((button) => {
      button.dataset.ready = "";
      button.setAttribute("aria-pressed", String(on()));
      const denied = on() && globalThis.Notification?.permission !== "granted";
      button.title = denied
        ? "This browser shows no notifications of this site: the tab's title has a number instead"
        : "";
    });
  document.addEventListener("click", async ({ target }) => {
    if (!target.closest("[data-notify]")) return;
    const was = on();
    localStorage.setItem("notices", was ? "off" : "on");
    localStorage.removeItem("notices-since");
    if (!was) {
      await globalThis.Notification?.requestPermission();
      begin();
    }
    draw();
  });
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) {
      marks = 0;
      mark();
    }
  });
  document.addEventListener("htmx:load", draw);
  document.addEventListener("DOMContentLoaded", () => {
    draw();
    if (on()) begin();
  });
})();
