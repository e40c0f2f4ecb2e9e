"use strict";
// Presets, revisions and runs side by side: which ones stands in the address, their settings are loaded when they are asked for.
(() => {
  const { find, make, say, load: loadScript, readFragment } = npuprof;
  const paths = new Map(), sides = new Map(), failed = new Set();
  let risks = [];
  npuprof.index = (list, order) => { for (const [name, path] of list) paths.set(name, path); risks = order; };
  npuprof.settings = (name, rows) => sides.set(name, rows);

  function setUpCompare() {
    const form = find("choose");
    if (!form) return;
    const field = find("add"), chosen = find("chosen"), table = find("compared"), same = find("same");
    const write = (names) => { location.hash = names.map(encodeURIComponent).join("&"); };
    const rank = (held) => Math.min(risks.length, ...held.map((one) => risks.indexOf(one)).filter((known) => known >= 0));
    const chip = (asked, place) => {
      const name = asked[place], made = make("span", name, { class: "chip" }), button = make("button", "remove", { type: "button", "aria-label": `Remove ${name}` });
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
    const tell = (cells) => JSON.stringify(cells.map((cell) => (cell ? cell.value : null)));
    const differs = (row) => new Set(row.cells.map((cell) => (cell ? cell.value : null))).size > 1;
    const draw = () => {
      const asked = readFragment(), names = asked.filter((name) => sides.has(name));
      // Who takes one away by keyboard goes on at the next one.
      const focused = [...chosen.querySelectorAll("button")].indexOf(document.activeElement);
      chosen.replaceChildren(...asked.map((_, place) => chip(asked, place)));
      if (focused >= 0) ([...chosen.querySelectorAll("button")].slice(0, focused + 1).pop() || field).focus();
      const rows = listRows(names);
      // An override that leaves the two as far apart as they are everywhere says nothing new.
      const isNew = (row) => !row.scope || !rows.has(`${row.key}\n`) || tell(row.cells) !== tell(rows.get(`${row.key}\n`).cells);
      const shown = [...rows.values()].filter((row) => (same.checked || differs(row)) && isNew(row));
      const order = (one, other) => (one < other ? -1 : one > other ? 1 : 0);
      shown.sort((one, other) => differs(other) - differs(one) || rank(one.risk) - rank(other.risk) || order(one.key, other.key) || order(one.scope, other.scope));
      const head = make("thead"), top = make("tr"), body = make("tbody");
      top.append(make("th", "setting", { scope: "col" }), ...names.map((name) => make("th", name, { scope: "col" })));
      head.append(top);
      for (const row of shown) {
        const line = make("tr"), name = make("th", undefined, { scope: "row", title: row.meaning });
        name.append(make("code", row.key));
        if (row.scope) name.append(make("br"), make("span", `only for ${row.scope}`));
        if (row.risk.length) name.append(make("br"), make("span", row.risk.join(", "), { class: "quiet" }));
        line.append(name, ...row.cells.map((cell) => {
          const place = make("td");
          if (cell) place.append(make("code", cell.value), cell.unit ? ` ${cell.unit}` : "", make("br"), make("span", cell.author, { class: "quiet" }));
          else place.append(make("span", "not set", { class: "quiet" }));
          return place;
        }));
        body.append(line);
      }
      const different = shown.filter(differs).length;
      const told = names.length < 2 ? "Choose two or more." : different ? `${different} ${different === 1 ? "difference" : "differences"}` : "Nothing differs.";
      const wrong = asked.filter(lost).map((name) => `${name} ${lost(name)}`);
      table.replaceChildren(make("caption", told, { class: "quiet" }), ...(names.length && shown.length ? [head, body] : []));
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
