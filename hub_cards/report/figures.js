// Figures, their legends, and their drawing as they come into sight.

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

// Cut in the middle; names that would then be alike stay whole.
function shortened(names, most) {
  const cut = names.map((name) => (name.length > most ? `${name.slice(0, most / 2)}…${name.slice(1 - most / 2)}` : name));
  return names.map((name, at) => (cut.indexOf(cut[at]) === cut.lastIndexOf(cut[at]) ? cut[at] : name));
}

function layoutOf(chart, width) {
  const colour = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const axis = (given) => ({
    automargin: true, gridcolor: colour("--grid"), linecolor: colour("--line"), tickcolor: colour("--line"), ...given,
    title: given.title ? { ...given.title, standoff: 12, font: { size: 13 } } : undefined,
  });
  const narrow = width < 520;
  const yaxis = axis(chart.figure.layout.yaxis || {});
  if (narrow && yaxis.ticktext) yaxis.ticktext = shortened(yaxis.ticktext, 18);
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
