"use strict";
// Sorts a table by the column whose head is pressed: largest first, and smallest first when it is pressed again.

function value(row, column) {
  const cells = [...row.children];
  // A row that does not verify has one cell in place of its accuracies.
  const spread = cells.flatMap((cell) => Array(cell.colSpan).fill(cell));
  const text = spread[column].dataset.value;
  const number = Number(text);
  return text !== "" && Number.isFinite(number) ? number : text;
}

function compare(a, b) {
  return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
}

for (const button of document.querySelectorAll(".board thead button")) {
  button.addEventListener("click", () => {
    const head = button.parentElement;
    const table = head.closest("table");
    const column = [...head.parentElement.children].indexOf(head);
    const numeric = typeof value(table.tBodies[0].rows[0], column) === "number";
    const before = head.getAttribute("aria-sort");
    const order = before ? (before === "descending" ? "ascending" : "descending") : numeric ? "descending" : "ascending";
    for (const other of head.parentElement.children) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", order);
    const sign = order === "ascending" ? 1 : -1;
    const rows = [...table.tBodies[0].rows].sort((a, b) => sign * compare(value(a, column), value(b, column)));
    table.tBodies[0].append(...rows);
    document.getElementById("sorted").textContent = `Sorted by ${button.textContent}, ${order}.`;
  });
}
