"use strict";
(() => {
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

  // ---- tables ----------------------------------------------------------------------------------------------

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

  // The highest value of each column, or null where it says nothing: page.html tells the reader the rule.
  function best(table) {
    const ends = (cell) => cell[2].match(/-?[\d.]+/g).map(Number);
    return table.columns.map(([, , , kind, comparable], at) => {
      const cellsOf = (whose) => table.rows.filter((row) => row[1] === whose).map((row) => row[3][at]).filter((cell) => cell[0] !== null);
      const own = cellsOf("own").sort((a, b) => b[0] - a[0]);
      if (kind !== "score" || !comparable || own.length < 2) return null;
      const [first, ...others] = own;
      const above = first[0] > Math.max(0, ...cellsOf("chance").map((cell) => cell[0]));
      const apart = others.every((other) => (first[2] && other[2] ? ends(first)[0] > ends(other)[1] : first[0] > other[0]));
      return above && apart ? first[0] : null;
    });
  }

  function line(row, highest) {
    const [label, kind, source, cells] = row;
    const name = make("th", { scope: "row" }, label);
    if (kind === "published") name.append(make("span", { class: "badge" }, "published"), make("span", { class: "source" }, source));
    const out = make("tr", { class: kind }, name);
    cells.forEach(([value, text, interval], at) => {
      const classes = value === null ? "missing" : kind === "own" && value === highest[at] ? "best" : undefined;
      out.append(make("td", { class: classes }, text, interval ? make("span", { class: "interval" }, interval) : null));
    });
    return out;
  }

  function renderTable(table) {
    const id = `table-${(made += 1)}`;
    const head = headings(table);
    const highest = best(table);
    const fixed = table.rows.filter((row) => row[1] === "chance");
    const rows = table.rows.filter((row) => row[1] !== "chance");
    const lines = new Map(rows.map((row) => [row, line(row, highest)]));
    const body = make("tbody", {}, [...lines.values()]);
    const caption = make("caption", { id }, make("span", {}, table.caption));
    const node = make("table", {}, caption, head, fixed.length ? make("tbody", {}, fixed.map((row) => line(row, highest))) : null, body);
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
    const box = make("div", { class: "box", role: "region", "aria-labelledby": id, tabindex: "0" }, node);
    const words = make("dl", {}, table.columns.map((column) => [
      make("dt", {}, column[2] ? `${column[2]}: ${column[0]}` : column[0]), make("dd", {}, column[1]),
    ]));
    const glossary = make("details", { class: "glossary" }, make("summary", {}, "What the columns mean"), words);
    const notes = table.notes.length ? make("ul", { class: "notes" }, table.notes.map((note) => make("li", {}, note))) : null;
    return make("div", {}, box, glossary, notes);
  }

  // ---- figures ---------------------------------------------------------------------------------------------

  const SHAPES = {
    "circle": "M6.5 1a5.5 5.5 0 1 0 .01 0z", "square": "M1.5 1.5h10v10h-10z", "diamond": "M6.5 0l6.5 6.5-6.5 6.5L0 6.5z",
    "triangle-up": "M6.5 1l6 11H.5z", "triangle-down": "M6.5 12l6-11H.5z", "cross": "M4.5 0h4v4.5H13v4H8.5V13h-4V8.5H0v-4h4.5z",
    "x": "M2.5 0L6.5 4 10.5 0 13 2.5 9 6.5l4 4L10.5 13l-4-4-4 4L0 10.5l4-4-4-4z",
    "star": "M6.5 0l2 4.5 4.5.5-3.5 3.200 1 4.800-4-2.5-4 2.5 1-4.800L0 5l4.5-.5z", "hexagon": "M3.5 1h6l3 5.5-3 5.5h-6l-3-5.5z",
  };

  const OUTLINES = { "hollow": {}, "dotted": { "stroke-dasharray": "2 2" } };  // of published points and lines
  Object.assign(SHAPES, { "hollow": SHAPES.circle, "dotted": "M0 6.5h13", "bar": "M0 3h13v7H0z" });

  function swatch(colour, symbol) {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("viewBox", "0 0 13 13");
    svg.setAttribute("aria-hidden", "true");
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    path.setAttribute("d", SHAPES[symbol] || SHAPES.circle);
    const outline = OUTLINES[symbol];
    const look = outline ? { fill: "none", stroke: colour, "stroke-width": "1.6", ...outline } : { fill: colour };
    for (const [name, value] of Object.entries(look)) path.setAttribute(name, value);
    svg.append(path);
    return svg;
  }

  const root = document.documentElement;
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const drawn = new Map();

  function layoutOf(chart, width) {
    const colour = (name) => getComputedStyle(root).getPropertyValue(name).trim();
    const axis = (given) => ({
      automargin: true, gridcolor: colour("--grid"), linecolor: colour("--line"), tickcolor: colour("--line"), ...given,
      title: given.title ? { ...given.title, standoff: 12, font: { size: 13 } } : undefined,
    });
    const narrow = width < 520;
    const yaxis = axis(chart.figure.layout.yaxis || {});
    if (narrow && yaxis.ticktext) yaxis.ticktext = yaxis.ticktext.map((text) => (text.length > 15 ? `…${text.slice(-14)}` : text));
    return {
      ...chart.figure.layout, xaxis: axis(chart.figure.layout.xaxis || {}), yaxis,
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", showlegend: false, dragmode: false, hovermode: "closest",
      font: { family: "system-ui, sans-serif", size: narrow ? 11 : 12, color: colour("--fg") },
      hoverlabel: { bgcolor: colour("--surface"), bordercolor: colour("--line"), font: { color: colour("--fg") }, namelength: -1 },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: colour("--muted"), activecolor: colour("--accent") },
      margin: { l: 48, r: 18, t: 30, b: 44 },
    };
  }

  // The library takes a second to start, so it starts after the tables are there, and only if there is a figure.
  function startPlotly() {
    if (window.Plotly) return;
    document.head.append(make("script", {}, $("plotly-source").textContent));
    $("plotly-source").remove();
  }

  // The intervals of many points would cover the points.
  function crowded(chart) {
    return chart.figure.data.filter((trace) => trace.type === "scatter" && (trace.error_x || trace.error_y)).length > 10;
  }

  function draw(node, chart) {
    startPlotly();
    drawn.set(node, chart);
    const config = { responsive: true, displaylogo: false, modeBarButtons: [["toImage"]] };
    const fg = getComputedStyle(root).getPropertyValue("--fg").trim();
    // Bars of their own colour would hide an interval.
    const data = chart.figure.data.map((trace) => (trace.type === "bar" && trace.error_x ? { ...trace, error_x: { ...trace.error_x, color: fg } } : trace));
    const layout = layoutOf(chart, node.clientWidth);
    if (root.classList.contains("printing")) layout.width = node.clientWidth;
    Plotly.react(node, data, layout, config);
    if (!crowded(chart)) return;
    const traceOf = (event) => node.querySelector(`.trace${event.points[0].fullData.uid}`);
    node.removeAllListeners("plotly_hover").on("plotly_hover", (event) => traceOf(event).classList.add("pointed"));
    node.removeAllListeners("plotly_unhover").on("plotly_unhover", (event) => traceOf(event).classList.remove("pointed"));
  }

  // Only what comes into sight is drawn, so that a page of many figures opens at once.
  const watcher = new IntersectionObserver((seen) => seen.filter((one) => one.isIntersecting).forEach((one) => {
    watcher.unobserve(one.target);
    draw(one.target, one.target.chart);
  }), { rootMargin: "400px" });
  dark.addEventListener("change", () => drawn.forEach((chart, node) => draw(node, chart)));

  function publishedMark(chart) {
    if (!chart.published) return null;
    const { data } = chart.figure;
    const symbol = data.some((trace) => trace.type === "bar") ? "bar" : data.some((trace) => trace.mode === "lines") ? "dotted" : "hollow";
    return make("li", {}, swatch("#8a8f98", symbol), `published values (${chart.published}), in grey`);
  }

  function legend(chart) {
    const models = chart.legend.map(([name, colour, symbol]) => make("li", {}, swatch(colour, symbol), name));
    const published = publishedMark(chart);
    const list = (...entries) => make("ul", { class: "legend" }, entries);
    if (models.length <= 16) return models.length || published ? list(models, published) : null;
    const folded = make("details", { class: "glossary" }, make("summary", {}, "Colours and symbols of the models"), list(models));
    return make("div", {}, published ? list(published) : null, folded);
  }

  function renderChart(chart) {
    const about = chart.about + (crowded(chart) ? " Intervals are faint; point at a model to see its own." : "");
    const plot = make("div", { class: crowded(chart) ? "plot crowded" : "plot", role: "img", "aria-label": `${chart.title}. ${about}` });
    plot.style.minHeight = `${chart.figure.layout.height}px`;
    plot.chart = chart;
    const figure = make("figure", { class: chart.tall ? "tall" : undefined }, make("h3", {}, chart.title), make("figcaption", { class: "about" }, about), plot,
      legend(chart));
    watcher.observe(plot);
    return figure;
  }

  function charts(listed) {
    return listed.length ? make("div", { class: "charts" }, listed.map(renderChart)) : null;
  }

  // ---- benchmarks ------------------------------------------------------------------------------------------

  function choice(label, options, onchange) {
    const select = make("select", {}, options.map((text, at) => make("option", { value: at }, text)));
    select.addEventListener("change", () => onchange(Number(select.value)));
    return make("label", {}, label, select);
  }

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

  // ---- single queries --------------------------------------------------------------------------------------

  function toneOf(kind) {
    return kind.startsWith("relevant") || kind === "target" ? "good" : "bad";
  }

  // Whether it is good that a document moved up depends on what it is; of one without a judgement nobody knows.
  function moved(before, now, kind) {
    if (before === now) return make("span", { class: "move" }, "= same rank");
    const up = before === null || before > now;
    const tone = kind ? (up === (toneOf(kind) === "good") ? " good" : " bad") : "";
    return make("span", { class: `move${tone}` }, before === null ? "was not ranked" : `${up ? "▲" : "▼"} from ${before}`);
  }

  function tag(kind) {
    if (!kind) return null;
    const tone = toneOf(kind);
    return make("span", { class: `what ${tone}` }, `${tone === "good" ? "✓" : "✕"} ${kind}`);
  }

  function kindsOf(condition) {
    const out = new Map();
    for (const [kind, documents] of Object.entries(condition.k)) documents.forEach((one) => out.set(one, kind));
    return out;
  }

  function outcome(pairs) {
    return pairs && pairs.length ? make("p", { class: "outcome" }, pairs.map(([name, value]) => `${name} ${value}`).join(" · ")) : null;
  }

  function ranking(sheet, condition, shown) {
    const kinds = kindsOf(condition);
    const items = shown.t.map((one, at) => {
      const [id, text] = sheet.docs[one];
      return make("li", {}, shown.r ? moved(shown.r[at], at + 1, kinds.get(one)) : null, tag(kinds.get(one)), make("code", {}, id),
        text ? make("span", { class: "excerpt" }, text) : null);
    });
    return make("div", {}, make("h5", {}, condition.l), outcome(shown.s), make("ol", {}, items));
  }

  function traced(sheet, item, run) {
    if (!run.x) return null;
    const followir = sheet.family === "FollowIR";
    const kinds = kindsOf(item.c[item.c.length - 1]);
    const rank = (value) => (value === null ? "not ranked" : String(value));
    const rows = run.x.map(([one, ...ranks]) => {
      const movement = followir && ranks[0] !== null && ranks[1] !== null ? ranks[1] - ranks[0] : null;
      const told = movement === null ? "" : movement === 0 ? "did not move" : movement > 0 ? `${movement} down, as it should` : `${-movement} up`;
      return make("tr", {}, make("th", { scope: "row" }, sheet.docs[one][0]), make("td", {}, followir ? told : kinds.get(one) || ""),
        ranks.map((value) => make("td", {}, rank(value))));
    });
    const heads = followir ? ["Excluded document", "moved", "original", "changed"] : ["Table of the group", "what it is", "rank"];
    const left = run.n - run.x.length;
    const caption = (followir ? "Documents that the changed instruction excludes, and their ranks" : "The group and its ranks") +
      (left > 0 ? `; ${left} more of ${run.n} are left out` : "");
    return make("div", { class: "box", role: "region", tabindex: "0", "aria-label": caption }, make("table", {}, make("caption", {}, make("span", {}, caption)),
      make("thead", {}, make("tr", {}, heads.map((head) => make("th", { scope: "col" }, head)))), make("tbody", {}, rows)));
  }

  function renderRun(sheet, item, run) {
    const rankings = item.c.map((condition, at) => ranking(sheet, condition, run.c[at]));
    return make("div", {}, make("h4", {}, report.models[run.m]), outcome(run.s), make("div", { class: "rankings" }, rankings), traced(sheet, item, run));
  }

  function renderItem(sheet, item) {
    const conditions = item.c.filter((condition) => condition.i || condition.n).map((condition) => make("li", {},
      make("b", {}, condition.l), condition.i, condition.n ? make("span", { class: "outcome" }, ` (${condition.n} relevant)`) : null));
    const runs = make("div", {});
    const show = (at) => runs.replaceChildren(renderRun(sheet, item, item.runs[at]));
    const out = make("div", {}, item.a ? make("p", { class: "outcome" }, item.a) : null, conditions.length ? make("ul", { class: "conditions" }, conditions) : null);
    if (item.runs.length > 2) {
      out.append(make("div", { class: "choices" }, choice("Model", item.runs.map((run) => report.models[run.m]), show)), runs);
      show(0);
    } else {
      out.append(...item.runs.map((run) => renderRun(sheet, item, run)));
    }
    return out;
  }

  function renderQueries() {
    const list = make("div", { class: "items" });
    const about = make("p", { class: "outcome" });
    let sheet = null;
    const search = make("input", { type: "search", placeholder: "words or an id" });
    let order = 0;
    const fill = () => {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      const found = sheet.queries.filter((item) => words.every((word) => `${item.id} ${item.q}`.toLowerCase().includes(word)));
      if (order) found.sort((a, b) => (a.k === null) - (b.k === null) || (order === 1 ? a.k - b.k : b.k - a.k));
      list.replaceChildren(...found.map((item) => {
        const details = make("details", {}, make("summary", {}, make("code", {}, item.id), item.q));
        details.addEventListener("toggle", () => {
          if (details.open && details.children.length === 1) details.append(renderItem(sheet, item));
        });
        return details;
      }));
      if (!found.length) list.append(make("p", {}, "No query has these words."));
    };
    const show = (at) => {
      sheet = JSON.parse($(`sheet-${at}`).textContent);
      about.textContent = sheet.about;
      search.value = "";
      fill();
    };
    search.addEventListener("input", fill);
    $("queries").append(make("div", { class: "choices" },
      choice("Task", report.sheets, show),
      choice("Order", ["as in the data", "lowest scores first", "highest scores first"], (at) => { order = at; fill(); }),
      make("label", {}, "Search", search)), about, list);
    show(0);
  }

  // ---- on paper --------------------------------------------------------------------------------------------

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

  $("overview-table").append(renderTable(report.overview));
  report.families.forEach(renderFamily);
  if (report.sheets.length) renderQueries();
  root.dataset.ready = "yes";
})();
