// Appended to a copy of the page: makes every choice in turn and writes down what a reader would see.
(async () => {
  const wait = () => new Promise((done) => setTimeout(done, 0));
  const data = JSON.parse(document.getElementById("data").textContent);
  const result = {choices: {}, wide: [], faint: [], width: innerWidth};

  const numbers = (text) => (text.match(/[\d.]+/g) || []).map(Number);
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((c) => c / 255).map((c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (one) => {
    for (let at = one; at; at = at.parentElement) {
      const rgba = numbers(getComputedStyle(at).backgroundColor);
      if (rgba.length && (rgba[3] === undefined || rgba[3] > 0)) return rgba.slice(0, 3);
    }
    return [255, 255, 255];
  };
  const isFaint = (one) => {
    const colours = [numbers(getComputedStyle(one).color).slice(0, 3), behind(one)];
    const [light, dark] = colours.map(luminance).sort((x, y) => y - x);
    return (light + 0.05) / (dark + 0.05) < 4.5;
  };

  for (const kind of data.kinds) {
    for (const {depth} of [...kind.depths, {depth: 30}]) {
      for (const what of data.criteria) {
        location.hash = `#${kind.name}/${depth}/${what.name}`;
        await wait();
        await wait();
        const rows = [...document.querySelectorAll(".row")];
        result.choices[location.hash.slice(1)] = {
          say: document.getElementById("say").textContent,
          columns: document.querySelectorAll(".column").length,
          names: rows.map((one) => one.querySelector(".name").firstChild.data),
          lowest: Math.max(...rows.map((one) => one.getBoundingClientRect().bottom + scrollY)),
        };
        if (document.documentElement.scrollWidth > innerWidth) result.wide.push(location.hash);
      }
    }
  }
  location.hash = "#mlp/50/held-out";
  await wait();
  await wait();
  for (const one of document.querySelectorAll("#choice *, #overview td, #overview th")) {
    const hasText = [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (hasText && isFaint(one)) result.faint.push(one.outerHTML.slice(0, 80));
  }
  const first = document.querySelector(".row button");
  first.focus();
  first.click();
  result.focused = document.activeElement === first;
  result.detail = document.querySelector(".detail").textContent;
  document.querySelector("input[name=what][value=memory]").click();
  result.address = location.hash;
  const every = document.getElementById("every");
  every.open = true;
  await new Promise((done) => setTimeout(done, 200));
  const column = (at) => [...every.querySelectorAll("tbody tr")].map((row) => row.children[at].textContent);
  result.every = column(0).length;
  const search = every.querySelector("input");
  search.value = "MLP 50 pre-norm";
  search.dispatchEvent(new Event("input"));
  every.querySelectorAll("th button")[6].click();
  result.found = {names: column(2), steps: column(6)};
  if (document.documentElement.scrollWidth > innerWidth) result.wide.push("every");
  const mark = parent.document.createElement("pre");
  mark.id = "tried";
  mark.textContent = JSON.stringify(result);
  parent.document.body.append(mark);
})();
