"use strict";
// Filters the findings of a page by text, severity and code; a file without a finding left is hidden.
(() => {
  const form = document.querySelector(".search"), [text, severity, code] = form.elements, output = form.querySelector("output");
  const rows = [...document.querySelectorAll(".findings > li")];
  const files = [...document.querySelectorAll("main > section")].filter((file) => file.querySelector(".findings"));
  const texts = rows.map((row) => `${row.closest("section").querySelector("h2").textContent} ${row.textContent}`.toLowerCase());
  const apply = () => {
    const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
    let left = 0;
    rows.forEach((row, place) => {
      const fits = (!severity.value || row.className === severity.value) && (!code.value || row.dataset.code === code.value) && words.every((word) => texts[place].includes(word));
      row.hidden = !fits;
      left += fits;
    });
    for (const file of files) file.hidden = !file.querySelector("li:not([hidden])");
    output.textContent = left === rows.length ? `${left}` : `${left} of ${rows.length}`;
  };
  form.hidden = !rows.length;
  form.addEventListener("input", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
  document.addEventListener("keydown", (event) => {
    const writing = /^(input|select)$/i.test(event.target.tagName);
    if (event.key === "/" && !writing) { event.preventDefault(); text.focus(); }
    if (event.key === "Escape") { form.reset(); apply(); }
  });
  apply();
})();
