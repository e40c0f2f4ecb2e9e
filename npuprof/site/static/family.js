"use strict";
// The picture of who extends whom: colours, search, and the family of one preset drawn by itself, as wide as the window is.
(() => {
  const { find, make, say, readFragment } = npuprof;
  const LETTER = 7.25, LINE = 24, PAD = 8, ACROSS = 16, DOWN = 44, TALL = 20, LONGEST = 64, READABLE = 0.85;
  const draw = (name, attributes) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };

  function setUp() {
    const picture = find("family"), region = picture.parentElement;
    const links = [...picture.querySelectorAll("a")];
    // The tip of a name says its colours in words.
    const names = links.map((one) => {
      const name = (one.querySelector("title") || one.querySelector("text")).textContent, said = one.querySelector("desc"), tip = draw("title", {});
      tip.textContent = [name, ...(said ? [said.textContent] : [])].join(", ");
      for (const old of one.querySelectorAll("title, desc")) old.remove();
      one.prepend(tip);
      return (one.dataset.name = name);
    });
    find("names").append(...names.map((name) => make("option", undefined, { value: name })));
    const place = new Map(names.map((name, index) => [name, index]));
    const up = names.map(() => []), down = names.map(() => []), second = new Set();
    for (const path of picture.querySelectorAll("path")) {
      const above = Number(path.dataset.up);
      for (const below of path.dataset.down.split(" ").map(Number)) {
        up[below].push(above);
        down[above].push(below);
        if (path.classList.contains("second")) second.add(`${above} ${below}`);
      }
    }
    const field = find("focus"), colour = find("colour");

    // How many steps each that is reached lies away, by the longest way; a circle is walked once.
    const measure = (from, next) => {
      const reached = new Set([from]), waiting = [from];
      while (waiting.length) for (const one of next[waiting.pop()]) if (!reached.has(one)) { reached.add(one); waiting.push(one); }
      const far = new Map([[from, 0]]);
      let wave = [from];
      for (let step = 1; wave.length && step <= reached.size; step += 1) {
        wave = [...new Set(wave.flatMap((one) => next[one]))].filter((one) => one !== from);
        for (const one of wave) far.set(one, step);
      }
      return far;
    };

    // Layers above as boxes of one name, below as well where a name is extended; others of a layer share a box if they have the same parents.
    const arrange = (from, above, below, most, width) => {
      const layers = [];
      const group = (far) => { const rows = []; for (const [one, step] of far) if (step) (rows[step] = rows[step] || []).push(one); return rows; };
      const byName = (one, other) => (names[one] < names[other] ? -1 : 1);
      for (const layer of group(above).reverse()) if (layer) layers.push(layer.sort(byName).map((one) => [one]));
      layers.push([[from]]);
      for (const layer of group(below)) {
        if (!layer) continue;
        const own = layer.filter((one) => down[one].length).sort(byName), rest = layer.filter((one) => !down[one].length).sort(byName);
        const shared = new Map();  // by the parents that are drawn, so that a line to a box is one to each of its names
        for (const one of rest) {
          const mark = up[one].filter((parent) => above.has(parent) || below.has(parent)).map((parent) => `${parent} ${second.has(`${parent} ${one}`)}`).sort().join();
          shared.set(mark, [...(shared.get(mark) || []), one]);
        }
        layers.push([...own.map((one) => [one]), ...shared.values()]);
      }
      const boxes = [];
      let y = PAD, widest = 0;
      for (const layer of layers) {
        const rows = [[]];
        for (const held of layer) {
          const columns = Math.min(most, Math.ceil(held.length / TALL)), box = { held, columns, rows: Math.ceil(held.length / columns) };
          box.width = width * columns; box.height = PAD * 2 + LINE * box.rows;
          const last = rows[rows.length - 1], used = last.reduce((sum, one) => sum + one.columns, 0);
          if (last.length && used + columns > most) rows.push([box]); else last.push(box);
        }
        for (const row of rows) {
          let x = 0;
          for (const box of row) { box.x = x; box.y = y; x += box.width + ACROSS; boxes.push(box); }
          row.width = x - ACROSS;
          widest = Math.max(widest, row.width);
          y += Math.max(...row.map((box) => box.height)) + (row === rows[rows.length - 1] ? DOWN : ACROSS);
        }
        layer.rows = rows;
      }
      for (const layer of layers) for (const row of layer.rows) for (const box of row) box.x += PAD + (widest - row.width) / 2;
      return { boxes, width: widest + PAD * 2, height: y - DOWN + PAD };
    };

    const drawAround = (from) => {
      const above = measure(from, up), below = measure(from, down);
      const column = Math.min(LONGEST, Math.max(...[...above.keys(), ...below.keys()].map((one) => names[one].length))) * LETTER + PAD * 2;
      const most = Math.max(1, Math.min(6, Math.floor((region.clientWidth - PAD * 2 + ACROSS) / (column + ACROSS))));
      const { boxes, width, height } = arrange(from, above, below, most, column);
      const home = new Map(boxes.flatMap((box) => box.held.map((one) => [one, box])));
      const made = draw("svg", { class: "family around", role: "group", "aria-label": `The family of ${names[from]}`, width, height, viewBox: `0 0 ${width} ${height}` });
      made.id = "around";
      made.dataset.colour = colour.value;
      const drawn = new Set(), ends = new Map();
      for (const [one, box] of home) for (const parent of up[one]) {
        const other = home.get(parent), kind = second.has(`${parent} ${one}`) ? "second" : "";
        const near = (above.has(parent) && above.has(one)) || (below.has(parent) && below.has(one));
        const mark = other && `${boxes.indexOf(other)} ${boxes.indexOf(box)} ${kind}`;
        if (!other || other === box || !near || drawn.has(mark)) continue;
        drawn.add(mark);
        ends.set(box, [...(ends.get(box) || []), [other, kind]]);
      }
      // Lines end side by side, so that none hides another.
      for (const [box, lines] of ends) {
        lines.sort(([one], [other]) => one.x - other.x);
        lines.forEach(([other, kind], index) => {
          const x1 = other.x + other.width / 2, y1 = other.y + other.height, x2 = box.x + (box.width * (index + 1)) / (lines.length + 1), middle = (y1 + box.y) / 2;
          made.append(draw("path", { d: `M${x1} ${y1}C${x1} ${middle} ${x2} ${middle} ${x2} ${box.y}`, class: kind }));
        });
      }
      for (const box of boxes) {
        const part = draw("g", {});
        part.append(draw("rect", { x: box.x, y: box.y, width: box.width, height: box.height, rx: 4 }));
        box.held.forEach((one, index) => {
          const link = links[one].cloneNode(true), text = link.querySelector("text");
          text.setAttribute("x", box.x + PAD + column * Math.floor(index / box.rows));
          text.setAttribute("y", box.y + PAD + LINE * (index % box.rows) + 16);
          link.setAttribute("class", `${links[one].getAttribute("class").replace(/ (away|found)/g, "")}${one === from ? " found" : ""}`);
          part.append(link);
        });
        made.append(part);
      }
      return [made, above.size - 1, below.size - 1];
    };

    // The lines of the preset under the pointer, or that has the focus, stand out.
    const light = (link) => {
      const at = link ? place.get(link.dataset.name) : -1;
      for (const path of picture.querySelectorAll("path")) path.classList.toggle("lit", at >= 0 && [path.dataset.up, ...path.dataset.down.split(" ")].includes(String(at)));
      picture.classList.toggle("lit", at >= 0);
    };
    for (const event of ["pointerover", "focusin"]) picture.addEventListener(event, (held) => light(held.target.closest("a")));
    for (const event of ["pointerleave", "focusout"]) picture.addEventListener(event, () => light(null));

    const focus = (name) => {
      const old = find("around");
      if (old) old.remove();
      picture.toggleAttribute("hidden", place.has(name));
      for (const one of links) one.classList.remove("away", "found");
      if (!place.has(name)) { say(`${names.length} presets`); return; }
      const [made, above, below] = drawAround(place.get(name));
      region.prepend(made);
      region.scrollTo(0, 0);
      say(`${above} above, ${below} below`);
    };
    const search = () => {
      const text = field.value.trim().toLowerCase();
      const hits = text ? links.filter((one) => one.dataset.name.toLowerCase().includes(text)) : [];
      const exact = hits.find((one) => one.dataset.name.toLowerCase() === text) || (hits.length === 1 ? hits[0] : null);
      focus(exact ? exact.dataset.name : "");
      if (!text || exact) return;
      links.forEach((one) => { one.classList.toggle("away", !hits.includes(one)); one.classList.toggle("found", hits.includes(one)); });
      if (hits.length) hits[0].scrollIntoView({ block: "nearest", inline: "center" });
      say(`${hits.length} found`);
    };
    // The address holds the preset that is looked at and the colours: #NAME&colour=scenario.
    const write = (name) => { location.hash = [name && encodeURIComponent(name), colour.selectedIndex && `colour=${colour.value}`].filter(Boolean).join("&"); };
    const follow = () => {
      colour.value = npuprof.readChoice().get("colour") || "";
      if (colour.selectedIndex < 0) colour.selectedIndex = 0;
      recolour();
      field.value = readFragment().find((part) => !part.startsWith("colour=")) || "";
      search();
    };
    const clear = () => { field.value = ""; if (location.hash) write(""); search(); };
    const legend = document.querySelector(".legend");
    const recolour = () => {
      for (const one of region.querySelectorAll("svg")) one.dataset.colour = colour.value;
      for (const part of legend.querySelectorAll("[class^=by]")) part.hidden = !part.classList.contains(`by-${colour.value}`);
    };
    field.addEventListener("input", search);
    field.addEventListener("change", () => { if (place.has(field.value.trim())) write(field.value.trim()); });
    colour.addEventListener("change", () => { recolour(); write(place.has(field.value.trim()) ? field.value.trim() : ""); });
    find("whole").addEventListener("click", clear);
    npuprof.addButtons(field.form, null);
    npuprof.watchKeys(field, clear);
    window.addEventListener("hashchange", follow);
    // Opens as wide as the window, but with letters of 10 pixels or more; a very wide one at the preset with most descendants.
    const whole = Number(picture.getAttribute("width")), tall = Number(picture.getAttribute("height"));
    let scale = 1;
    const zoom = (wanted) => {
      scale = Math.max(0.1, Math.min(2, wanted));
      picture.setAttribute("width", Math.round(whole * scale));
      picture.setAttribute("height", Math.round(tall * scale));
    };
    const findScale = () => Math.min(1, region.clientWidth / whole);
    find("smaller").addEventListener("click", () => zoom(scale / 1.25));
    find("larger").addEventListener("click", () => zoom(scale * 1.25));
    find("fit").addEventListener("click", () => zoom(findScale()));
    zoom(Math.max(findScale(), READABLE));
    if (findScale() < 0.25) {
      zoom(1);
      const below = down.map((found, above) => found.filter((one) => !second.has(`${above} ${one}`)));
      const greatest = names.map((_, index) => index).filter((index) => !up[index].length).sort((one, other) => measure(other, below).size - measure(one, below).size)[0];
      region.scrollTop = Number(links[greatest].querySelector("text").getAttribute("y")) - region.clientHeight / 2;
    }
    follow();
  }

  document.addEventListener("DOMContentLoaded", setUp);
})();
