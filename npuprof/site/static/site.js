"use strict";
// What moves on the pages: searching lists, the family of one preset, comparing, copying. All that is shown is text, never markup.
const npuprof = (() => {
  const find = (id) => document.getElementById(id);
  const make = (name, text, attributes = {}) => {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };
  const say = (text) => { const place = find("count"); if (place) place.textContent = text; };

  function setUpSearch() {
    const field = document.querySelector("input[data-for]");
    if (!field) return;
    const rows = [...find(field.dataset.for).tBodies[0].rows];
    const texts = rows.map((row) => row.textContent.toLowerCase());
    const filters = [...document.querySelectorAll("select[data-filter]")];
    const apply = () => {
      const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      const wanted = filters.filter((one) => one.value).map((one) => [one.dataset.filter, one.value]);
      let left = 0;
      rows.forEach((row, index) => {
        const passes = ([name, value]) => {
          const held = row.dataset[name] || "";
          if (name === "state") return held === value;
          const parts = held.split(" ");
          return parts.includes(value) || (name === "release" && parts.includes("any")) || (name === "product" && !held);
        };
        const shown = words.every((word) => texts[index].includes(word)) && wanted.every(passes);
        if (row.hidden === shown) row.hidden = !shown;
        left += shown;
      });
      say(words.length || wanted.length ? `${left} of ${rows.length}` : `${rows.length}`);
    };
    field.addEventListener("input", apply);
    field.form.addEventListener("submit", (event) => event.preventDefault());
    filters.forEach((one) => one.addEventListener("change", apply));
    document.addEventListener("keydown", (event) => {
      if (event.key === "/" && !/^(input|select|textarea)$/i.test(event.target.tagName)) { event.preventDefault(); field.focus(); }
    });
    apply();
  }

  function setUpFamily() {
    const picture = find("family");
    if (!picture) return;
    const names = [...picture.querySelectorAll("a[data-name]")];
    const lines = [...picture.querySelectorAll("path")].map((path) => ({ path, up: path.dataset.up, down: JSON.parse(path.dataset.down) }));
    const field = find("focus"), colour = find("colour"), form = field.form;
    const parentsOf = new Map(), childrenOf = new Map();
    const add = (map, key, value) => map.set(key, (map.get(key) || []).concat(value));
    lines.forEach((line) => line.down.forEach((name) => { add(parentsOf, name, line.up); add(childrenOf, line.up, name); }));
    const reach = (name, map) => {
      const seen = new Set([name]), waiting = [name];
      while (waiting.length) for (const next of map.get(waiting.pop()) || []) if (!seen.has(next)) { seen.add(next); waiting.push(next); }
      return seen;
    };
    const focus = (name) => {
      const above = name ? reach(name, parentsOf) : null, below = name ? reach(name, childrenOf) : null;
      const near = (one) => !name || above.has(one) || below.has(one);
      names.forEach((one) => { one.classList.toggle("away", !near(one.dataset.name)); one.classList.toggle("found", one.dataset.name === name); });
      picture.querySelectorAll("g").forEach((box) => box.querySelector("rect").classList.toggle("away", !box.querySelector("a:not(.away)")));
      lines.forEach((line) => {
        const close = !!name && near(line.up) && line.down.some((one) => near(one) && (above.has(one) || below.has(line.up)));
        line.path.classList.toggle("near", close);
        line.path.classList.toggle("away", !!name && !close);
      });
      say(name ? `${above.size - 1} above, ${below.size - 1} below` : `${names.length} presets`);
      const found = names.find((one) => one.dataset.name === name);
      if (found) found.scrollIntoView({ block: "center", inline: "center" });
    };
    const search = () => {
      const text = field.value.trim().toLowerCase();
      if (!text) { focus(""); return; }
      const hits = names.filter((one) => one.dataset.name.toLowerCase().includes(text));
      const exact = hits.find((one) => one.dataset.name.toLowerCase() === text);
      if (exact || hits.length === 1) { focus((exact || hits[0]).dataset.name); return; }
      focus("");
      names.forEach((one) => { one.classList.toggle("away", !hits.includes(one)); one.classList.toggle("found", hits.includes(one)); });
      say(`${hits.length} found`);
    };
    const follow = () => {
      const name = readFragment()[0] || "";
      field.value = name;
      focus(names.some((one) => one.dataset.name === name) ? name : "");
    };
    field.addEventListener("input", search);
    form.addEventListener("submit", (event) => { event.preventDefault(); location.hash = encodeURIComponent(field.value.trim()); });
    find("whole").addEventListener("click", () => { location.hash = ""; field.value = ""; focus(""); });
    const legend = document.querySelector(".legend");
    const recolour = () => {
      picture.dataset.colour = colour.value;
      for (const part of legend.children) part.hidden = !part.classList.contains(`by-${colour.value}`);
    };
    colour.addEventListener("change", recolour);
    window.addEventListener("hashchange", follow);
    recolour();
    follow();
  }

  const readFragment = () => location.hash.slice(1).split("&").filter(Boolean).map((part) => {
    try { return decodeURIComponent(part); } catch { return part; }
  });

  const paths = new Map(), sides = new Map();
  let risks = [];

  function setUpCompare() {
    const form = find("choose");
    if (!form) return;
    const field = find("add"), chosen = find("chosen"), table = find("compared"), same = find("same");
    const write = (names) => { location.hash = names.map(encodeURIComponent).join("&"); };
    const rank = (one) => { const known = risks.indexOf((one || [])[0]); return known < 0 ? risks.length : known; };
    const draw = () => {
      const asked = readFragment(), names = asked.filter((name) => sides.has(name));
      chosen.replaceChildren(...asked.map((name) => {
        const chip = make("span", name, { class: "chip" });
        if (!paths.has(name)) chip.append(make("span", "is not in this site", { class: "error" }));
        const button = make("button", "remove", { type: "button", "aria-label": `Remove ${name}` });
        button.addEventListener("click", () => write(asked.filter((one) => one !== name)));
        chip.append(button);
        return chip;
      }));
      const rows = new Map();
      names.forEach((name, column) => sides.get(name).forEach(([key, value, author, risk, meaning]) => {
        if (!rows.has(key)) rows.set(key, { key, risk, meaning, cells: names.map(() => null) });
        rows.get(key).cells[column] = { value, author };
      }));
      const differs = (row) => new Set(row.cells.map((cell) => (cell ? cell.value : null))).size > 1;
      const shown = [...rows.values()].filter((row) => same.checked || differs(row));
      shown.sort((one, other) => differs(other) - differs(one) || rank(one.risk) - rank(other.risk) || (one.key < other.key ? -1 : 1));
      const head = make("thead"), top = make("tr"), body = make("tbody");
      top.append(make("th", "setting", { scope: "col" }), ...names.map((name) => make("th", name, { scope: "col" })));
      head.append(top);
      for (const row of shown) {
        const line = make("tr"), name = make("th", undefined, { scope: "row", title: row.meaning });
        name.append(make("code", row.key));
        if (row.risk.length) name.append(make("br"), make("span", row.risk.join(", "), { class: "quiet" }));
        line.append(name, ...row.cells.map((cell) => {
          const place = make("td");
          if (cell) place.append(make("code", cell.value), make("br"), make("span", cell.author, { class: "quiet" }));
          else place.append(make("span", "not set", { class: "quiet" }));
          return place;
        }));
        body.append(line);
      }
      const told = names.length < 2 ? "Choose two or more." : shown.length ? `${shown.length} settings` : "Nothing differs.";
      table.replaceChildren(make("caption", told, { class: "quiet" }), ...(names.length && shown.length ? [head, body] : []));
    };
    const load = () => {
      for (const name of readFragment()) {
        if (sides.has(name) || !paths.has(name)) continue;
        const script = make("script", undefined, { src: paths.get(name) });
        script.addEventListener("load", draw);
        document.head.append(script);
      }
      draw();
    };
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const name = field.value.trim();
      if (name && !readFragment().includes(name)) write([...readFragment(), name]);
      field.value = "";
    });
    same.addEventListener("change", draw);
    window.addEventListener("hashchange", load);
    window.addEventListener("load", load);
  }

  function setUpCopying() {
    if (!navigator.clipboard) return;
    for (const text of document.querySelectorAll("pre")) {
      const button = make("button", "Copy", { type: "button", class: "copy" });
      button.addEventListener("click", async () => {
        try { await navigator.clipboard.writeText(text.textContent); button.textContent = "Copied"; } catch { button.textContent = "Cannot copy"; }
      });
      text.before(button);
    }
  }

  document.addEventListener("DOMContentLoaded", () => { setUpSearch(); setUpFamily(); setUpCompare(); setUpCopying(); });
  return {
    index: (list, order) => { for (const [name, path] of list) paths.set(name, path); risks = order; },
    settings: (name, rows) => sides.set(name, rows),
  };
})();
