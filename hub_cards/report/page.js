// The page: its benchmarks, how it is printed, and its start.

function clear(node) {
  node.querySelectorAll(".plot").forEach((plot) => { watcher.unobserve(plot); if (drawn.delete(plot)) Plotly.purge(plot); });
  node.replaceChildren();
}

function renderFamily(family) {
  const root = $(family.id);
  const body = make("div", {});
  const show = (at) => {
    const place = family.places[at];
    clear(body);
    body.append(...[charts(place.charts), renderTable(place.table)].filter(Boolean));
  };
  if (family.places.length > 1) {
    root.append(make("div", { class: "choices" }, choice("Task", family.places.map((place) => place.label), show)));
  }
  root.append(body);
  show(0);
  if (family.charts.length) root.append(make("h3", {}, "Across the formats of tables"), charts(family.charts));
}

// ---- on paper ----

let opened = [];

// The browser lays out the sheets from what stands here when this has run: nothing is drawn or measured later.
window.addEventListener("beforeprint", () => {
  root.classList.add("printing");
  opened = [...document.querySelectorAll("details.glossary:not([open])")];
  opened.forEach((details) => { details.open = true; });
  document.querySelectorAll(".plot").forEach((plot) => { watcher.unobserve(plot); draw(plot, plot.chart); });
  document.querySelectorAll(".box > table").forEach((table) => {
    const [room, width] = [table.parentElement.clientWidth, table.offsetWidth];
    if (width > room) table.style.zoom = room / width;
  });
});
window.addEventListener("afterprint", () => {
  root.classList.remove("printing");
  opened.forEach((details) => { details.open = false; });
  document.querySelectorAll(".box > table").forEach((table) => { table.style.zoom = ""; });
  drawn.forEach((chart, plot) => { Plotly.purge(plot); draw(plot, chart); });
});

// ---- start ----

$("overview-table").append(renderTable(report.overview));
report.families.forEach(renderFamily);
if (report.sheets.length) renderQueries();
root.dataset.ready = "yes";
