// What every part uses, and tables that sort.

const report = JSON.parse(document.getElementById("report-data").textContent);
const $ = (id) => document.getElementById(id);

function make(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value !== undefined && value !== null && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  // Texts only: whatever a text holds, it is never read as HTML.
  for (const child of children.flat(Infinity)) if (child !== null && child !== undefined) node.append(child);
  return node;
}

function choice(label, options, onchange) {
  const select = make("select", {}, options.map((text, at) => make("option", { value: at }, text)));
  select.addEventListener("change", () => onchange(Number(select.value)));
  return make("label", {}, label, select);
}

let made = 0;

function headings(table) {
  const group = make("tr", {}, make("td", {}));
  const grouped = table.columns.some((column) => column[2]);
  for (let at = 0; at < table.columns.length; ) {
    let end = at + 1;
    while (end < table.columns.length && table.columns[end][2] === table.columns[at][2]) end += 1;
    const name = table.columns[at][2];
    group.append(name ? make("th", { scope: "colgroup", colspan: end - at, class: "group" }, name) : make("td", { colspan: end - at }));
    at = end;
  }
  group.querySelectorAll("td").forEach((cell) => { cell.style.background = "var(--surface)"; });
  const row = make("tr", {});
  ["Model", ...table.columns.map((column) => column[0])].forEach((label, at) => {
    const about = at ? table.columns[at - 1][1] : "sort by name";
    const group = at ? table.columns[at - 1][2] : "";
    const named = group ? `${group} ${label}` : label;
    const button = make("button", { type: "button", title: about, "aria-label": named }, label, make("span", { class: "arrow", "aria-hidden": "true" }, "↕"));
    row.append(make("th", { scope: "col", "aria-sort": "none" }, button));
  });
  return make("thead", {}, grouped ? group : null, row);
}

function line(row) {
  const [label, kind, source, cells] = row;
  const name = make("th", { scope: "row" }, label);
  if (kind === "published") name.append(make("span", { class: "badge" }, "published"), make("span", { class: "source" }, source));
  const out = make("tr", { class: kind }, name);
  cells.forEach(([value, text, interval, best]) => {
    const classes = value === null ? "missing" : best ? "best" : undefined;
    out.append(make("td", { class: classes }, text, interval ? make("span", { class: "interval" }, interval) : null));
  });
  return out;
}

// A wide table scrolls inside its box, which fades out where there is more of it.
function boxed(name, table) {
  const box = make("div", { class: "box", role: "region", tabindex: "0", ...name }, table);
  const look = () => box.classList.toggle("more", box.scrollLeft + box.clientWidth < box.scrollWidth - 1);
  box.addEventListener("scroll", look, { passive: true });
  new ResizeObserver(look).observe(box);
  return box;
}

function renderTable(table) {
  const id = `table-${(made += 1)}`;
  const head = headings(table);
  const fixed = table.rows.filter((row) => row[1] === "chance");
  const rows = table.rows.filter((row) => row[1] !== "chance");
  const lines = new Map(rows.map((row) => [row, line(row)]));
  const body = make("tbody", {}, [...lines.values()]);
  const caption = make("caption", { id }, make("span", {}, table.caption));
  const node = make("table", {}, caption, head, fixed.length ? make("tbody", {}, fixed.map(line)) : null, body);
  const heads = [...head.lastElementChild.children];
  heads.forEach((cell, at) => cell.firstElementChild.addEventListener("click", () => {
    const descending = cell.getAttribute("aria-sort") === "none" ? at > 0 : cell.getAttribute("aria-sort") === "ascending";
    heads.forEach((other) => {
      other.setAttribute("aria-sort", other === cell ? (descending ? "descending" : "ascending") : "none");
      other.querySelector(".arrow").textContent = other === cell ? (descending ? "▼" : "▲") : "↕";
    });
    const sign = descending ? -1 : 1;
    const order = [...rows].sort((a, b) => {
      if (!at) return sign * a[0].localeCompare(b[0]);
      const [x, y] = [a[3][at - 1][0], b[3][at - 1][0]];
      if (x === null || y === null) return (x === null) - (y === null);
      return sign * (x - y) || a[0].localeCompare(b[0]);
    });
    body.replaceChildren(...order.map((row) => lines.get(row)));
    $("announcement").textContent = `sorted by ${cell.firstElementChild.getAttribute("aria-label")}, ${descending ? "highest" : "lowest"} first`;
  }));
  const box = boxed({ "aria-labelledby": id }, node);
  const words = make("dl", {}, table.columns.map((column) => [
    make("dt", {}, column[2] ? `${column[2]}: ${column[0]}` : column[0]), make("dd", {}, column[1]),
  ]));
  const glossary = make("details", { class: "glossary" }, make("summary", {}, "What the columns mean"), words);
  const notes = table.notes.length ? make("ul", { class: "notes" }, table.notes.map((note) => make("li", {}, note))) : null;
  return make("div", {}, box, glossary, notes);
}
