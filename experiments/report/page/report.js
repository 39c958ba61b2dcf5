"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const make = (tag, props = {}, ...children) => {
    const e = Object.assign(document.createElement(tag), props);
    e.append(...children);
    return e;
  };
  const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const look = style => data.looks.at(style);
  const colour = style => look(style).colour || css("--text");
  const faint = style => colour(style) + "2e";
  const dotted = s => s.kind === "points";
  const format = v => v === null || v === undefined ? "–" : v === 0 ? "0"
    : Math.abs(v) >= 1e6 || Math.abs(v) < 1e-4 ? v.toExponential(3) : String(+v.toPrecision(5));
  // Ids and names may break behind each slash and underscore.
  const breakable = text => text.split(/(?<=[/_])/).flatMap(part => [part, make("wbr")]);
  // swatch draws a bit of a series.
  function swatch(s) {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const part = document.createElementNS(svg.namespaceURI, dotted(s) ? "circle" : "line");
    const set = (e, all) => Object.entries(all).forEach(([k, v]) => e.setAttribute(k, v));
    set(svg, { class: "swatch", width: dotted(s) ? 12 : 32, height: 12, "aria-hidden": "true" });
    set(part, dotted(s) ? { cx: 6, cy: 6, r: 4 } : { x1: 0, y1: 6, x2: 32, y2: 6, "stroke-dasharray": (look(s.style).dash || []).join(" "), "stroke-width": 3 });
    part.style[dotted(s) ? "fill" : "stroke"] = look(s.style).colour || "var(--text)";
    svg.append(part);
    return svg;
  }

  // What has one name is drawn or hidden everywhere at once.
  const hidden = new Set(), known = new Set(), watchers = [];
  for (const s of data.sections) for (const f of s.figures) for (const x of f.series) {
    known.add(x.name);
  }
  function toggle(name) {
    if (!hidden.delete(name)) hidden.add(name);
    watchers.forEach(w => w());
  }

  // ---- Tables: sorted by every column, filtered, in pages.
  // number is what a text begins with, days in hours; NaN for a word.
  const number = text => parseFloat(text) * (text.endsWith(" d") ? 24 : 1);
  function table(section, { table: t, draws, reference }, title) {
    const perPage = 200, many = t.rows.length > 8;
    let order = [], by = -1, down = false, first = 0;
    const filter = make("input", { type: "search", autocomplete: "off", placeholder: "part of a name" });
    const count = make("span", { className: "count" }), page = make("span"), head = make("tr"), body = make("tbody");
    count.setAttribute("role", "status");
    const turn = (text, by) => make("button", { type: "button", textContent: text, onclick: () => { first += by; fill(); } });
    const prev = turn("Previous", -perPage), next = turn("Next", perPage);
    const pages = make("div", { className: "controls", hidden: true }, prev, page, next);
    const box = make("div", { className: "scroll", tabIndex: 0 }, make("table", {}, make("thead", {}, head), body));
    box.setAttribute("role", "region");
    box.setAttribute("aria-label", "Table: " + title);
    section.append(make("div", { className: "controls", hidden: !many }, make("label", {}, "Filter ", filter), count), box, pages);
    filter.addEventListener("input", () => { first = 0; sort(); });
    if (draws) head.append(make("th", { scope: "col", textContent: "draw" }));
    const words = k => k === 0 || t.rows.every(r => isNaN(number(r[k])));
    t.header.forEach((name, k) => {
      const b = make("button", { type: "button" }, ...breakable(name));
      b.addEventListener("click", () => { down = by === k ? !down : !words(k); by = k; first = 0; sort(); });
      head.append(make("th", { scope: "col", className: k ? "" : "name" }, b));
    });
    function sort() {
      const part = filter.value.trim().toLowerCase();
      order = t.rows.filter(r => r[0].toLowerCase().includes(part));
      if (by >= 0) {
        const byWords = words(by);
        order.sort((r, s) => {
          if (byWords) return (down ? -1 : 1) * r[by].localeCompare(s[by], "en", { numeric: true });
          const a = number(r[by]), b = number(s[by]);
          if (isNaN(a) || isNaN(b)) return isNaN(a) - isNaN(b); // none goes last
          return down ? b - a : a - b;
        });
      }
      [...head.cells].slice(draws ? 1 : 0).forEach((th, k) =>
        th.setAttribute("aria-sort", by !== k ? "none" : down ? "descending" : "ascending"));
      fill();
    }
    function fill() {
      body.replaceChildren(...order.slice(first, first + perPage).map(r => {
        const name = r[0], row = make("tr", { className: name === reference ? "reference" : "" });
        if (draws) {
          const tick = make("input", { type: "checkbox", checked: known.has(name) && !hidden.has(name), disabled: !known.has(name) });
          tick.setAttribute("aria-label", "draw " + name + (tick.disabled ? ": the page has no curve of it" : ""));
          tick.dataset.name = name;
          tick.addEventListener("change", () => toggle(name));
          row.append(make("td", { className: "draw" }, tick));
        }
        r.forEach((c, k) => {
          if (k === 0) return row.append(make("th", { scope: "row" }, ...breakable(c)));
          // An interval stands below its value where there is no room next to it.
          const [value, range] = c.replace(/ (%|h|d)$/, "\u00a0$1").split(/(?= \[)/);
          const td = make("td", {}, value, ...(range ? [" ", make("span", { className: "range", textContent: range.trim() })] : []));
          td.dataset.label = t.header[k];
          row.append(td);
        });
        return row;
      }));
      count.textContent = order.length === t.rows.length ? `${order.length} row${order.length === 1 ? "" : "s"}` : `${order.length} of ${t.rows.length} rows`;
      pages.hidden = order.length <= perPage;
      page.textContent = `${first + 1} to ${Math.min(first + perPage, order.length)} of ${order.length}`;
      prev.disabled = first === 0;
      next.disabled = first + perPage >= order.length;
    }
    if (draws) watchers.push(() => body.querySelectorAll("input[data-name]").forEach(b => { b.checked = known.has(b.dataset.name) && !hidden.has(b.dataset.name); }));
    sort();
  }

  // ---- Figures.
  const small = "12px system-ui, sans-serif", ink = document.createElement("canvas").getContext("2d");
  function widthOf(text) {
    ink.font = small;
    return Math.ceil(ink.measureText(text).width);
  }
  // within returns a name that is as wide as that at most, if need be without its middle.
  function within(width, name) {
    const all = [...name];
    let text = name;
    for (let n = all.length - 1; widthOf(text) > width && n > 1; n--) text = all.slice(0, Math.ceil(n / 2)).join("") + "…" + all.slice(-Math.floor(n / 2)).join("");
    return text;
  }
  function axis(a, side) {
    const named = a.names && {
      splits: () => a.names.map((_, k) => k),
      values: u => a.names.map(name => within(Math.max(130, .4 * u.width), name)),
      size: (u, values) => 22 + Math.max(0, ...(values || []).map(widthOf)),
    };
    return {
      label: a.label, stroke: css("--text"), labelFont: "13px system-ui, sans-serif", font: small,
      grid: { stroke: css("--grid"), width: 1 }, ticks: { stroke: css("--grid"), width: 1 },
      ...(side ? { size: (u, values) => Math.min(160, 22 + 7 * Math.max(3, ...(values || []).map(v => String(v ?? "").length))) } : {}), ...named,
    };
  }
  // range returns from where to where an axis runs that has such values.
  function range(a, values, room) {
    if (a.names) return [-.6, a.names.length - .4];
    if (a.lo !== undefined || a.hi !== undefined) return [a.lo || 0, a.hi || 0];
    const all = values.filter(v => v !== null && v !== undefined && (!a.log || v > 0)).map(v => a.log ? Math.log10(v) : v);
    const lo = all.reduce((v, w) => Math.min(v, w), Infinity), hi = all.reduce((v, w) => Math.max(v, w), -Infinity);
    const pad = hi > lo ? room * (hi - lo) : .5;
    return lo > hi ? [1, 2] : [lo - pad, hi + pad].map(v => a.log ? 10 ** v : v);
  }
  // chart draws a figure into a holder.
  function chart(f, holder, zoomed, hovered) {
    const shown = f.series.filter(s => !hidden.has(s.name) && s.x.length);
    // Lines to compare with may be upright, which uPlot's cannot.
    const byHand = s => dotted(s) || s.style < 0;
    const lines = shown.filter(s => !byHand(s)), dots = shown.filter(byHand);
    const across = !!f.y.names, room = dots.some(dotted) ? .04 : 0;
    const fullX = range(f.x, shown.flatMap(s => [s.x, across ? s.lo || [] : [], across ? s.hi || [] : []].flat()), room);
    const fullY = range(f.y, shown.flatMap(s => [s.y, across ? [] : s.lo || [], across ? [] : s.hi || []].flat()), .04);
    const xs = [...new Set([...fullX, ...lines.flatMap(s => s.x)])].filter(x => x >= fullX[0] && x <= fullX[1]).sort((a, b) => a - b);
    const rows = [xs], series = [{}], bands = [];
    const of = (s, list) => {
      const at = new Map(s.x.map((x, k) => [x, k]));
      return xs.map(x => at.has(x) ? (list ? list[at.get(x)] : null) : undefined);
    };
    for (const s of lines.filter(s => s.lo)) { // bands lie below all lines
      bands.push({ series: [rows.length + 1, rows.length], fill: faint(s.style) });
      for (const list of [s.lo, s.hi]) {
        rows.push(of(s, list));
        series.push({ stroke: "transparent", width: 0, points: { show: false } });
      }
    }
    for (const s of lines) {
      rows.push(of(s, s.y));
      series.push({ stroke: colour(s.style), width: 2, dash: look(s.style).dash || [], points: { show: s.x.length === 1, size: 7 } });
    }
    // What is not a line is drawn by hand.
    function dotsOf(u) {
      const c = u.ctx, ratio = devicePixelRatio, px = (x, y) => [u.valToPos(x, "x", true), u.valToPos(y, "y", true)];
      c.save();
      c.beginPath();
      c.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
      c.clip();
      for (const s of dots) {
        c.strokeStyle = c.fillStyle = colour(s.style);
        c.lineWidth = 2 * ratio;
        if (!dotted(s)) {
          c.setLineDash(look(s.style).dash.map(d => d * ratio));
          c.beginPath();
          s.x.forEach((x, k) => c.lineTo(...px(x, s.y[k])));
          c.stroke();
          c.setLineDash([]);
          continue;
        }
        s.x.forEach((x, k) => {
          if (x === null || s.y[k] === null) return;
          c.beginPath();
          if (s.lo && s.lo[k] !== null) {
            c.moveTo(...(across ? px(s.lo[k], s.y[k]) : px(x, s.lo[k])));
            c.lineTo(...(across ? px(s.hi[k], s.y[k]) : px(x, s.hi[k])));
          }
          c.stroke();
          c.beginPath();
          c.arc(...px(x, s.y[k]), 4 * ratio, 0, 7);
          c.fill();
        });
      }
      c.restore();
    }
    // Under the pointer: of lines the value at the nearest x, of dots the
    // nearest one.
    function point(u) {
      const { left, top } = u.cursor, out = new Map();
      if (left >= 0) for (const s of shown) {
        let best = -1, least = dotted(s) ? 30 : Infinity;
        s.x.forEach((x, k) => {
          if (x === null || s.y[k] === null) return;
          const d = Math.hypot(u.valToPos(x, "x") - left, dotted(s) ? u.valToPos(s.y[k], "y") - top : 0);
          if (d < least) { best = k; least = d; }
        });
        if (best >= 0) out.set(s.name, dotted(s) ? `${format(s.x[best])}, ${format(s.y[best])}` : format(s.y[best]));
      }
      hovered(out);
    }
    const size = () => ({ width: Math.max(260, holder.clientWidth), height: Math.max(280, Math.min(440, holder.clientWidth * .6), (f.y.names || []).length * 14) });
    const scale = (a, range) => ({ time: false, distr: a.log ? 3 : 1, log: 10, range });
    const start = zoomed.range || fullX;
    const u = new uPlot({
      ...size(), series, bands, axes: [axis(f.x, false), axis(f.y, true)], legend: { show: false },
      scales: {
        x: scale(f.x, (u, lo, hi) => {
          const all = lo === null || lo === hi || lo <= fullX[0] && hi >= fullX[1];
          zoomed.range = all ? null : [lo, hi];
          return all ? fullX : [lo, hi];
        }),
        y: scale(f.y, (u, lo, hi) => lo === null || dots.some(dotted) || !zoomed.range ? fullY : f.y.log ? [lo / 1.1, hi * 1.1] : uPlot.rangeNum(lo, hi, .05, false)),
      },
      cursor: { drag: { x: true, y: false }, points: { show: false } },
      hooks: { draw: [dotsOf], setCursor: [point] },
    }, rows, holder);
    u.setScale("x", { min: start[0], max: start[1] });
    return { u, size, full: fullX };
  }
  // listed is the same as the figure in numbers.
  function listed(f) {
    const heading = (scope, text) => make("th", { scope, textContent: text }), td = v => make("td", {}, format(v));
    const shown = f.series.filter(s => !hidden.has(s.name));
    if (shown.some(dotted)) {
      const at = v => f.y.names ? make("td", {}, f.y.names[v]) : td(v);
      return [make("thead", {}, make("tr", {}, ...["", f.x.label, f.y.label, "from", "to"].map(t => heading("col", t)))),
        make("tbody", {}, ...shown.flatMap(s => s.x.map((x, k) => make("tr", {}, heading("row", s.name), td(x), at(s.y[k]), td(s.lo && s.lo[k]), td(s.hi && s.hi[k])))))];
    }
    const xs = [...new Set(shown.flatMap(s => s.x))].sort((a, b) => a - b);
    const of = shown.map(s => new Map(s.x.map((x, k) => [x, s.y[k]])));
    return [make("thead", {}, make("tr", {}, heading("col", f.x.label), ...shown.map(s => heading("col", s.name)))),
      make("tbody", {}, ...xs.map(x => make("tr", {}, heading("row", format(x)), ...of.map(m => td(m.get(x))))))];
  }
  function figures(section, list) {
    let drawn = null, f = list[0];
    const zoomed = { range: null }, values = new Map();
    const choice = make("select", {}, ...list.map((f, i) => make("option", { value: String(i) }, list.every(g => g.y.label === f.y.label) || list.every(g => g.title !== f.title || g === f) ? f.title : f.y.label)));
    const holder = make("div", { className: "plot" }), legend = make("div", { className: "legend" }), numbers = make("table");
    const box = make("div", { className: "scroll", tabIndex: 0 }, numbers);
    box.setAttribute("role", "region");
    const details = make("details", {}, make("summary", { textContent: "As a table" }), box);
    legend.setAttribute("role", "group");
    legend.setAttribute("aria-label", "Legend: press a name to hide or draw it");
    holder.setAttribute("role", "img");
    const button = (text, factor) => make("button", { type: "button", textContent: text, onclick: () => zoom(factor) });
    const buttons = make("span", { className: "controls" }, button("Zoom in", .5), button("Zoom out", 2), button("See all", 0));
    section.append(make("div", { className: "controls" }, ...(list.length > 1 ? [make("label", {}, "Figure ", choice)] : []), buttons), holder, legend, details);
    choice.addEventListener("change", () => { f = list[+choice.value]; zoomed.range = null; draw(); });
    details.addEventListener("toggle", () => { if (details.open) numbers.replaceChildren(...listed(f)); });
    function zoom(factor) {
      const u = drawn && drawn.u, all = drawn && drawn.full, to = f.x.log ? Math.log : x => x, from = f.x.log ? Math.exp : x => x;
      if (!u) return;
      const { min, max } = u.scales.x, mid = (to(min) + to(max)) / 2, half = (to(max) - to(min)) / 2 * factor;
      const lo = factor ? Math.max(all[0], from(mid - half)) : all[0], hi = factor ? Math.min(all[1], from(mid + half)) : all[1];
      u.setScale("x", { min: lo, max: hi });
    }
    function draw() {
      if (drawn) drawn.u.destroy();
      drawn = null;
      holder.replaceChildren();
      box.setAttribute("aria-label", f.title + " as a table");
      const entries = f.series.filter(s => s.name);
      const last = s => format(f.y.names ? s.x.at(-1) : s.y.at(-1));
      holder.setAttribute("aria-label", `${f.title}, ${f.y.label} over ${f.x.label}: ` +
        (entries.filter(s => !hidden.has(s.name)).map(s => `${s.name} ends at ${last(s)}`).join("; ") || "nothing is drawn"));
      values.clear();
      legend.hidden = entries.length === 0;
      legend.replaceChildren(...entries.map(s => {
        const value = make("span", { className: "value" }), b = make("button", { type: "button" }, swatch(s), make("span", { className: "name" }, ...breakable(s.name)), value);
        values.set(s.name, value);
        b.dataset.name = s.name;
        b.setAttribute("aria-pressed", String(!hidden.has(s.name)));
        b.addEventListener("click", () => toggle(s.name));
        return b;
      }));
      drawn = chart(f, holder, zoomed, now => values.forEach((e, name) => { e.textContent = now.get(name) || ""; }));
      if (details.open) numbers.replaceChildren(...listed(f));
    }
    watchers.push(draw);
    addEventListener("resize", () => { if (drawn) drawn.u.setSize(drawn.size()); });
    // Colours are read when a plot is made.
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
    draw();
  }

  data.sections.forEach((s, i) => {
    const section = document.getElementById("section-" + i);
    if (s.figures.length) figures(section, s.figures);
    if (s.table && s.table.rows.length) table(section, s, section.querySelector("h2").textContent);
  });
})();
