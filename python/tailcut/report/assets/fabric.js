"use strict";
(async () => {
  const source = document.getElementById("fabric-data");
  if (!source) return;
  const data = JSON.parse(source.textContent);
  const id = (name) => document.getElementById(`fabric-${name}`);
  const panels = [...document.querySelectorAll(".fabric-panel")].map((element) => ({
    map: element.querySelector("svg"),
    said: element.querySelector(".fabric-said"),
    choice: element.querySelector(".fabric-scheme"),
  }));
  const links = data.links.length / 2;
  const ports = 2 * links;
  const end = (port, side) => data.links[2 * (port >> 1) + ((port & 1) ^ side)];
  const called = (port) => `${data.names[end(port, 0)]} → ${data.names[end(port, 1)]}`;

  // --- the samples: packets that wait, use in per cent, drops in four bytes; the series of each port in a row --------------
  const inflate = async (letters) => {
    const bytes = Uint8Array.from(atob(letters), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  };
  const schemes = await Promise.all(
    data.schemes.map(async (scheme) => {
      const all = await inflate(scheme.samples);
      const plane = (number) => all.subarray(number * ports * scheme.instants, (number + 1) * ports * scheme.instants);
      return { ...scheme, queue: plane(0), use: plane(1), drops: [2, 3, 4, 5].map(plane) };
    }),
  );
  const value = (scheme, what, port, at) => (at < scheme.instants ? scheme[what][port * scheme.instants + at] : 0);
  const dropped = (scheme, port, at) =>
    at < scheme.instants ? scheme.drops.reduce((sum, plane, byte) => sum + plane[port * scheme.instants + at] * 256 ** byte, 0) : 0;
  const packets = (steps) => steps * data.unit;
  const ownInterface = (port) => end(port, 0) < data.hosts;
  const worst = (scheme, what, port, at) => (what === "queue" && ownInterface(port) ? 0 : value(scheme, what, port, at));
  const bounds = { queue: [0, 0.1, 0.25, 0.5, 0.8].map((share) => share * data.longest), use: [5, 25, 50, 75, 95] };
  const level = (what, amount) => {
    const shown = what === "queue" ? packets(amount) : amount;
    return bounds[what].filter((bound) => shown > bound).length;
  };
  const milliseconds = (ns) => `${Number((ns / 1e6).toPrecision(6))} ms`;
  const now = { at: 0, by: "queue", flow: null, picked: null, open: new Set() };
  const shown = () => panels.map((panel) => schemes[panel.choice.selectedIndex]);

  // --- where things stand ---------------------------------------------------------------------------------------------------
  const nodes = data.level.length;
  const top = Math.max(...data.level);
  const pods = Math.max(-1, ...data.pod) + 1;
  const members = Array.from({ length: pods }, () => []);
  for (let node = 0; node < nodes; node++) if (data.pod[node] >= 0) members[data.pod[node]].push(node);
  const foldable = data.hosts > 128 && members.some((pod) => pod.length > 1);
  const folded = (pod) => foldable && pod >= 0 && !now.open.has(pod) && members[pod].length > 1;
  const [wide, high] = foldable ? [1200, 420] : [640, 330];
  const hostsOf = members.map((pod) => pod.filter((node) => node < data.hosts).length);
  let place, boxes, bundles, bundleOf;
  const layOut = () => {
    const opened = [...now.open].reduce((sum, pod) => sum + hostsOf[pod], 0);
    const narrow = Math.max(4, Math.ceil(opened / Math.max(4, pods)));
    const room = members.map((_, pod) => (folded(pod) ? narrow : Math.max(1, hostsOf[pod])));
    const all = room.reduce((sum, slots) => sum + slots, 0);
    const y = (depth) => high - 34 - (depth / Math.max(1, top)) * (high - 60);
    place = Array.from({ length: nodes });
    boxes = [];
    let from = 12;
    const scale = (wide - 24) / Math.max(1, all);
    members.forEach((pod, number) => {
      const [left, width] = [from, room[number] * scale];
      from += width;
      const box = { pod: number, left: left + 3, width: width - 6, top: y(Math.max(0, top - 1)) - 12, bottom: y(0) + 12 };
      if (foldable && pod.length > 1) boxes.push(box);
      for (const node of pod) {
        const abreast = pod.filter((other) => data.level[other] === data.level[node]).length;
        place[node] = folded(number)
          ? [left + width / 2, box.top]
          : [left + ((data.order[node] + 0.5) / abreast) * width, y(data.level[node])];
      }
    });
    const highest = data.pod.filter((pod) => pod < 0).length;
    for (let node = 0; node < nodes; node++)
      if (data.pod[node] < 0) place[node] = [12 + ((data.order[node] + 0.5) / highest) * (wide - 24), y(top)];
    const known = new Map();
    bundles = [];
    bundleOf = new Int32Array(links).fill(-1);
    for (let link = 0; link < links; link++) {
      const [a, b] = [data.links[2 * link], data.links[2 * link + 1]];
      if (folded(data.pod[a]) && data.pod[a] === data.pod[b]) continue;
      const key = [a, b].map((node) => (folded(data.pod[node]) ? `p${data.pod[node]}` : node)).join();
      if (!known.has(key)) {
        known.set(key, bundles.length);
        bundles.push({ from: place[a], to: place[b], ports: [] });
      }
      bundleOf[link] = known.get(key);
      bundles[bundleOf[link]].ports.push(2 * link, 2 * link + 1);
    }
    for (const box of boxes)
      box.ports = data.pod.length && folded(box.pod)
        ? Array.from({ length: ports }, (_, port) => port).filter((port) => data.pod[end(port, 0)] === box.pod && data.pod[end(port, 1)] === box.pod)
        : [];
  };

  // --- drawing --------------------------------------------------------------------------------------------------------------
  const element = (name, attributes, within) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, text] of Object.entries(attributes)) made.setAttribute(key, text);
    within?.append(made);
    return made;
  };
  const build = () => {
    layOut();
    const many = place.filter((spot, node) => !folded(data.pod[node])).length;
    const radius = Math.max(1.5, Math.min(4.5, 260 / many));
    for (const panel of panels) {
      panel.map.replaceChildren();
      panel.map.setAttribute("viewBox", `0 0 ${wide} ${high}`);
      panel.frames = boxes.map((box) => {
        const shut = folded(box.pod);
        const label = `pod ${box.pod}: ${hostsOf[box.pod]} hosts`;
        const group = element("g", { class: "fold", tabindex: 0, role: "button", "aria-expanded": !shut, "aria-label": label, "data-pod": box.pod }, panel.map);
        const frame = shut ? element("rect", { class: "pod", x: box.left, y: box.top, width: box.width, height: box.bottom - box.top, rx: 5 }, group) : null;
        const text = { x: box.left + box.width / 2, y: shut ? (box.top + box.bottom) / 2 + 4 : box.bottom + 12 };
        element("text", text, group).textContent = shut ? box.pod : `fold pod ${box.pod}`;
        return frame;
      });
      // What is hot lies on top, and the ways of a flow between it and all else.
      [panel.cold, panel.ways, panel.hot] = [0, 1, 2].map(() => element("g", {}, panel.map));
      panel.lines = bundles.map(({ from, to }) => element("line", { class: "link l0", x1: from[0], y1: from[1], x2: to[0], y2: to[1] }, panel.cold));
      const dots = [];
      for (let node = 0; node < nodes; node++) {
        if (folded(data.pod[node])) continue;
        const [x, y] = place[node].map((number) => Number(number.toFixed(1)));
        const r = radius;
        dots.push(node < data.hosts ? `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0` : `M${x - r} ${y - r}h${2 * r}v${2 * r}h${-2 * r}z`);
      }
      element("path", { class: "node", d: dots.join("") }, panel.map);
      panel.mark = element("g", {}, panel.map);
    }
    light();
    paint();
  };
  const hottest = (scheme, of, at = now.at) => {
    let most = 0;
    for (const port of of) most = Math.max(most, worst(scheme, now.by, port, at));
    return most;
  };
  const paint = () => {
    const time = (now.at + 1) * data.interval_ns;
    id("time").value = String(now.at + 1);
    id("time").setAttribute("aria-valuetext", milliseconds(time));
    id("now").textContent = milliseconds(time);
    shown().forEach((scheme, number) => {
      const panel = panels[number];
      const over = now.at >= scheme.instants;
      const heats = bundles.map((bundle) => level(now.by, hottest(scheme, bundle.ports)));
      panel.lines.forEach((line, at) => {
        const name = `link l${heats[at]}`;
        if (line.getAttribute("class") !== name) {
          line.setAttribute("class", name);
          (heats[at] > 0 ? panel.hot : panel.cold).append(line);
        }
      });
      boxes.forEach((box, at) => panel.frames[at]?.setAttribute("class", `pod l${level(now.by, hottest(scheme, box.ports))}`));
      let lost = 0;
      for (let port = 0; port < ports; port++) lost += dropped(scheme, port, now.at);
      const said = over ? "its run is over" : lost ? `${lost.toLocaleString("en")} packets dropped just now` : "";
      if (panel.said.textContent !== said) panel.said.textContent = said;
      panel.map.setAttribute("aria-label", `The fabric under ${scheme.name} at ${milliseconds(time)}`);
      panel.mark.replaceChildren();
      if (now.picked !== null) {
        const bundle = bundles[bundleOf[now.picked >> 1]];
        if (bundle) element("circle", { class: "picked", cx: (bundle.from[0] + bundle.to[0]) / 2, cy: (bundle.from[1] + bundle.to[1]) / 2, r: 11 }, panel.mark);
      }
    });
    drawSeries();
  };
  const legend = () => {
    const unit = now.by === "queue" ? "packets" : "%";
    const range = (step) => {
      const [low, most] = [bounds[now.by][step - 1], bounds[now.by][step]];
      if (step === 0) return now.by === "queue" ? "nothing waits" : `up to ${most} %`;
      return most === undefined ? `more than ${Math.round(low)} ${unit}` : `to ${Math.round(most)} ${unit}`;
    };
    id("legend").replaceChildren(
      ...[0, 1, 2, 3, 4, 5].map((step) => {
        const item = document.createElement("li");
        const sample = element("svg", { class: "fabric-map", viewBox: "0 0 30 10", "aria-hidden": true }, item);
        element("line", { class: `link l${step}`, x1: 0, y1: 5, x2: 30, y2: 5 }, sample);
        item.append(range(step));
        return item;
      }),
    );
  };

  // --- a link over time -----------------------------------------------------------------------------------------------------
  const drawSeries = () => {
    id("series").hidden = now.picked === null;
    if (now.picked === null) return;
    const [width, height, left, foot] = [1000, 190, 44, 24];
    const svg = id("series-drawn");
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("preserveAspectRatio", "none");
    svg.replaceChildren();
    const both = [now.picked, now.picked ^ 1];
    const compared = [...new Set(shown())];
    const amount = (scheme, port, at) => (now.by === "queue" ? packets(value(scheme, "queue", port, at)) : value(scheme, "use", port, at));
    let most = now.by === "queue" ? 1 : 100;
    for (const scheme of compared) for (const port of both) for (let at = 0; at < scheme.instants; at++) most = Math.max(most, amount(scheme, port, at));
    const x = (at) => left + ((at + 1) / data.instants) * (width - left - 8);
    const y = (number) => height - foot - (number / most) * (height - foot - 12);
    element("path", { class: "axis", d: `M${left} 8V${height - foot}H${width - 8}` }, svg);
    element("text", { x: left - 5, y: 18, "text-anchor": "end" }, svg).textContent = String(most);
    element("text", { x: left - 5, y: height - foot, "text-anchor": "end" }, svg).textContent = "0";
    element("text", { x: width - 8, y: height - 6, "text-anchor": "end" }, svg).textContent = milliseconds(data.instants * data.interval_ns);
    for (const scheme of compared)
      both.forEach((port, back) => {
        let d = "";
        for (let at = 0; at < scheme.instants; at++) d += `${at ? "L" : "M"}${x(at).toFixed(1)} ${y(amount(scheme, port, at)).toFixed(1)}`;
        element("path", { class: back ? "back" : "", d, style: `stroke: ${scheme.colour}` }, svg);
      });
    element("path", { class: "axis", d: `M${x(now.at)} 8V${height - foot}` }, svg);
    const names = compared.map((scheme) => scheme.name).join(" and ");
    const what = now.by === "queue" ? "waiting packets" : "utilisation (%)";
    id("series-title").textContent = `${called(now.picked)} (solid) and back (dashed): ${what} under ${names}`;
  };

  // --- the slowest flows, and their ways ------------------------------------------------------------------------------------
  const light = () => {
    const flow = data.flows.find((one) => one.id === now.flow);
    for (const row of document.querySelectorAll("#fabric-flows tr")) row.setAttribute("aria-selected", String(Number(row.dataset.flow) === now.flow));
    panels.forEach((panel, number) => {
      panel.ways.replaceChildren();
      const of = flow?.of[panels[number].choice.selectedIndex];
      if (!of) return;
      for (const copy of [...new Set(of.ways.map((way) => way[0]))].reverse()) {
        const parts = of.ways.filter((way) => way[0] === copy && bundleOf[way[1] >> 1] >= 0);
        const d = parts.map(([, port]) => `M${place[end(port, 0)].join(" ")}L${place[end(port, 1)].join(" ")}`).join("");
        const lost = of.winner !== null && copy !== of.winner;
        element("path", { class: lost ? "way lost" : "way", d, "data-copy": copy }, panel.ways);
      }
      for (const host of [flow.src, flow.dst]) element("circle", { class: "end", cx: place[host][0], cy: place[host][1], r: 8 }, panel.ways);
    });
    id("chosen").textContent = flow ? told(flow) : "";
  };
  const took = (of) => (!of ? "–" : of.ns === null ? "not finished" : milliseconds(of.ns));
  const told = (flow) => {
    const each = schemes.map((scheme, at) => [scheme.name, flow.of[at]]).filter(([, of]) => of);
    return `Flow ${flow.id} from ${data.names[flow.src]} to ${data.names[flow.dst]}, begun at ${milliseconds(flow.start_ns)}, took ${each.map(([name, of]) => `${took(of)} under ${name}`).join(", ")}.`;
  };
  const follow = (number) => {
    now.flow = now.flow === number ? null : number;
    const flow = data.flows.find((one) => one.id === now.flow);
    if (flow) {
      now.at = flow.at;
      if (foldable) now.open = new Set([data.pod[flow.src], data.pod[flow.dst]]);
    }
    if (foldable) build();
    light();
    paint();
  };
  const cell = (row, text, kind = "td") => {
    const made = document.createElement(kind);
    made.append(text);
    if (kind === "th") made.scope = "col";
    row.append(made);
  };
  const listFlows = () => {
    const scheme = panels[0].choice.selectedIndex;
    id("flows-of").textContent = schemes[scheme].name;
    id("flows-head").replaceChildren();
    for (const title of ["flow", "from", "to", "bytes", "begun", ...schemes.map((one) => one.name)]) cell(id("flows-head"), title, "th");
    const listed = data.flows.filter((flow) => flow.lists.includes(scheme));
    const slow = (flow) => flow.of[scheme]?.slowdown ?? Infinity;
    listed.sort((one, other) => slow(other) - slow(one) || one.id - other.id);
    id("flows").replaceChildren(
      ...listed.map((flow) => {
        const row = document.createElement("tr");
        row.dataset.flow = flow.id;
        const button = document.createElement("button");
        button.type = "button";
        button.textContent = `${flow.id}`;
        button.setAttribute("aria-label", `show the path of flow ${flow.id}`);
        button.addEventListener("click", () => follow(flow.id));
        cell(row, button);
        for (const text of [data.names[flow.src], data.names[flow.dst], flow.bytes.toLocaleString("en"), milliseconds(flow.start_ns)]) cell(row, text);
        for (const of of flow.of) cell(row, took(of));
        return row;
      }),
    );
    light();
  };

  // --- the mouse and the keyboard -------------------------------------------------------------------------------------------
  const say = (text) => (document.getElementById("spoken").textContent = text);
  const numbers = (scheme, port) => {
    const [queue, use] = ["queue", "use"].map((what) => value(scheme, what, port, now.at));
    const drops = dropped(scheme, port, now.at);
    return `${called(port)}: ${packets(queue)} packets wait, ${use} % used${drops ? `, ${drops.toLocaleString("en")} dropped` : ""}`;
  };
  const describe = (scheme, of) => {
    const [first, second] = [...of].sort((one, other) => value(scheme, now.by, other, now.at) - value(scheme, now.by, one, now.at));
    const bundle = of.length > 2 ? `${of.length / 2} links, the fullest:\n` : `${data.gbps[first >> 1]} Gbit/s\n`;
    return `${bundle}${numbers(scheme, first)}${second === undefined ? "" : `\n${numbers(scheme, second)}`}`;
  };
  const nearest = (panel, event) => {
    const box = panel.map.getBoundingClientRect();
    const [x, y] = [((event.clientX - box.left) / box.width) * wide, ((event.clientY - box.top) / box.height) * high];
    let [best, distance] = [null, (9 / box.width) * wide];
    for (const bundle of bundles) {
      const [[ax, ay], [bx, by]] = [bundle.from, bundle.to];
      const along = Math.max(0, Math.min(1, ((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / ((bx - ax) ** 2 + (by - ay) ** 2 || 1)));
      const apart = Math.hypot(x - ax - along * (bx - ax), y - ay - along * (by - ay));
      if (apart < distance) [best, distance] = [bundle, apart];
    }
    return best;
  };
  const pick = (port) => {
    now.picked = port;
    paint();
  };
  const fold = (pod) => {
    if (now.open.has(pod)) now.open.delete(pod);
    else now.open.add(pod);
    build();
  };
  const most = (scheme, of) => of.reduce((best, port) => (worst(scheme, now.by, port, now.at) > worst(scheme, now.by, best, now.at) ? port : best));
  panels.forEach((panel, number) => {
    const scheme = () => shown()[number];
    panel.map.addEventListener("pointermove", (event) => {
      const box = event.target.closest?.("[data-pod]");
      const inside = box ? boxes.find((one) => one.pod === Number(box.dataset.pod)) : null;
      const bundle = inside ? null : nearest(panel, event);
      const tip = id("tip");
      tip.hidden = !bundle && !inside;
      if (tip.hidden) return;
      tip.textContent = inside ? `pod ${inside.pod}, ${hostsOf[inside.pod]} hosts; click to ${folded(inside.pod) ? "unfold" : "fold"}${inside.ports.length ? `\n${describe(scheme(), inside.ports)}` : ""}` : describe(scheme(), bundle.ports);
      tip.style.left = `${Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)}px`;
      tip.style.top = `${Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8)}px`;
    });
    panel.map.addEventListener("pointerleave", () => (id("tip").hidden = true));
    panel.map.addEventListener("click", (event) => {
      const box = event.target.closest?.("[data-pod]");
      if (box) return fold(Number(box.dataset.pod));
      const bundle = nearest(panel, event);
      return pick(bundle ? most(scheme(), bundle.ports) : null);
    });
    let walked = -1;
    panel.map.addEventListener("keydown", (event) => {
      const pod = event.target.dataset?.pod;
      if (pod !== undefined && (event.key === "Enter" || event.key === " ")) {
        event.preventDefault();
        fold(Number(pod));
        return panel.map.querySelector(`[data-pod="${pod}"]`).focus();
      }
      const [step, walk] = [{ ArrowLeft: -1, ArrowRight: 1 }[event.key], { ArrowUp: -1, ArrowDown: 1 }[event.key]];
      if (step) {
        event.preventDefault();
        move(now.at + step);
        say(milliseconds((now.at + 1) * data.interval_ns));
      } else if (walk) {
        event.preventDefault();
        const ranked = [...bundles].sort((one, other) => hottest(scheme(), other.ports) - hottest(scheme(), one.ports));
        walked = (walked + walk + ranked.length) % ranked.length;
        pick(most(scheme(), ranked[walked].ports));
        say(describe(scheme(), ranked[walked].ports));
      } else if (event.key === "Escape") {
        walked = -1;
        pick(null);
      }
    });
    panel.choice.addEventListener("change", () => {
      listFlows();
      paint();
    });
  });

  // --- time -----------------------------------------------------------------------------------------------------------------
  const move = (at) => {
    now.at = Math.max(0, Math.min(data.instants - 1, at));
    paint();
  };
  let playing = null;
  const play = (on) => {
    clearInterval(playing);
    playing = on ? setInterval(() => (now.at + 1 < data.instants ? move(now.at + 1) : play(false)), 80) : null;
    id("play").textContent = on ? "Pause" : "Play";
  };
  id("play").addEventListener("click", () => {
    if (!playing && now.at + 1 === data.instants) move(0);
    play(!playing);
  });
  id("time").addEventListener("input", () => {
    play(false);
    move(Number(id("time").value) - 1);
  });
  id("by").addEventListener("change", () => {
    now.by = id("by").value;
    legend();
    paint();
  });
  now.at = Math.min(data.instants - 1, data.flows[0]?.at ?? 0);
  legend();
  build();
  listFlows();
  id("time").dataset.ready = "true";
})();
