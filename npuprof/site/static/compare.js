"use strict";
// Presets, revisions and runs side by side: which ones stands in the address, their settings are loaded when they are asked for.
(() => {
  const { find, make, say, load: loadScript, readFragment } = npuprof;
  const paths = new Map(), sides = new Map(), failed = new Set();
  let risks = [], defaults = {};
  npuprof.index = (list, order, known) => { for (const [name, path] of list) paths.set(name, path); risks = order; defaults = known; };
  npuprof.settings = (name, rows) => sides.set(name, rows);

  function setUpCompare() {
    const form = find("choose");
    if (!form) return;
    const field = find("add"), chosen = find("chosen"), table = find("compared"), same = find("same");
    const write = (names) => { location.hash = names.map(encodeURIComponent).join("&"); };
    const rank = (held) => Math.min(risks.length, ...held.map((one) => risks.indexOf(one)).filter((known) => known >= 0));
    const chip = (asked, place) => {
      const name = asked[place], made = make("span", name, { class: "chip" }), button = make("button", "×", { type: "button", "aria-label": `Remove ${name}` });
      const wrong = lost(name);
      if (wrong) made.append(make("span", wrong, { class: "error" }));
      button.addEventListener("click", () => write(asked.filter((_, one) => one !== place)));
      made.append(button);
      return made;
    };
    const lost = (name) => (!paths.has(name) ? "is not in this site" : failed.has(name) ? "cannot be read: its file is missing beside this page" : "");
    // Where no override of a side says something of a product or a release, what holds everywhere holds there; of several that do, the closest.
    const findCell = (side, key, scope) => {
      const words = scope.split(", ");
      let found = null, most = -1;
      for (const one of side.get(key) || []) {
        const said = one.scope ? one.scope.split(", ") : [];
        if (said.length > most && said.every((word) => words.includes(word))) { found = one; most = said.length; }
      }
      return found && found.value ? found : null;
    };
    const listRows = (names) => {
      const held = names.map((name) => {
        const byKey = new Map();
        for (const [key, value = "", author = "", risk = [], meaning = "", unit = "", scope = ""] of sides.get(name)) {
          byKey.set(key, [...(byKey.get(key) || []), { key, value, author, risk, meaning, unit, scope }]);
        }
        return byKey;
      });
      const rows = new Map();
      for (const one of held.flatMap((side) => [...side.values()].flat())) {
        const mark = `${one.key}\n${one.scope}`;
        if (!rows.has(mark)) rows.set(mark, { ...one, cells: held.map((side) => findCell(side, one.key, one.scope)) });
      }
      return rows;
    };
    // What a program does with a setting that a side leaves out, if the side has others of that program.
    const findSection = (key) => (key.includes(".") ? key.split(".")[0] : "options");
    const findDefault = (key, name) => {
      const section = findSection(key), reads = section === "env" || sides.get(name).some(([other]) => findSection(other) === section);
      return reads && Object.hasOwn(defaults, key) ? defaults[key] : "";
    };
    const tell = (cells) => JSON.stringify(cells.map((cell) => (cell ? cell.value : null)));
    const differs = (row) => new Set(row.cells.map((cell) => (cell ? cell.value : null))).size > 1;
    const fill = (place, cell, key, name) => {
      const usual = cell ? "" : findDefault(key, name);
      if (cell) place.append(make("code", cell.value, { class: "value" }), cell.unit ? ` ${cell.unit}` : "", make("span", cell.author, { class: "origin" }));
      else place.append(make("span", usual ? `default ${usual}` : "not set", usual ? { class: "quiet", title: "not set here" } : { class: "quiet" }));
      return place;
    };
    // A side that overrides change has a column for each product or release that makes a difference.
    const drawCell = (row, name, index) => {
      const place = make("td", undefined, { "data-as": name }), values = [row, ...row.scoped].map((there) => tell([there.cells[index]]));
      if (values.every((value) => value === values[0])) return fill(place, row.cells[index], row.key, name);
      const columns = make("div", undefined, { class: "scopes" });
      for (const there of [{ ...row, scope: "elsewhere" }, ...row.scoped]) {
        const column = make("div");
        column.append(make("b", there.scope), fill(make("div"), there.cells[index], row.key, name));
        columns.append(column);
      }
      place.append(columns);
      return place;
    };
    const drawRow = (row, names) => {
      const line = make("tr"), title = make("th", undefined, { scope: "row", title: row.meaning });
      const risks = make("div");
      risks.append(...row.risk.flatMap((risk) => [make("span", risk, { class: `risk ${risk}` }), " "]));
      title.append(make("code", row.key), risks);
      line.append(title, ...names.map((name, index) => drawCell(row, name, index)));
      return line;
    };
    const draw = () => {
      const asked = readFragment(), names = asked.filter((name) => sides.has(name));
      // Who takes one away by keyboard goes on at the next one.
      const focused = [...chosen.querySelectorAll("button")].indexOf(document.activeElement);
      chosen.replaceChildren(...asked.map((_, place) => chip(asked, place)));
      if (focused >= 0) ([...chosen.querySelectorAll("button")].slice(0, focused + 1).pop() || field).focus();
      const rows = listRows(names), settings = new Map();
      for (const row of rows.values()) {
        const whole = rows.get(`${row.key}\n`) || { ...row, scope: "", cells: names.map(() => null) };
        if (!settings.has(row.key)) settings.set(row.key, { ...whole, scoped: [] });
        // An override that leaves the sides as far apart as they are everywhere says nothing new.
        if (row.scope && (same.checked || differs(row)) && tell(row.cells) !== tell(whole.cells)) settings.get(row.key).scoped.push(row);
      }
      const isDifferent = (row) => differs(row) || row.scoped.some(differs);
      const shown = [...settings.values()].filter((row) => same.checked || isDifferent(row));
      const order = (one, other) => (one < other ? -1 : one > other ? 1 : 0);
      for (const row of shown) row.scoped.sort((one, other) => order(one.scope, other.scope));
      shown.sort((one, other) => isDifferent(other) - isDifferent(one) || rank(one.risk) - rank(other.risk) || order(one.key, other.key));
      const head = make("thead"), top = make("tr"), body = make("tbody");
      top.append(make("th", "setting", { scope: "col" }), ...names.map((name) => make("th", name, { scope: "col" })));
      head.append(top);
      body.append(...shown.map((row) => drawRow(row, names)));
      const different = shown.filter(isDifferent).length;
      const told = names.length < 2 ? "Choose two or more." : different ? `${different} ${different === 1 ? "setting differs" : "settings differ"}` : "Nothing differs.";
      const wrong = asked.filter(lost).map((name) => `${name} ${lost(name)}`);
      find("examples").hidden = asked.length > 0;
      table.replaceChildren(make("caption", asked.length ? told : ""), ...(names.length && shown.length ? [head, body] : []));
      say([...wrong, asked.length - wrong.length > names.length ? "loading" : asked.length ? told : ""].filter(Boolean).join("; "));
    };
    const load = () => {
      for (const name of readFragment()) {
        if (sides.has(name) || !paths.has(name)) continue;
        failed.delete(name);
        loadScript(paths.get(name), draw, () => { failed.add(name); draw(); });
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
