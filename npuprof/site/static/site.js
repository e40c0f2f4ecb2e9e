"use strict";
// What all pages share: searching and filtering lists, the choice kept in the address, copying. All that is shown is text, never markup.
const npuprof = (() => {
  const find = (id) => document.getElementById(id);
  const make = (name, text, attributes = {}) => {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };
  const say = (text) => { const place = find("count"); if (place && place.textContent !== text) place.textContent = text; };
  const decode = (text) => { try { return decodeURIComponent(text); } catch { return text; } };
  const readFragment = () => location.hash.slice(1).split("&").filter(Boolean).map(decode);
  // A choice in the address: #q=words&kind=flag. Anything else there names a place of the page.
  const readChoice = () => {
    const parts = location.hash.slice(1).split("&").map((part) => part.match(/^([a-z]+)=(.*)$/)).filter(Boolean);
    return new Map(parts.map(([, name, value]) => [name, decode(value)]));
  };
  const writeChoice = (choice) => {
    const text = [...choice].filter(([, value]) => value).map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&");
    const now = location.hash.slice(1);
    if (text !== now && (text || readChoice().size)) history.replaceState(null, "", text ? `#${text}` : location.pathname);
  };
  const split = (text) => text.toLowerCase().split(/\s+/).filter(Boolean);
  const load = (path, done, fail) => {
    const script = make("script", undefined, { src: path });
    script.addEventListener("load", done);
    script.addEventListener("error", fail);
    document.head.append(script);
  };

  // What changes on a button is not read out by itself: it is told beside the page as well.
  const announce = (text) => {
    const place = find("told-aside") || make("p", undefined, { id: "told-aside", role: "status", class: "aside" });
    if (!place.isConnected) document.body.append(place);
    place.textContent = "";
    setTimeout(() => { place.textContent = text; }, 50);
  };

  async function copyText(button, text) {
    const before = button.dataset.label || (button.dataset.label = button.textContent);
    try { await navigator.clipboard.writeText(text); button.textContent = "Copied"; } catch { button.textContent = "Cannot copy"; }
    announce(button.textContent);
    setTimeout(() => { button.textContent = before; }, 2000);
  }

  // What a form of a list or a picture gets besides: taking the choice back, and sending it to somebody.
  function addButtons(form, clear) {
    const reset = clear && make("button", "Clear", { type: "button" });
    if (reset) { reset.addEventListener("click", clear); form.append(reset); }
    if (navigator.clipboard) {
      const link = make("button", "Copy link", { type: "button" });
      link.addEventListener("click", () => copyText(link, location.href));
      form.append(link);
    }
  }

  function watchKeys(field, clear) {
    document.addEventListener("keydown", (event) => {
      const writing = /^(input|select|textarea)$/i.test(event.target.tagName);
      if (event.key === "/" && !writing && !event.ctrlKey && !event.metaKey && !event.altKey) { event.preventDefault(); field.focus(); }
      if (event.key === "Escape" && (event.target === field || !writing)) { event.preventDefault(); clear(); }
    });
    field.form.addEventListener("submit", (event) => event.preventDefault());
  }

  // The parts of a cell that a filter offers: "1 error, 2 warnings" is of error and of warning.
  const listParts = (cell) => cell.textContent.split(/[,:] /).map((part) => part.replace(/^\d+ (\w+?)s?$/, "$1").trim()).filter(Boolean);

  function setUpColumns(rows) {
    const parts = new Map();
    for (const choice of document.querySelectorAll("select[data-column]")) {
      const column = Number(choice.dataset.column);
      parts.set(choice, rows.map((row) => listParts(row.cells[column])));
      const found = [...new Set(parts.get(choice).flat())].sort();
      choice.append(...found.map((one) => make("option", one)));
      if (parts.get(choice).some((one) => !one.length)) choice.append(make("option", "none", { value: "-" }));
      choice.parentElement.hidden = !found.length;
    }
    return parts;
  }

  function setUpSearch() {
    const field = document.querySelector("input[data-for]");
    if (!field) return;
    const rows = [...find(field.dataset.for).tBodies[0].rows];
    const names = rows.map((row) => [...row.querySelectorAll(".names a")]);
    const texts = rows.map((row, index) => (names[index].length ? [...row.cells].slice(1) : [row]).map((one) => one.textContent).join(" ").toLowerCase());
    const every = names.reduce((sum, one) => sum + (one.length || 1), 0);
    const columns = setUpColumns(rows), filters = [...document.querySelectorAll("select[data-filter], select[data-column]")];
    const passes = (row, index) => filters.every((one) => {
      if (!one.value) return true;
      if (columns.has(one)) { const held = columns.get(one)[index]; return one.value === "-" ? !held.length : held.includes(one.value); }
      const held = row.dataset[one.dataset.filter] || "", parts = held.split(" ");
      if (one.dataset.filter === "state") return held === one.value;
      if (one.dataset.filter === "here") return (held || "not set") === one.value;
      return parts.includes(one.value) || (one.dataset.filter === "release" && parts.includes("any")) || (one.dataset.filter === "product" && !held);
    });
    const apply = () => {
      const words = split(field.value);
      let left = 0;
      rows.forEach((row, index) => {
        const missing = passes(row, index) ? words.filter((word) => !texts[index].includes(word)) : null;
        let shown = missing !== null && !missing.length ? names[index].length || 1 : 0;
        if (names[index].length) {
          shown = 0;
          for (const one of names[index]) {
            one.hidden = missing === null || !missing.every((word) => one.textContent.toLowerCase().includes(word));
            shown += !one.hidden;
          }
          const folded = row.querySelector("details");
          if (folded) folded.open = words.length > 0 && shown > 0 && shown <= 40;
        }
        if (row.hidden === shown > 0) row.hidden = !shown;
        left += shown;
      });
      const chosen = words.length || filters.some((one) => one.value);
      say(chosen ? `${left} of ${every}` : `${every}`);
    };
    const choose = () => {
      apply();
      const others = [...readChoice()].filter(([name]) => document.querySelector(`select#${name}`));  // which releases are held against each other
      writeChoice(new Map([["q", field.value.trim()], ...filters.map((one) => [one.dataset.filter || one.dataset.name, one.value]), ...others]));
    };
    const follow = () => {
      const choice = readChoice(), target = choice.size ? null : find(decode(location.hash.slice(1)));
      if (target && !rows.includes(target)) return;  // a place of the page, not of the list
      field.value = choice.get("q") || "";
      for (const one of filters) { one.value = choice.get(one.dataset.filter || one.dataset.name) || ""; if (one.selectedIndex < 0) one.value = ""; }
      apply();
      if (target) target.scrollIntoView();
    };
    const clear = () => { field.value = ""; for (const one of filters) one.value = ""; choose(); };
    field.addEventListener("input", choose);
    filters.forEach((one) => one.addEventListener("change", choose));
    addButtons(field.form, clear);
    watchKeys(field, clear);
    window.addEventListener("hashchange", follow);
    follow();
  }

  function setUpReleases() {
    const form = find("between");
    if (!form) return;
    const from = find("from"), to = find("to"), order = [...from.options].map((one) => one.value);
    const steps = [...document.querySelectorAll("details[data-release]")].reverse();
    const apply = () => {
      const first = order.indexOf(from.value), last = order.indexOf(to.value);
      const fresh = new Set(), gone = new Set();
      let defaults = 0;
      for (const step of steps) {
        const place = order.indexOf(step.dataset.release);
        step.hidden = !(first < place && place <= last);
        if (step.hidden) continue;
        for (const key of step.dataset.new.split(" ").filter(Boolean)) if (!gone.delete(key)) fresh.add(key);
        for (const key of step.dataset.gone.split(" ").filter(Boolean)) if (!fresh.delete(key)) gone.add(key);
        defaults += step.querySelectorAll("li").length;
      }
      const rows = [["new", fresh], ["not read any more", gone]].filter(([, keys]) => keys.size);
      find("net").replaceChildren(...rows.flatMap(([title, keys]) => [make("dt", title), make("dd", [...keys].sort().join(", "))]));
      find("told").textContent = last <= first ? "Choose a later release." : `${fresh.size} new, ${gone.size} gone, ${defaults} defaults changed`;
    };
    const follow = () => {
      const choice = readChoice();
      for (const one of [from, to]) { one.value = choice.get(one.id) || ""; if (one.selectedIndex < 0) one.selectedIndex = 0; }
      apply();
    };
    form.addEventListener("change", () => { apply(); writeChoice(new Map([...readChoice(), ["from", from.value], ["to", to.value]])); });
    form.addEventListener("submit", (event) => event.preventDefault());
    window.addEventListener("hashchange", follow);
    follow();
  }

  function setUpCopying() {
    if (!navigator.clipboard) return;
    for (const text of document.querySelectorAll("pre")) {
      const button = make("button", "Copy", { type: "button", class: "copy" });
      const title = text.parentElement.querySelector("summary");
      if (title) button.setAttribute("aria-label", `Copy ${title.textContent}`);
      button.addEventListener("click", () => copyText(button, text.textContent));
      text.before(button);
    }
  }

  // The address of a page may be somebody's choice, which the link to the content would write over.
  function setUpSkipping() {
    document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); find("main").focus(); find("main").scrollIntoView(); });
  }

  document.addEventListener("DOMContentLoaded", () => { setUpSkipping(); setUpSearch(); setUpReleases(); setUpCopying(); });
  return { find, make, say, split, load, readFragment, readChoice, writeChoice, addButtons, watchKeys };
})();
