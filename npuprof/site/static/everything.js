"use strict";
// One field for presets, for who sets what to which value, for the settings of the catalogue and for the codes of findings.
(() => {
  const { find, make, say, split } = npuprof;
  const MOST = 50;
  let all = null;

  npuprof.all = (presets, settings, catalogue, codes) => {
    const paths = presets.map(([name, path]) => [name, path || `presets/${name}.html`]);
    const values = [];
    for (const [key, found] of Object.entries(settings)) {
      for (const [value, steps] of found) {
        let place = 0;
        const names = steps.map((step) => paths[(place += step)]);
        values.push({ text: `${key} ${value} ${key}=${value} ${key} = ${value}`.toLowerCase(), key, value, names });
      }
    }
    all = {
      presets: presets.map(([name, , about], index) => ({ text: `${name} ${about}`.toLowerCase(), name, about, path: paths[index][1] })),
      settings: catalogue.map(([key, about]) => ({ text: `${key} ${about}`.toLowerCase(), name: key, about, path: `catalogue.html#${encodeURIComponent(key)}` })),
      values,
      codes: codes.map(([code, about]) => ({ text: `${code} ${about}`.toLowerCase(), name: code, about, path: `rules.html#${code}` })),
    };
  };

  function listNames(one) {
    const links = one.names.flatMap(([name, path], place) => [...(place ? [", "] : []), make("a", name, { href: path })]);
    if (one.names.length <= 6) return links;
    const folded = make("details");
    folded.append(make("summary", `${one.names.length} presets`), ...links);
    return [folded];
  }

  function buildRow(one) {
    const row = make("li");
    if (one.names) row.append(make("code", `${one.key} = ${one.value}`), " ", ...listNames(one));
    else row.append(make("a", one.name, { href: one.path }), ` ${one.about}`);
    return row;
  }

  function buildPart(title, found) {
    const part = make("section"), rows = make("ul", undefined, { class: "hits" });
    rows.append(...found.slice(0, MOST).map(buildRow));
    part.append(make("h2", `${title} (${found.length})`), rows);
    if (found.length > MOST) part.append(make("p", `${found.length - MOST} more: say more words.`, { class: "quiet" }));
    return part;
  }

  function setUp() {
    const field = find("everything"), hits = find("hits");
    let asked = false;
    const draw = () => {
      const words = split(field.value);
      if (!words.length) { hits.replaceChildren(); say(""); return; }
      if (!all) {
        if (!asked) { asked = true; npuprof.load("data/search.js", draw, () => { asked = false; say("data/search.js is missing beside this page"); }); }
        return;
      }
      const rank = (one) => { const name = (one.name || one.key).toLowerCase(); return name === words[0] ? 0 : name.startsWith(words[0]) ? 1 : name.includes(words[0]) ? 2 : 3; };
      const choose = (list) => list.filter((one) => words.every((word) => one.text.includes(word))).sort((one, other) => rank(one) - rank(other));
      const parts = [["Presets", all.presets], ["Settings", all.settings], ["Values", all.values], ["Codes", all.codes]].map(([title, list]) => [title, choose(list)]);
      const held = parts.filter(([, found]) => found.length);
      hits.replaceChildren(...held.map(([title, found]) => buildPart(title, found)));
      say(held.map(([title, found]) => `${title.toLowerCase()}: ${found.length}`).join(", ") || "nothing found");
    };
    const follow = () => { field.value = npuprof.readChoice().get("q") || ""; draw(); };
    const choose = () => { npuprof.writeChoice(new Map([["q", field.value.trim()]])); draw(); };
    const clear = () => { field.value = ""; choose(); };
    field.addEventListener("input", choose);
    npuprof.addButtons(field.form, clear);
    npuprof.watchKeys(field, clear);
    window.addEventListener("hashchange", follow);
    follow();
  }

  document.addEventListener("DOMContentLoaded", setUp);
})();
