/* Drag and drop of builder rows within their level. The row functions are defined in app.js. */
(() => {
  "use strict";
  const { rowOf, owner, depth, group, changed } = window.rowsmith;
  let dragged = null;
  const clear = () => document.querySelectorAll(".over, .over-end").forEach((one) => one.classList.remove("over", "over-end"));
  document.addEventListener("dragstart", (event) => {
    dragged = event.target.matches?.(".grip") ? rowOf(event.target) : null;
    if (!dragged) return;
    event.dataTransfer.setDragImage(dragged, 10, 15);
    event.dataTransfer.effectAllowed = "move";
    dragged.classList.add("dragged");
  });
  document.addEventListener("dragover", (event) => {
    let over = dragged && rowOf(event.target);
    while (over && depth(over) > depth(dragged)) over = over.previousElementSibling;
    if (!over || over === dragged || owner(over) !== owner(dragged)) return;
    event.preventDefault();
    const box = over.getBoundingClientRect();
    clear();
    over.classList.add(event.clientY < box.top + box.height / 2 ? "over" : "over-end");
  });
  document.addEventListener("drop", (event) => {
    const over = dragged && document.querySelector(".over, .over-end");
    if (!over) return;
    event.preventDefault();
    if (over.matches(".over")) over.before(...group(dragged)); else group(over).at(-1).after(...group(dragged));
    changed();
  });
  document.addEventListener("dragend", () => { clear(); dragged?.classList.remove("dragged"); dragged = null; });
})();
