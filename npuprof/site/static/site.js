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

  function setUpSearch() {
    const field = document.querySelector("input[data-for]");
    if (!field) return;
    const list = find(field.dataset.for), rows = [...list.querySelectorAll("tbody tr:not(.group), .rows > li")];
    // Very long lists are text, to load quickly; here their names get links, and are found one by one.
    for (const plain of list.querySelectorAll(".plain")) plain.replaceChildren(...plain.textContent.split(", ").flatMap((name, place) => [...(place ? [", "] : []), make("a", name, { href: `search.html#q=${encodeURIComponent(name)}` })]));
    // A name is hidden with the comma behind it.
    const wrap = (name) => {
      const whole = make("span", undefined, { "data-name": name.textContent });
      name.after(whole);
      whole.append(name, whole.nextSibling || "");
      return whole;
    };
    const names = rows.map((row) => [...row.querySelectorAll(".names a")].map(wrap));
    const texts = rows.map((row, index) => {
      const group = Object.values(row.parentElement.dataset).join(" ");
      return `${(names[index].length ? [...row.children].slice(1) : [row]).map((one) => one.textContent).join(" ")} ${group}`.toLowerCase();
    });
    const labels = names.map((links, index) => (links.length ? links.map((one) => one.dataset.name) : [index]));  // presets of two matrices are counted once
    const every = new Set(labels.flat()).size;
    const filters = [...document.querySelectorAll("select[data-filter]")];
    // What a row shows is read there; a filter of releases compares places in the list of releases, the newest first.
    const shown = { risk: "i", state: ".badge", surface: "td:last-child > span", scenario: "i[class^=s-]", framework: "td > b", product: "em", owner: ".o" };
    const passes = (row) => filters.every((one) => {
      if (!one.value) return true;
      const name = one.dataset.filter, held = row.dataset[name] || row.parentElement.dataset[name] || "";
      if (name === "here") return (row.querySelector("th a") ? "set" : "not set") === one.value;
      if (name === "release") {
        const place = one.options.length - 1 - one.selectedIndex, spans = held.split(" ").map((span) => span.split("-").map(Number));
        return !held || spans.some(([first, last]) => first <= place && place <= last);
      }
      const places = shown[name] ? [...row.querySelectorAll(shown[name])] : [];
      const parts = held ? held.split("|") : places.flatMap((part) => part.textContent.split(", "));
      return parts.includes(one.value) || (name === "product" && !parts.length);
    });
    const apply = () => {
      const words = split(field.value), left = new Set();
      rows.forEach((row, index) => {
        const missing = passes(row) ? words.filter((word) => !texts[index].includes(word)) : null;
        const hits = labels[index].filter((label, place) => {
          const link = names[index][place], fits = missing !== null && missing.every((word) => link && link.dataset.name.toLowerCase().includes(word));
          if (link) link.hidden = !fits;
          return fits;
        });
        const folded = names[index].length && row.querySelector("details");
        if (folded) folded.open = words.length > 0 && hits.length > 0 && hits.length <= 40;
        if (row.hidden === hits.length > 0) row.hidden = !hits.length;
        for (const one of hits) left.add(one);
      });
      for (const group of list.querySelectorAll(".group")) group.hidden = [...group.parentElement.rows].every((row) => row === group || row.hidden);
      const chosen = words.length || filters.some((one) => one.value);
      say(chosen ? `${left.size} of ${every}` : `${every}`);
    };
    const choose = () => {
      apply();
      const others = [...readChoice()].filter(([name]) => document.querySelector(`select#${name}`));  // which releases are held against each other
      writeChoice(new Map([["q", field.value.trim()], ...filters.map((one) => [one.dataset.filter, one.value]), ...others]));
    };
    const follow = () => {
      const choice = readChoice(), target = choice.size ? null : find(decode(location.hash.slice(1)));
      if (target && !rows.includes(target)) return;  // a place of the page, not of the list
      field.value = choice.get("q") || "";
      for (const one of filters) { one.value = choice.get(one.dataset.filter) || ""; if (one.selectedIndex < 0) one.value = ""; }
      apply();
      if (target) target.scrollIntoView();
    };
    const clear = () => { field.value = ""; for (const one of filters) one.value = ""; choose(); };
    const folded = document.querySelector(".filters");
    if (folded && matchMedia("(max-width: 40rem)").matches) folded.open = false;
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

  // Texts that are folded without a script are tabs with one: arrows go from tab to tab, all are printed.
  function setUpTabs() {
    document.querySelectorAll(".tabs").forEach((group, number) => {
      const parts = [...group.querySelectorAll("details")];
      if (!parts.length) return;
      const list = make("div", undefined, { role: "tablist", "aria-label": number ? "Other targets" : "Targets" });
      const tabs = parts.map((part, place) => {
        const tab = make("button", part.querySelector("summary").textContent, { type: "button", role: "tab", id: `tab${number}-${place}`, "aria-controls": `panel${number}-${place}` });
        const panel = part.querySelector("div");
        for (const [key, value] of Object.entries({ id: `panel${number}-${place}`, role: "tabpanel", "aria-labelledby": `tab${number}-${place}` })) panel.setAttribute(key, value);
        tab.addEventListener("click", () => select(place));
        return tab;
      });
      const select = (chosen) => tabs.forEach((tab, place) => {
        tab.setAttribute("aria-selected", place === chosen);
        tab.tabIndex = place === chosen ? 0 : -1;
        parts[place].open = place === chosen;
      });
      list.addEventListener("keydown", (event) => {
        const last = tabs.length - 1, now = tabs.indexOf(document.activeElement);
        const next = { ArrowRight: now === last ? 0 : now + 1, ArrowLeft: now ? now - 1 : last, Home: 0, End: last }[event.key];
        if (next === undefined) return;
        event.preventDefault();
        select(next);
        tabs[next].focus();
      });
      list.append(...tabs);
      group.prepend(list);
      group.classList.add("tabbed");
      select(0);
    });
  }

  function setUpCopying() {
    if (!navigator.clipboard) return;
    const add = (place, label, text) => {
      const button = make("button", "Copy", { type: "button", class: "copy", "aria-label": label });
      button.addEventListener("click", () => copyText(button, text));
      place.after(button);
      return button;
    };
    for (const text of document.querySelectorAll("pre:not(.findings pre)")) {
      const title = text.closest("details") && text.closest("details").querySelector("summary"), frame = make("div", undefined, { class: "code" });
      text.replaceWith(frame);
      frame.append(text);
      frame.prepend(add(text, title ? `Copy ${title.textContent}` : "Copy", text.textContent));
    }
    for (const place of document.querySelectorAll("[data-copy]")) { add(place, "Copy digest", place.dataset.copy); place.after(" "); }
  }

  // The address of a page may be somebody's choice, which the link to the content would write over.
  function setUpSkipping() {
    document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); find("main").focus(); find("main").scrollIntoView(); });
  }

  // On a narrow page the menu is wider than the window.
  function showCurrent() {
    const here = document.querySelector("nav [aria-current]");
    if (here) here.parentElement.scrollLeft = here.offsetLeft - here.parentElement.clientWidth / 2;
  }

  document.addEventListener("DOMContentLoaded", () => { showCurrent(); setUpSkipping(); setUpSearch(); setUpReleases(); setUpTabs(); setUpCopying(); });
  return { find, make, say, split, load, readFragment, readChoice, writeChoice, addButtons, watchKeys };
})();
