// A click on a heading sorts its table; a second click reverses the order. Rows without a number stay last.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, index) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach(other => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const key = row => row.cells[index].dataset.key;
      const numbers = head.classList.contains("n");
      const compare = (a, b) => {
        if (!numbers) return (down ? -1 : 1) * key(a).localeCompare(key(b));
        const x = Number(key(a)), y = Number(key(b));
        if (!Number.isFinite(x) || !Number.isFinite(y)) return Number.isFinite(y) - Number.isFinite(x);
        return (down ? -1 : 1) * (x - y);
      };
      const body = table.tBodies[0];
      body.append(...[...body.rows].sort(compare));
    });
  });
}
