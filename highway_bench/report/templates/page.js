// The first screen. The choice is in the address, #kind/depth/what; the numbers are given.
(function () {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const MOST = matchMedia("(max-width: 46rem)").matches ? 7 : 8;
  const state = {kind: data.kinds[0], depth: +byId("depth").value, what: "held-out"};

  // ---- from the address and back

  function read() {
    const [name, depth, what] = decodeURIComponent(location.hash.slice(1)).split("/");
    const kind = data.kinds.find((one) => one.name === name || one.also.includes(name));
    if (!kind) return false;
    state.kind = kind;
    state.depth = Math.max(1, Math.round(+depth) || middle(kind));
    state.what = data.criteria.some((one) => one.name === what) ? what : "held-out";
    return true;
  }

  function write() {
    history.replaceState(null, "", `#${state.kind.name}/${state.depth}/${state.what}`);
    draw();
  }

  const middle = (kind) => kind.depths[Math.floor((kind.depths.length - 1) / 2)].depth;

  // The measured depths that answer for the chosen one: itself, or its neighbours on both sides.
  function neighbours() {
    const depths = state.kind.depths;
    const shallower = depths.filter((one) => one.depth <= state.depth).pop() || depths[0];
    const deeper = depths.find((one) => one.depth >= state.depth) || depths[depths.length - 1];
    return shallower === deeper ? [shallower] : [shallower, deeper];
  }

  // ---- drawing

  function draw() {
    const at = neighbours();
    for (const [name, value] of [["kind", state.kind.name], ["what", state.what]]) {
      for (const input of document.querySelectorAll(`input[name=${name}]`)) {
        input.checked = input.value === value;
      }
    }
    byId("depth").value = state.depth;
    byId("ticks").replaceChildren(...state.kind.depths.map(tick));
    byId("say").textContent = sentence(at);
    byId("columns").replaceChildren(...at.map((one) => column(one, at.length)));
    const timed = [...new Set(at.map((one) => one.timed).filter(Boolean))].join("; ");
    byId("setting").textContent = `${state.kind.protocol}.` + (timed ? ` Step times: ${timed}.` : "");
    for (const cell of document.querySelectorAll(".overview [data-kind]")) {
      cell.classList.toggle("other", cell.dataset.kind !== state.kind.name);
    }
  }

  function sentence(at) {
    if (at.length === 2) {
      const between = state.kind.between[`${at[0].depth}-${at[1].depth}`][state.what];
      return `Not measured at ${state.depth} layers. ${between}`;
    }
    const say = at[0].by[state.what].say;
    if (at[0].depth === state.depth) return say;
    return `Not measured at ${state.depth} layers. At ${at[0].depth}: ${say}`;
  }

  function tick(one) {
    const button = element("button", "", String(one.depth));
    button.type = "button";
    if (one.depth === state.depth) button.setAttribute("aria-pressed", "true");
    button.addEventListener("click", () => { state.depth = one.depth; write(); });
    return button;
  }

  function column(at, several) {
    const ranking = at.by[state.what];
    const box = element("div", "column");
    const most = several > 1 ? 4 : MOST;
    const list = element("ul", "rows");
    const add = (from, to) => {
      list.append(...ranking.rows.slice(from, to).map((one) => row(at, ranking, one)));
    };
    add(0, most);
    box.append(axis(at, ranking), list);
    if (ranking.rows.length > most) {
      const more = element("button", "more", `${ranking.rows.length - most} more`);
      more.type = "button";
      more.addEventListener("click", () => { add(most); more.remove(); });
      box.append(more);
    }
    return box;
  }

  function axis(at, ranking) {
    const line = element("p", "axis");
    const ends = element("span", "ends");
    ends.append(element("span", "", ranking.ends[0]), element("span", "title", ranking.axis),
      element("span", "", ranking.ends[1]));
    const step = element("span", "step", "× step");
    step.title = `training step ÷ pre-norm's${at.timed ? `, on ${at.timed}` : ""}`;
    line.append(element("span", "at", `${at.depth} layers`), ends, element("span", "value"), step,
      element("span", "bytes", "memory"), element("span", "seeds", "train"));
    return line;
  }

  function row(at, ranking, [number, place, dot, left, width, value]) {
    const one = at.rows[number];
    const item = byId("row").content.firstElementChild.cloneNode(true);
    item.className = `row ${one.outcome.replace(/ /g, "-")}${one.here ? " here" : ""}`;
    const part = (name) => item.querySelector(`.${name}`);
    const start = element("small", "", one.start);
    part("name").replaceChildren(one.name, start, element("sup", "", one.mark));
    for (const name of ["step", "bytes", "seeds"]) part(name).textContent = one[name];
    part("value").textContent = value;
    if (dot === null) {
      part("track").replaceChildren();
    } else {
      if (place === "behind") part("band").remove();
      else place_(part("band"), ranking.band[0], ranking.band[1]);
      if (left === null) part("bar").remove();
      else place_(part("bar"), left, width);
      part("dot").className = `dot ${place.replace(/ /g, "-")}`;
      place_(part("dot"), dot);
    }
    item.firstElementChild.addEventListener("click", () => toggle(item, at, one));
    return item;
  }

  function place_(mark, left, width) {
    mark.style.left = `${left}%`;
    if (width !== undefined) mark.style.width = `${width}%`;
  }

  function toggle(item, at, one) {
    const button = item.firstElementChild;
    const open = button.getAttribute("aria-expanded") !== "true";
    button.setAttribute("aria-expanded", String(open));
    if (item.children.length > 1) item.lastElementChild.hidden = !open;
    else if (open) item.append(detail(at, one));
  }

  function detail(at, one) {
    const list = element("dl", "detail");
    const name = one.name.split(" ")[0];
    const about = data.connections[name] || {};
    const call = `hb.build("${name}", your_layer, width=…, depth=${at.depth}, start="${one.start}")`;
    const code = element("dd", "");
    code.append(element("code", "", call), copy("copy", call));
    const text = (about.code || {})[one.start];
    if (text) {
      const own = text.replace(/depth=\d+\)/, `depth=${at.depth})`);
      code.append(copy("copy as plain torch", own));
    }
    list.append(element("dt", "", "in Python"), code);
    const facts = [["equation", about.equation], ...one.facts, ["source", about.source]];
    for (const [name, text] of facts.filter((pair) => pair[1])) {
      list.append(element("dt", "", name), element("dd", "", text));
    }
    return list;
  }

  function copy(label, text) {
    const button = element("button", "copy", label);
    button.type = "button";
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(text);
      button.textContent = "copied";
    });
    return button;
  }

  function element(name, className, text) {
    const made = document.createElement(name);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  }

  // ---- every row, as a table that sorts and filters

  const HEADS = ["kind", "depth", "connection", "start", "became", "held-out loss", "× step",
    "memory", "train"];
  const every = {rows: [], by: 0, up: true};

  function everyRow() {
    return data.kinds.flatMap((kind) => kind.depths.flatMap((at) => at.rows.map((one) => {
      const loss = one.facts.find((fact) => fact[0] === "held-out loss");
      const texts = [kind.label, at.depth, one.name, one.start, one.outcome, loss ? loss[1] : "–",
        one.step, one.bytes, one.seeds];
      const words = texts.join(" ").toLowerCase();
      return {texts, keys: [...texts.slice(0, 5), ...one.sorted], words};
    })));
  }

  function drawEvery() {
    if (!every.rows.length) every.rows = everyRow();
    const box = byId("every");
    const words = box.querySelector("input").value.toLowerCase().split(/\s+/);
    const last = (one) => one === null || one === undefined;
    const order = (one, other) => {
      const [a, b] = [one.keys[every.by], other.keys[every.by]];
      if (last(a) || last(b)) return last(a) - last(b);
      return (a < b ? -1 : a > b ? 1 : 0) * (every.up ? 1 : -1);
    };
    const line = (tag, texts) => {
      const made = element("tr");
      made.append(...texts.map((text) => element(tag, "", String(text))));
      return made;
    };
    const head = line("th", HEADS);
    [...head.children].forEach((cell, at) => {
      const button = element("button", "", HEADS[at]);
      button.type = "button";
      button.addEventListener("click", () => {
        every.up = every.by !== at || !every.up;
        every.by = at;
        drawEvery();
      });
      cell.replaceChildren(button);
      if (at === every.by) cell.setAttribute("aria-sort", every.up ? "ascending" : "descending");
    });
    const kept = every.rows.filter((row) => words.every((word) => row.words.includes(word)));
    const [top, body] = [element("thead"), element("tbody")];
    top.append(head);
    body.append(...kept.sort(order).map((row) => line("td", row.texts)));
    box.querySelector("table").replaceChildren(top, body);
  }

  byId("every").addEventListener("toggle", drawEvery);
  byId("every").querySelector("input").addEventListener("input", drawEvery);

  // ---- what people do

  document.addEventListener("change", (event) => {
    const {name, id, value} = event.target;
    if (name === "kind") {
      state.kind = data.kinds.find((one) => one.name === value);
      if (!state.kind.depths.some((one) => one.depth === state.depth)) {
        state.depth = middle(state.kind);
      }
    } else if (name === "what") state.what = value;
    else if (id === "depth") state.depth = Math.max(1, Math.round(+value) || 1);
    else return;
    write();
  });
  addEventListener("hashchange", () => {
    if (read()) draw();
    byId("choice").scrollIntoView({block: "start"});
  });
  read();
  draw();
})();
