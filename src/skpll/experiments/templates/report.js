"use strict";

// Sorting: a click, Enter or the space bar on a column's button. Empty entries stay at the end.
function keyOf(row, column) {
  const text = row.cells[column].dataset.value;
  if (text === undefined) return null;
  const number = Number(text);
  return Number.isNaN(number) ? text : number;
}

function compareKeys(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), "en", { numeric: true });
}

function sortRows(table, column, direction) {
  const body = table.tBodies[0];
  const rows = Array.from(body.rows, (row, place) => ({ row, place, key: keyOf(row, column) }));
  rows.sort((a, b) => {
    if (a.key === null || b.key === null) {
      return (a.key === null) - (b.key === null) || a.place - b.place;
    }
    return direction * compareKeys(a.key, b.key) || a.place - b.place;
  });
  body.append(...rows.map((entry) => entry.row));
}

for (const table of document.querySelectorAll("table.sortable")) {
  const heads = Array.from(table.tHead.rows[0].cells);
  heads.forEach((head, column) => {
    head.querySelector("button").addEventListener("click", () => {
      const ascending = head.getAttribute("aria-sort") !== "ascending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
      sortRows(table, column, ascending ? 1 : -1);
    });
  });
}
