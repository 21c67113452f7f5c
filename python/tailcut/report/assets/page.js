"use strict";
(() => {
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const { specs, tables, config } = read("charts");
  const state = read("state");
  const signals = { hidden: [], cell: state.cell, point: state.point };
  const views = new Map();
  const all = (selector) => [...document.querySelectorAll(selector)];

  // --- figures ---------------------------------------------------------------------------------------------------
  const unpack = (table) => {
    const columns = Object.entries(table).map(([name, column]) => [
      name,
      Array.isArray(column) ? column : column.codes.map((code) => column.levels[code]),
    ]);
    const rows = columns[0][1].map(() => ({}));
    for (const [name, values] of columns) values.forEach((value, row) => (rows[row][name] = value));
    return rows;
  };
  const named = (node) =>
    node === null || typeof node !== "object"
      ? []
      : [...(node.data?.name ? [node.data.name] : []), ...Object.values(node).flatMap(named)];
  const draw = async (id) => {
    const params = Object.entries(signals).map(([name, value]) => ({ name, value }));
    const datasets = Object.fromEntries([...new Set(named(specs[id]))].map((name) => [name, unpack(tables[name])]));
    const spec = { ...specs[id], config, datasets, params: [...params, ...(specs[id].params ?? [])] };
    const options = { actions: false, renderer: "svg", tooltip: { theme: "custom", disableDefaultStyle: false } };
    const { view } = await vegaEmbed(document.getElementById(id), spec, options);
    views.set(id, view);
    if (state.slow.length > 0) view.addEventListener("click", (_, item) => tellOf(item));
  };
  const apply = async (name) => {
    const changed = [...views.values()].map((view) => view.signal(name, signals[name]).runAsync());
    await Promise.all(changed);
  };

  // --- the legend and the choices on top of the page --------------------------------------------------------------
  const hideAll = (names) => {
    signals.hidden = names;
    for (const key of all("[data-hide]")) key.setAttribute("aria-pressed", String(!signals.hidden.includes(key.dataset.hide)));
    for (const row of all("tr[data-scheme], .slow [data-scheme]"))
      row.hidden =
        signals.hidden.includes(`scheme:${row.dataset.scheme}`) || signals.hidden.includes(`backend:${row.dataset.backend}`);
    return apply("hidden");
  };
  const toggle = (name) => {
    const others = signals.hidden.filter((other) => other !== name);
    return hideAll(signals.hidden.includes(name) ? others : [...others, name]);
  };
  for (const key of all("[data-hide]")) key.addEventListener("click", () => toggle(key.dataset.hide));
  const schemes = all("[data-scheme-key]").map((key) => key.dataset.hide);
  for (const button of all("[data-only]"))
    button.addEventListener("click", () => {
      const only = button.dataset.only;
      const sources = signals.hidden.filter((name) => !schemes.includes(name));
      return hideAll([...sources, ...(only ? schemes.filter((name) => name !== `scheme:${only}`) : [])]);
    });
  for (const choice of all("[data-choose]"))
    choice.addEventListener("change", () => {
      signals[choice.dataset.choose] = choice.value;
      for (const label of all(`[data-shows="${choice.dataset.choose}"]`)) label.textContent = choice.value;
      return apply(choice.dataset.choose);
    });

  // --- light and dark ---------------------------------------------------------------------------------------------
  const themes = ["automatic", "light", "dark"];
  const button = document.getElementById("theme");
  button.addEventListener("click", () => {
    const current = document.documentElement.dataset.theme ?? "automatic";
    const next = themes[(themes.indexOf(current) + 1) % themes.length];
    if (next === "automatic") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = next;
    button.textContent = `Theme: ${next}`;
  });

  // --- the keyboard: arrow keys walk from mark to mark --------------------------------------------------------------
  const marks = (view) => {
    const found = [];
    const visit = (node, x, y) => {
      for (const item of node.items ?? []) {
        if (item.items) visit(item, x + (item.x ?? 0), y + (item.y ?? 0));
        else if (item.tooltip && !item.isVoronoi && node.marktype !== "path" && item.bounds)
          found.push({ item, x: x + (item.bounds.x1 + item.bounds.x2) / 2, y: y + (item.bounds.y1 + item.bounds.y2) / 2 });
      }
    };
    visit(view.scenegraph().root, ...view.origin());
    return found.sort((a, b) => a.x - b.x || a.y - b.y);
  };
  const say = (values) => {
    const text = Object.entries(values).map(([name, value]) => `${name} ${value}`).join(", ");
    document.getElementById("spoken").textContent = text;
  };
  for (const chart of all(".chart")) {
    let at = -1;
    chart.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && at >= 0) {
        tellOf(marks(views.get(chart.id))[at].item);
        return;
      }
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      const view = views.get(chart.id);
      if (!view || (!step && event.key !== "Escape")) return;
      const found = marks(view);
      const show = view.tooltip();
      if (event.key === "Escape" || found.length === 0) {
        show.call(view, null, event, null, null);
        return;
      }
      event.preventDefault();
      at = (at + step + found.length) % found.length;
      const box = chart.querySelector("svg").getBoundingClientRect();
      const scale = box.width / chart.querySelector("svg").viewBox.baseVal.width;
      const place = { clientX: box.left + found[at].x * scale, clientY: box.top + found[at].y * scale };
      show.call(view, null, place, found[at].item, found[at].item.tooltip);
      say(found[at].item.tooltip);
    });
    chart.addEventListener("blur", () => {
      at = -1;
      views.get(chart.id)?.tooltip().call(null, null, {}, null, null);
    });
  }

  // --- flows that are told packet by packet ---------------------------------------------------------------------------
  const flowChoice = document.getElementById("slow-flow");
  const tell = (flow) => {
    flowChoice.value = flow;
    for (const figure of all("figure.slow")) figure.hidden = figure.dataset.flow !== flowChoice.value;
  };
  flowChoice?.addEventListener("change", () => tell(flowChoice.value));
  // A mark of the distribution has its time in some unit, to five digits.
  const told = (datum) =>
    state.slow.find(
      ({ cell, point, times }) =>
        point === datum.point &&
        cell === (datum.cell ?? cell) &&
        [1, 1e3, 1e6].some((size) => Math.abs((datum.fct * size) / times[datum.scheme] - 1) < 1e-4),
    );
  const tellOf = (item) => {
    const datum = item?.datum?.datum ?? item?.datum;
    const found = datum?.fct === undefined ? undefined : told(datum);
    if (!found) return;
    tell(String(found.flow));
    document.getElementById("slow-flows").scrollIntoView();
    flowChoice.focus({ preventScroll: true });
  };

  // --- saving ------------------------------------------------------------------------------------------------------
  const save = (name, type, text) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  // A spreadsheet takes a text that begins like this for a formula, unless it is a number with its marks.
  const formula = (text) => /^[=+\-@\t\r]/.test(text) && !/^[+\-\d., %*]+$/.test(text);
  const guarded = (text) => (formula(text) ? `'${text}` : text);
  const quoted = (text) => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  for (const control of all("[data-csv]"))
    control.addEventListener("click", () => {
      const rows = [...control.closest("details").querySelectorAll("tr")];
      const text = rows.map((row) => [...row.cells].map((cell) => quoted(guarded(cell.textContent))).join(",")).join("\n");
      save(`${control.dataset.csv}.csv`, "text/csv", `${text}\n`);
    });
  for (const control of all("[data-svg]"))
    control.addEventListener("click", async () => {
      const svg = await views.get(control.dataset.svg).toSVG();
      const coloured = svg.replace(/var\(--([\w-]+)\)/g, (_, name) => state.light[name]);
      save(`${control.dataset.svg}.svg`, "image/svg+xml", coloured.replaceAll("inherit", "Arial, sans-serif"));
    });

  // --- begin -------------------------------------------------------------------------------------------------------
  Promise.all(Object.keys(specs).map(draw)).then(
    () => document.documentElement.setAttribute("data-drawn", String(views.size)),
    (error) => {
      document.documentElement.setAttribute("data-drawn", "failed");
      throw error;
    },
  );
})();
