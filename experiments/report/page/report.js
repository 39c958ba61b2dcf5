"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = id => document.getElementById(id);
  const make = (tag, props = {}, ...children) => {
    const e = Object.assign(document.createElement(tag), props);
    e.append(...children);
    return e;
  };
  const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  // Okabe and Ito; black gives way to the colour of text.
  const palette = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "text", "#94672a"];
  const colour = i => { const c = palette[i % palette.length]; return c === "text" ? css("--text") : c; };
  // Colours repeat with dashes, which the legend and the buttons show as well.
  const dashes = [[], [6, 3], [2, 3], [12, 5], [10, 3, 2, 3], [6, 3, 2, 3, 2, 3]];
  const dash = i => dashes[Math.floor(i / palette.length) % dashes.length];
  // swatch draws a bit of line i, or a point.
  function swatch(i, dashed = dash(i), point = false) {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const part = document.createElementNS(svg.namespaceURI, point ? "circle" : "line");
    const set = (e, all) => Object.entries(all).forEach(([k, v]) => e.setAttribute(k, v));
    set(svg, { class: "swatch", width: point ? 10 : 32, height: 10, "aria-hidden": "true" });
    set(part, point ? { cx: 5, cy: 5, r: 4, fill: "none" } : { x1: 0, y1: 5, x2: 32, y2: 5, "stroke-dasharray": dashed.join(" ") });
    const c = palette[i % palette.length];
    part.style.stroke = c === "text" ? "var(--text)" : c;
    part.style.strokeWidth = point ? "2" : "3";
    svg.append(part);
    return svg;
  }
  const faint = (c, a) => {
    const p = make("canvas").getContext("2d");
    p.fillStyle = c;
    const h = p.fillStyle;
    return `rgba(${parseInt(h.slice(1, 3), 16)},${parseInt(h.slice(3, 5), 16)},${parseInt(h.slice(5, 7), 16)},${a})`;
  };
  // As stats.Format writes numbers: four digits, exact ties to the even one.
  const format = v => {
    if (v === null || v === undefined) return "–";
    const a = Math.abs(v);
    if (a === 0) return "0";
    const e = +a.toExponential(3).split("e")[1];
    if (e >= 6 || e < -4) return v.toExponential(3).replace(/e([+-])(\d)$/, "e$10$2");
    const digits = Math.max(0, 3 - e);
    const [whole, rest] = v.toFixed(100).split("."); // every digit
    const cut = digits ? whole + "." + rest.slice(0, digits) : whole;
    if (/^50*$/.test(rest.slice(digits)) && "02468".includes(cut.at(-1))) return cut;
    return v.toFixed(digits);
  };
  // Ids may break behind each slash.
  const breakable = text => text.split(/(?<=\/)/).flatMap(part => [part, make("wbr")]);
  const withUnit = f => f.name + (f.unit ? ", " + f.unit : "");

  // ---- The table of cells: sorts by every column, filters, turns pages.
  const known = new Map(data.curves.map((c, i) => [c.cell, i]));
  const drawn = new Set(data.drawn.filter(id => known.has(id)));
  const columns = [{ name: "cell", key: c => c.id, text: true }, { name: "n", key: c => c.n, cell: c => String(c.n) }];
  const banded = (name, get, help) => columns.push({ name, help, key: c => { const b = get(c); return b ? b[0] : null; }, band: get });
  for (const j of data.show) banded(withUnit(data.figures[j]), c => c.mean[j], data.figures[j].help);
  banded("IQM of " + data.figures[data.metric].name, c => c.iqm, "interquartile mean over seeds");
  if (data.cells.length > 1) {
    banded(data.figures[data.metric].name + " − " + data.reference, c => c.diff, "difference under the same seeds");
    columns.at(-1).difference = true;
    banded("P(better)", c => c.improve, "probability that a run beats one of the reference");
  }
  const perPage = 200;
  let order = data.cells.map((_, i) => i), sortBy = -1, down = false, first = 0;

  function head() {
    const row = make("tr");
    row.append(make("th", { scope: "col" }, "draw"));
    columns.forEach((c, k) => {
      const b = make("button", { type: "button", title: c.help || "" }, c.name);
      b.addEventListener("click", () => { down = sortBy === k ? !down : !c.text; sortBy = k; first = 0; sort(); });
      const th = make("th", { scope: "col" }, b);
      th.setAttribute("aria-sort", sortBy === k ? (down ? "descending" : "ascending") : "none");
      row.append(th);
    });
    $("table").tHead.replaceChildren(row);
  }
  function sort() {
    const part = $("filter").value.trim().toLowerCase();
    order = data.cells.map((_, i) => i).filter(i => data.cells[i].id.toLowerCase().includes(part));
    if (sortBy >= 0) {
      const key = columns[sortBy].key;
      order.sort((i, j) => {
        const a = key(data.cells[i]), b = key(data.cells[j]);
        if (a === null || b === null) return (a === null) - (b === null) || i - j; // none goes last
        const s = typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b;
        return (down ? -s : s) || i - j;
      });
      // Headings keep the focus: only their state changes.
      [...$("table").tHead.rows[0].cells].slice(1).forEach((th, k) =>
        th.setAttribute("aria-sort", sortBy === k ? (down ? "descending" : "ascending") : "none"));
    }
    body();
  }
  function body() {
    const rows = order.slice(first, first + perPage).map(i => {
      const c = data.cells[i];
      const row = make("tr", { className: c.id === data.reference ? "reference" : "" });
      const box = make("input", { type: "checkbox", checked: drawn.has(c.id), disabled: !known.has(c.id) });
      if (box.disabled) box.title = "the page has no curve of this cell";
      box.setAttribute("aria-label", "draw " + c.id + (box.disabled ? ": " + box.title : ""));
      box.dataset.cell = c.id;
      box.addEventListener("change", () => toggle(c.id));
      row.append(make("td", {}, box));
      columns.forEach((col, k) => {
        if (k === 0) { row.append(make("th", { scope: "row" }, c.id)); return; }
        const td = make("td");
        if (col.band) {
          const b = col.band(c);
          if (b) {
            td.append(format(b[0]));
            if (b[1] !== null) td.append(" ", make("span", { className: "range" }, `[${format(b[1])}, ${format(b[2])}]`));
          } else if (c.id === data.reference && col.difference) td.append("reference");
        } else td.append(col.cell(c));
        row.append(td);
      });
      return row;
    });
    $("table").tBodies[0].replaceChildren(...rows);
    $("count").textContent = order.length === data.cells.length ? `${order.length} ${order.length === 1 ? "cell" : "cells"}` : `${order.length} of ${data.cells.length} cells`;
    $("pages").hidden = order.length <= perPage;
    $("page").textContent = `${first + 1} to ${Math.min(first + perPage, order.length)} of ${order.length}`;
    $("prev").disabled = first === 0;
    $("next").disabled = first + perPage >= order.length;
  }
  $("filter").addEventListener("input", () => { first = 0; sort(); });
  $("prev").addEventListener("click", () => { first -= perPage; body(); });
  $("next").addEventListener("click", () => { first += perPage; body(); });

  // ---- Plots.
  const plots = [];
  const axes = (x, y) => [x, y].map(label => ({
    label, stroke: css("--text"), labelFont: "13px system-ui, sans-serif", font: "12px system-ui, sans-serif",
    grid: { stroke: css("--grid"), width: 1 }, ticks: { stroke: css("--grid"), width: 1 },
    values: (_, ticks) => ticks.map(v => v === null ? "" : Math.abs(v) >= 1e5 ? v.toExponential(0).replace("e+", "e") : String(+v.toPrecision(6))),
  }));
  // lines: {name, colour index, x, bands: [[value, lo, hi], …]}. A click on a
  // name in the legend hides the line with its band, or does what click says.
  function lines(holder, xLabel, yLabel, list, log, label, { click, hooks } = {}) {
    const xs = [...new Set(list.flatMap(l => l.x))].sort((a, b) => a - b);
    const rows = [xs], series = [{ label: xLabel }], bands = [];
    for (const l of list) {
      const at = new Map(l.x.map((x, k) => [x, l.bands[k]]));
      const c = colour(l.colour), k = rows.length;
      for (const j of [0, 1, 2]) rows.push(xs.map(x => { const b = at.get(x); return b === undefined ? undefined : b[j]; }));
      series.push({ label: l.name, stroke: c, width: 2, dash: l.dash || dash(l.colour), spanGaps: true, paths: l.apart ? () => null : undefined, points: { show: !!l.points || l.apart || xs.length < 2, size: 7 }, value: (_, v) => format(v) });
      for (const j of [1, 2]) series.push({ stroke: "transparent", width: 0, spanGaps: true, points: { show: false }, class: "hidden-series" });
      if (!l.apart) bands.push({ series: [k + 2, k + 1], fill: faint(c, .18) });
    }
    const size = () => ({ width: Math.max(280, holder.clientWidth), height: Math.max(280, Math.min(440, holder.clientWidth * .6)) });
    const u = new uPlot({
      ...size(), series, bands, axes: axes(xLabel, yLabel),
      scales: { x: { time: false, distr: log ? 3 : 1, log: 10 } },
      cursor: { drag: { x: true, y: false } },
      hooks,
    }, rows, holder);
    // The legend shows values under the pointer; the ends of bands stay out of it.
    const legend = u.root.querySelector(".u-legend"), entries = [...legend.querySelectorAll(".u-series")];
    legend.querySelectorAll(".hidden-series").forEach(e => { e.hidden = true; });
    list.forEach((l, i) => {
      const th = entries[3 * i + 1].firstChild;
      th.querySelector(".u-marker").replaceWith(swatch(l.colour, l.dash, l.apart));
      th.querySelector(".u-label").replaceChildren(...breakable(l.name));
    });
    // uPlot's own handler hides the line alone.
    legend.addEventListener("click", e => {
      e.stopPropagation();
      const k = entries.indexOf(e.target.closest(".u-series"));
      if (k < 1 || !e.target.closest("th")) return;
      if (click) click(list[(k - 1) / 3]);
      else u.batch(() => [k, k + 1, k + 2].forEach(i => u.setSeries(i, { show: !u.series[i].show })));
    }, true);
    holder.setAttribute("aria-label", label);
    plots.push({ u, size });
    return u;
  }
  // grid is the same as lines, in numbers: a row for each x, a column per line.
  function grid(xLabel, xs, list) {
    const heading = (scope, text) => make("th", { scope }, text);
    return [
      make("thead", {}, make("tr", {}, heading("col", xLabel), ...list.map(l => heading("col", l.name)))),
      make("tbody", {}, ...xs.map(x => make("tr", {}, heading("row", Number.isInteger(x) ? String(x) : format(x)), ...list.map(l => {
        const b = l.bands[l.x.indexOf(x)];
        return make("td", {}, b ? format(b[0]) : "–");
      })))),
    ];
  }
  function drop(u) {
    const k = plots.findIndex(p => p.u === u);
    if (k >= 0) plots.splice(k, 1);
    u.destroy();
  }
  addEventListener("resize", () => plots.forEach(p => p.u.setSize(p.size())));

  // ---- Learning curves.
  let chart = null, range = null;
  data.curveFigures.forEach((f, j) => $("figure").append(make("option", { value: String(j) }, withUnit(f))));
  $("figure").addEventListener("change", () => curves());
  const colourOf = id => known.get(id);
  function curves() {
    if (!data.curves.length) return;
    const j = +$("figure").value;
    if (chart) { drop(chart); chart = null; }
    const list = data.curves.filter(c => drawn.has(c.cell))
      .map(c => ({ name: c.cell, colour: colourOf(c.cell), x: c.epochs, bands: c.bands[j] }));
    const label = `Learning curves, ${withUnit(data.curveFigures[j])}: ` + (list.map(l => {
      const b = l.bands[l.bands.length - 1];
      return `${l.name} ends at ${format(b[0])}`;
    }).join("; ") || "no cell is drawn");
    $("curves").setAttribute("aria-label", label);
    if (list.length) {
      const before = range;
      chart = lines($("curves"), "epoch", withUnit(data.curveFigures[j]), list, true, label,
        { click: l => toggle(l.name), hooks: { setScale: [zoomed] } });
      if (before) chart.setScale("x", before);
    }
    $("curves-table").replaceChildren(...grid("epoch", [...new Set(list.flatMap(l => l.x))].sort((a, b) => a - b), list));
    for (const b of $("toggles").children) b.setAttribute("aria-pressed", String(drawn.has(b.dataset.cell)));
  }
  function toggle(id) {
    if (drawn.has(id)) drawn.delete(id); else drawn.add(id);
    for (const box of document.querySelectorAll("#table input[data-cell]")) box.checked = drawn.has(box.dataset.cell);
    curves();
  }
  for (const c of data.curves) {
    const b = make("button", { type: "button" }, swatch(colourOf(c.cell)), make("span", {}, ...breakable(c.cell)));
    b.dataset.cell = c.cell;
    b.addEventListener("click", () => toggle(c.cell));
    $("toggles").append(b);
  }
  // zoomed keeps the range for the next chart, whether buttons, a drag or a
  // double-click set it; null is all.
  function zoomed(u, scale) {
    if (scale !== "x") return;
    const x = u.data[0], { min, max } = u.scales.x;
    range = min <= x[0] && max >= x[x.length - 1] ? null : { min, max };
  }
  function zoom(factor) {
    if (!chart) return;
    if (factor === 0) {
      const x = chart.data[0];
      chart.setScale("x", { min: x[0], max: x[x.length - 1] });
      return;
    }
    // On a logarithmic axis the middle is the geometric one.
    const { min, max } = chart.scales.x, mid = (Math.log(min) + Math.log(max)) / 2, half = (Math.log(max) - Math.log(min)) / 2 * factor;
    const x = chart.data[0];
    const next = { min: Math.max(x[0], Math.exp(mid - half)), max: Math.min(x[x.length - 1], Math.exp(mid + half)) };
    if (next.max > next.min) chart.setScale("x", next);
  }
  $("zoom-in").addEventListener("click", () => zoom(.5));
  $("zoom-out").addEventListener("click", () => zoom(2));
  $("zoom-all").addEventListener("click", () => zoom(0));

  // ---- Figures along the numeric setting with the most values.
  let along = null;
  if (data.paths.length) {
    $("along-section").hidden = false;
    $("h-along").textContent = "Along " + data.axis;
    data.show.forEach(j => $("along-figure").append(make("option", { value: String(j) }, withUnit(data.figures[j]))));
    $("along-figure").addEventListener("change", drawAlong);
  }
  function drawAlong() {
    if (!data.paths.length) return;
    if (along) drop(along);
    const j = +$("along-figure").value;
    const list = data.paths.map((p, i) => ({ name: p.name || data.axis, colour: i, x: p.x, bands: p.cells.map(c => data.cells[c].mean[j]), points: true }));
    along = lines($("along"), data.axis, withUnit(data.figures[j]), list, data.log,
      `${withUnit(data.figures[j])} along ${data.axis}: ` + list.map(l => `${l.name}: ` + l.x.map((x, k) => `${x}: ${format(l.bands[k][0])}`).join(", ")).join("; "));
  }

  // ---- Performance profile.
  let profile = null;
  function drawProfile() {
    if (!data.profile) return;
    if (profile) drop(profile);
    const list = data.profile.lines.map((l, i) => ({ name: l.name, colour: known.has(l.name) ? colourOf(l.name) : i, x: data.profile.scores, bands: l.share }));
    profile = lines($("profile"), "τ, " + withUnit(data.figures[data.metric]), "share of runs above τ", list, false,
      `Performance profile of ${list.map(l => l.name).join(", ")}; a table of the shares follows`);
    $("profile-table").replaceChildren(...grid("τ", data.profile.scores, list));
  }

  // ---- What was learned.
  const learnedCells = [...new Set(data.learned.map(l => l.cell))];
  let learnedPlots = [];
  learnedCells.forEach(id => $("learned-cell").append(make("option", { value: id }, id)));
  $("learned-section").hidden = learnedCells.length === 0;
  $("learned-cell").addEventListener("change", drawLearned);
  function drawLearned() {
    learnedPlots.forEach(drop);
    learnedPlots = [];
    $("learned-plots").replaceChildren();
    const here = data.learned.filter(l => l.cell === $("learned-cell").value);
    const thresholds = here.filter(l => l.what === "threshold");
    $("learned-table").replaceChildren(
      make("thead", {}, make("tr", {}, ...["source", "learned threshold", "exact threshold"].map(t => make("th", { scope: "col" }, t)))),
      make("tbody", {}, ...thresholds.map(l => make("tr", {}, make("th", { scope: "row" }, l.source),
        make("td", {}, format(l.learned[0]), l.learned[1] === null ? "" : make("span", { className: "range" }, ` [${format(l.learned[1])}, ${format(l.learned[2])}]`)),
        make("td", {}, format(l.exact))))));
    $("learned-table").parentElement.hidden = thresholds.length === 0;
    const panel = (title, xLabel, rows, x, apart) => {
      const holder = make("div", { className: "plot" });
      holder.setAttribute("role", "img");
      $("learned-plots").append(make("div", {}, make("h3", {}, title), holder));
      learnedPlots.push(lines(holder, xLabel, "interest", [
        { name: "learned", colour: 0, x: rows.map(x), bands: rows.map(r => r.learned), points: true, apart },
        { name: "exact", colour: 1, dash: [6, 4], x: rows.map(x), bands: rows.map(r => [r.exact, null, null]), points: true, apart },
      ], false, title + ": " + rows.map(r => `${xLabel} ${x(r)}: learned ${format(r.learned[0])}, exact ${format(r.exact)}`).join("; ")));
    };
    if (thresholds.length > 1) panel("Thresholds", "source number", thresholds, l => thresholds.indexOf(l) + 1, true);
    for (const s of [...new Set(here.filter(l => l.what === "index").map(l => l.source))])
      panel("Index of source " + s, "age, epochs", here.filter(l => l.what === "index" && l.source === s), l => l.at);
  }

  function all() { drawAlong(); curves(); drawProfile(); drawLearned(); }
  head();
  sort();
  $("curves-section").hidden = !data.curves.length;
  all();
  // Colours are read when a plot is made.
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", all);
})();
