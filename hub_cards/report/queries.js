// Single queries: the rankings under each instruction or condition, and what moved.

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
  return make("div", {}, make("h4", {}, condition.l), outcome(shown.s), make("ol", {}, items));
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
  return boxed({ "aria-label": caption }, make("table", {}, make("caption", {}, make("span", {}, caption)),
    make("thead", {}, make("tr", {}, heads.map((head) => make("th", { scope: "col" }, head)))), make("tbody", {}, rows)));
}

function renderRun(sheet, item, run) {
  const rankings = item.c.map((condition, at) => ranking(sheet, condition, run.c[at]));
  return make("div", {}, make("h3", {}, report.models[run.m]), outcome(run.s), make("div", { class: "rankings" }, rankings), traced(sheet, item, run));
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
