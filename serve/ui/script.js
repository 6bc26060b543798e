"use strict";
// Ctrl-Enter runs the statement.
const box = document.querySelector("textarea[name=q]");
if (box) box.addEventListener("keydown", e => {
  if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) box.form.requestSubmit();
});
// An example goes into the box.
for (const b of document.querySelectorAll("[data-example]")) b.addEventListener("click", () => {
  box.value = b.textContent;
  box.form.requestSubmit();
});
// A click on the head of a column sorts its table: numbers as numbers, and then the other way.
for (const head of document.querySelectorAll("th[data-sort]")) head.addEventListener("click", () => {
  const body = head.closest("table").tBodies[0], at = head.cellIndex;
  const sign = head.dataset.sort === "up" ? -1 : 1;
  for (const other of head.parentNode.cells) if (other !== head && "sort" in other.dataset) {
    other.dataset.sort = "";
    other.removeAttribute("aria-sort");
  }
  head.dataset.sort = sign > 0 ? "up" : "down";
  head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
  const of = row => row.cells[at].textContent;
  const rows = [...body.rows].sort((a, b) => {
    const x = Number(of(a)), y = Number(of(b));
    return sign * (of(a) !== "" && of(b) !== "" && !isNaN(x) && !isNaN(y) ? x - y
      : of(a).localeCompare(of(b)));
  });
  body.append(...rows);
});
// An address that ends in #sort=N has the first table sorted by its column N, from 0.
const sorted = /^#sort=(\d+)$/.exec(location.hash);
if (sorted) document.querySelectorAll("table th")[sorted[1]]?.click();
