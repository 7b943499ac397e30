// Sorts a table by the column whose head is clicked: first down, then up; without numbers last.
"use strict";

function numberIn(cell) {
  const found = cell.textContent.replace(/,/g, "").match(/^\s*[-+]?\d+(\.\d+)?(e[-+]?\d+)?/);
  return found ? Number(found[0]) : null;
}

function compare(one, other, column, numeric) {
  const [a, b] = [one, other].map((row) => row.cells[column]);
  if (!numeric) return a.textContent.localeCompare(b.textContent);
  const [x, y] = [numberIn(a), numberIn(b)];
  return x === null || y === null ? null : x - y;
}

function sortBy(table, head) {
  const rows = [...table.tBodies[0].rows], column = head.cellIndex;
  const numeric = rows.some((row) => numberIn(row.cells[column]) !== null);
  const first = numeric ? "descending" : "ascending";
  const way = head.ariaSort === first ? (numeric ? "ascending" : "descending") : first;
  for (const other of head.parentNode.cells) other.ariaSort = null;
  head.ariaSort = way;
  const sign = way === "ascending" ? 1 : -1;
  rows.sort((one, other) => {
    const order = compare(one, other, column, numeric);
    if (order !== null) return sign * order;
    return (numberIn(one.cells[column]) === null) - (numberIn(other.cells[column]) === null);
  });
  table.tBodies[0].append(...rows);
}

for (const table of document.querySelectorAll("table")) {
  if (!table.tHead || table.tBodies[0].rows.length < 2) continue;
  for (const head of table.tHead.rows[0].cells) {
    head.tabIndex = 0;
    head.title = "sort by this column";
    head.addEventListener("click", () => sortBy(table, head));
    head.addEventListener("keydown", (event) => {
      if (event.key === "Enter") sortBy(table, head);
    });
  }
}
