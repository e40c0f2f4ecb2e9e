"use strict";
// Presets, revisions and runs side by side: which ones stands in the address, their settings are loaded when they are asked for.
(() => {
  const { find, make, load: loadScript, readFragment } = npuprof;
  const paths = new Map(), sides = new Map();
  let risks = [];
  npuprof.index = (list, order) => { for (const [name, path] of list) paths.set(name, path); risks = order; };
  npuprof.settings = (name, rows) => sides.set(name, rows);

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
        loadScript(paths.get(name), draw);
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
    npuprof.addButtons(form, () => { location.hash = ""; });
    load();
  }

  document.addEventListener("DOMContentLoaded", setUpCompare);
})();
