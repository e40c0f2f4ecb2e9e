"use strict";
// One field for presets, for who sets what to which value, for findings, for the settings of the catalogue and for the codes of findings.
(() => {
  const { find, make, say, split } = npuprof;
  const MOST = 50;
  const PARTS = ["Presets", "Values", "Findings", "Settings", "Codes"];
  const lists = {};
  // Arguments are found as they are typed: --tensor-parallel-size, tensor_parallel_size and tensor-parallel-size are one word.
  const fold = (text) => text.toLowerCase().replaceAll("_", "-");
  const entry = (text, rest) => ({ text: fold(text), ...rest });

  npuprof.presets = (presets, settings, findings) => {
    const paths = presets.map(([name, path]) => [name, path]);
    const follow = (steps) => { let place = 0; return steps.map((step) => paths[(place += step)]); };
    lists.Presets = presets.map(([name, , about], index) => entry(`${name} ${about}`, { name, about, path: paths[index][1] }));
    lists.Values = Object.entries(settings).flatMap(([key, found]) => found.map(([value, steps]) => (
      entry(`${key} ${value} ${key}=${value} ${key} = ${value}`, { key, value, names: follow(steps) }))));
    lists.Findings = findings.map(([code, message, severity, places]) => (
      entry(`${severity} ${code} ${code}: ${message}`, { code, message, severity, names: places.map((place) => paths[place]) })));
  };
  npuprof.catalogue = (settings, codes, pages) => {
    lists.Settings = settings.map(([key, about, page, ...names]) => (
      entry(`${key} ${about} ${names.join(" ")}`, { name: key, about, path: `${pages[page]}#${encodeURIComponent(key)}` })));
    lists.Codes = codes.map(([code, about, why, fix]) => entry(`${code} ${code}: ${about} ${why} ${fix}`, { name: code, about, path: `rules.html#${code}` }));
  };

  function listNames(one) {
    const links = one.names.flatMap(([name, path], place) => [...(place ? [", "] : []), make("a", name, { href: path })]);
    if (one.names.length <= 6) return links;
    const folded = make("details");
    folded.append(make("summary", `${one.names.length} presets`), ...links);
    return [folded];
  }

  function buildRow(one) {
    const row = make("li"), about = make("div", undefined, { class: "names" });
    if (one.message) row.append(make("b", `${one.severity} `, { class: one.severity }), make("a", one.code, { href: `rules.html#${one.code}` }), ` ${one.message}`);
    else if (one.names) row.append(make("code", `${one.key} = ${one.value}`));
    else row.append(make("a", one.name, { href: one.path }));
    about.append(...(one.names ? listNames(one) : [one.about]));
    row.append(about);
    return row;
  }

  function buildPart(title, found) {
    const part = make("section"), rows = make("ul", undefined, { class: "hits" }), head = make("h2", `${title} `);
    head.append(make("span", `${found.length}`, { class: "total" }));
    rows.append(...found.slice(0, MOST).map(buildRow));
    part.append(head, rows);
    if (found.length > MOST) part.append(make("p", `${found.length - MOST} more: add a word.`, { class: "quiet" }));
    return part;
  }

  function setUp() {
    const field = find("everything"), hits = find("hits"), missing = new Set(), asked = new Set();
    const load = (path) => {
      if (asked.has(path)) return;
      asked.add(path);
      npuprof.load(path, draw, () => { asked.delete(path); missing.add(path); draw(); });
    };
    // A pasted line of a log or a command has words that nothing else has: without a hit for all words, those with most of them.
    const chooseClosest = (list, words) => {
      const counts = list.map((one) => words.filter((word) => one.text.includes(word)).length);
      const most = Math.max(0, ...counts);
      return most > 1 && most * 2 >= words.length ? list.filter((_, place) => counts[place] === most) : [];
    };
    const draw = () => {
      const words = split(fold(field.value)).map((word) => word.replace(/^--(?=.)|[,;:]$/g, ""));
      if (!words.length) { hits.replaceChildren(); say(""); return; }
      load("data/search.js");
      load("data/catalogue.js");
      const rank = (one) => { const name = fold(one.name || one.key || ""); return name === words[0] || name.endsWith(`.${words[0]}`) ? 0 : name.startsWith(words[0]) ? 1 : name.includes(words[0]) ? 2 : 3; };
      const search = (choose) => PARTS.filter((title) => lists[title]).map((title) => [title, choose(lists[title]).sort((one, other) => rank(one) - rank(other))]).filter(([, found]) => found.length);
      let found = search((list) => list.filter((one) => words.every((word) => one.text.includes(word))));
      const isClosest = !found.length && words.length > 2;
      if (isClosest) found = search((list) => chooseClosest(list, words));
      const total = found.map(([title, rows]) => `${title.toLowerCase()}: ${rows.length}`).join(", ");
      const waits = !missing.size && !(lists.Presets && lists.Settings);
      hits.replaceChildren(...found.map(([title, rows]) => buildPart(title, rows)));
      say([...[...missing].map((path) => `${path} is missing beside this page`), ...(waits ? [] : [!total ? "nothing found" : isClosest ? `closest matches: ${total}` : total])].join("; "));
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
