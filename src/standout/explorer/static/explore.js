"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const root = document.documentElement;
  const token = new URLSearchParams(location.search).get("token") || "";
  const TARGET = 0, BACKGROUND = 1, NEITHER = 2, LEFT_OUT = 3;
  const SCALE = [[0, 34, 78], [53, 69, 108], [102, 105, 112], [148, 142, 119], [200, 184, 102], [254, 232, 56]];
  let state = null, answer = null, component = 0, n_answered = 0;

  // Elements are made here, and names from the data are always text.
  const make = (tag, properties = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
      if (name === "data") Object.assign(element.dataset, value);
      else if (name in element) element[name] = value;
      else element.setAttribute(name, value);
    }
    element.append(...children);
    return element;
  };
  const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const floats = (text) => new Float32Array(bytes(text).buffer);
  const colour = (name) => getComputedStyle(root).getPropertyValue(`--${name}`).trim();
  const plain = (value) => (Math.abs(value) >= 1e4 || (value !== 0 && Math.abs(value) < 1e-3) ? value.toExponential(1) : String(+value.toPrecision(3))).replace("-", "−");

  // --- the conversation --------------------------------------------------------------------------------------------
  let socket = null, previewing = false, nextPreview = null;
  const connect = () => {
    const page = sessionStorage.getItem("standout-page") || "";
    socket = new WebSocket(`ws://${location.host}/socket?token=${encodeURIComponent(token)}&page=${encodeURIComponent(page)}`);
    socket.addEventListener("open", () => { byId("gone").hidden = true; previewing = false; send({ do: "hello" }); });
    socket.addEventListener("close", () => { byId("gone").hidden = false; });
    socket.addEventListener("message", (event) => hear(JSON.parse(event.data)));
  };
  const send = (message) => { if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message)); };
  const step = (made) => { nextPreview = null; send({ do: "step", step: made }); };
  // One preview at a time is on its way: the next one is the newest when the answer is there.
  const preview = (made) => {
    if (previewing) { nextPreview = made; return; }
    previewing = true;
    send({ do: "preview", step: made });
  };
  const hear = (reply) => {
    const known = {
      page: () => sessionStorage.setItem("standout-page", reply.name),
      answer: () => showAnswer(reply),
      state: () => showState(reply),
      points: () => takePoints(reply),
      spread: () => showSpread(reply),
      outlying: () => showOutlying(reply),
      images: () => takeImages(reply),
      table: () => showTable(reply),
      row: () => showRow(reply),
      progress: () => { const bar = byId("progress"); bar.hidden = false; bar.max = reply.most; bar.value = reply.made; byId("verdict-words").textContent = `Component ${reply.component}: ${reply.made} of at most ${reply.most} random assignments.`; },
      cancelled: () => { testing(false); byId("verdict-words").textContent = "The test was cancelled."; },
      saved: () => { byId("save").disabled = false; byId("kept").replaceChildren(`The result is in ${reply.folder}. `, make("a", { href: reply.link, target: "_blank", rel: "noopener", id: "report-link", textContent: "Open its report" })); },
      kept: () => { byId("kept").textContent = reply.text; },
      problem: () => showProblem(reply),
      done: () => {
        if (reply.do === "preview") {
          previewing = false;
          if (nextPreview) { const made = nextPreview; nextPreview = null; preview(made); }
        }
        if (["hello", "step", "undo", "redo", "open"].includes(reply.do)) document.body.dataset.answered = String(++n_answered);
      },
    };
    if (known[reply.kind]) known[reply.kind]();
  };
  const showProblem = (reply) => {
    const place = byId("problem");
    place.textContent = reply.text;
    place.hidden = false;
    if (reply.of === "verdict") testing(false);
    if (reply.of === "save") byId("save").disabled = false;
    if (state) showState(state);
  };

  // While the mouse is down nothing moves under it: the words above keep their height.
  const freeze = () => { const place = byId("answer"); if (!place.style.height) place.style.height = `${place.getBoundingClientRect().height}px`; };
  const thaw = () => { byId("answer").style.height = ""; };

  // --- the answer --------------------------------------------------------------------------------------------------
  const showAnswer = (reply) => {
    answer = reply;
    byId("answer").classList.toggle("preview", Boolean(reply.preview));
    byId("method-name").textContent = reply.method;
    byId("title").textContent = reply.title;
    document.title = reply.title.replace(/[\u2068\u2069]/g, "");
    byId("headline").textContent = reply.headline;
    byId("asked").textContent = reply.asked;
    const cautions = byId("cautions");
    cautions.hidden = reply.cautions.length === 0;
    cautions.firstElementChild.replaceChildren(...reply.cautions.map((text) => make("li", { textContent: text })));
    byId("problem").hidden = true;
    component = Math.min(component, reply.components.length - 1);
    byId("components").replaceChildren(...reply.components.map((part, k) => make("button", {
      type: "button", role: "tab", "aria-selected": String(k === component), title: part.meaning,
      textContent: `${k + 1}: ${part.label} ${part.shown}`, onclick: () => { component = k; showAnswer(answer); },
    })));
    const part = reply.components[component];
    byId("bars").replaceChildren(
      make("div", { className: "row head" }, make("span", { textContent: "column" }), make("span", { textContent: "correlation with the score" }), make("span")),
      ...part.columns.map(({ name, value, shown }) => {
        const bar = make("b", { className: value < 0 ? "minus" : "plus" });
        bar.style.left = `${value < 0 ? 50 + 50 * value : 50}%`;
        bar.style.width = `${50 * Math.abs(value)}%`;
        return make("div", { className: "row" },
          make("button", { className: "feature", type: "button", textContent: name, title: "Show how this column is spread", onclick: () => askColumn(name) }),
          make("div", { className: "diverging" }, bar), make("span", { className: "num", textContent: shown }));
      }));
    byId("pattern").replaceChildren(...(part.image ? [make("img", { src: part.image, alt: `Pattern of component ${component + 1} as an image` })] : []));
    if (reply.verdict) {
      testing(false);
      byId("verdict-words").textContent = `${reply.verdict.text} ${reply.verdict.p_values.map((value, k) => `Component ${k + 1}: p ${value.startsWith("<") ? value : `= ${value}`}`).join(", ")}.`;
    } else if (!reply.preview && byId("progress").hidden) {
      byId("verdict-words").textContent = "The rows are assigned to the sides at random, many times. This takes some seconds.";
    }
    showFound();
  };
  const testing = (running) => { byId("progress").hidden = byId("cancel").hidden = !running; byId("test").disabled = running; if (running) byId("progress").removeAttribute("value"); };
  byId("test").addEventListener("click", () => { testing(true); send({ do: "verdict" }); });
  byId("cancel").addEventListener("click", () => send({ do: "cancel" }));

  // --- the question ------------------------------------------------------------------------------------------------
  const fill = (select, pairs, chosen) => {
    select.replaceChildren(...pairs.map(([value, text]) => make("option", { value, textContent: text })));
    select.value = chosen;
  };
  const showState = (reply) => {
    state = reply;
    byId("undo").disabled = reply.place <= reply.first;
    byId("redo").disabled = reply.place >= reply.steps.length;
    const named = reply.sides.map(({ name, count }, k) => {
      const swatch = make("span", { className: "swatch-line" });
      swatch.style.background = `var(--${k ? "c1" : "target"})`;
      return make("span", {}, swatch, k ? (k > 1 ? "and " : "against ") : "", make("b", {}, make("bdi", { textContent: name })), ` (${count.toLocaleString("en")} row${count === 1 ? "" : "s"}) `);
    });
    byId("sides-now").replaceChildren(...named, reply.sides.length === 1 ? "without a background" : "");
    byId("groups").tBodies[0].replaceChildren(...reply.groups.map((group, number) => make("tr", {},
      make("th", { scope: "row" }, make("bdi", { textContent: group.name })), make("td", { className: "num", textContent: group.count.toLocaleString("en") }),
      ...[TARGET, BACKGROUND, NEITHER].map((role) => make("td", {}, make("input", {
        type: "radio", name: `group-${number}`, checked: group.roles.length === 1 && group.roles[0] === role,
        ariaLabel: `${group.name}: ${["target", "background", "neither"][role]}`, onchange: () => assign(group.name, role),
      }))))));
    byId("rest").setAttribute("aria-pressed", String(reply.rest));
    byId("swap").disabled = reply.sides.length !== 2;
    byId("restore").hidden = reply.n_left_out === 0;
    byId("restore").textContent = `Take ${reply.n_left_out} row${reply.n_left_out === 1 ? "" : "s"} back in`;
    byId("method").value = reply.method;
    byId("n-components").value = String(reply.parameters.n_components || 2);
    byId("picture-of").value = reply.view.picture;
    const colours = [["role", "target and background"], ["group", "groups"], ...(reply.has_labels ? [["label", "labels"]] : []), ...reply.columns.map((name) => [`column ${name}`, name])];
    fill(byId("colour"), colours, reply.view.colour);
    byId("column-names").replaceChildren(...reply.columns.map((name) => make("option", { value: name })));
    document.querySelector(".only-images").hidden = !reply.has_images;
    for (const input of document.querySelectorAll("#side input")) input.disabled = !reply.in_memory && input.value !== "move";
    byId("how").hidden = !reply.in_memory;
    byId("drawn").textContent = [
      reply.in_memory ? "Draw a lasso around points: the answer follows. Hold Shift to add rows, Alt to take them away. Click a point to see its row. Turn the wheel to zoom, double-click to see all." : "These data are larger than memory: whole groups are compared, and the picture shows a random sample.",
      reply.n_drawn < reply.n_rows ? `${reply.n_drawn.toLocaleString("en")} of ${reply.n_rows.toLocaleString("en")} rows are drawn; a lasso takes all rows within it.` : "",
    ].join(" ");
    byId("steps").replaceChildren(...reply.steps.map((text, number) => make("li", { textContent: text, className: number >= reply.place ? "undone" : number < reply.first ? "given" : "" })));
    byId("python").textContent = reply.python;
    byId("command").textContent = reply.command;
    byId("command").parentElement.hidden = byId("command-title").hidden = !reply.command;
    showSliders();
    askTable();
  };
  const having = (role) => state.groups.filter((group) => group.roles.includes(role) && group.roles.length === 1).map((group) => group.name);
  const assign = (name, role) => {
    const target = having(TARGET), background = having(BACKGROUND);
    const without = (names) => names.filter((other) => other !== name);
    if (role === TARGET) step({ do: "choose", side: "target", groups: [...without(target), name] });
    else if (role === BACKGROUND && state.rest) step({ do: "choose", side: "target", groups: without(target) });
    else if (role === BACKGROUND) step({ do: "choose", side: "background", groups: [...without(background), name] });
    else if (target.includes(name)) step({ do: "choose", side: "target", groups: without(target) });
    else step({ do: "choose", side: "background", groups: without(background) });
  };
  for (const what of ["rest", "swap", "restore"]) byId(what).addEventListener("click", () => step({ do: what }));
  for (const what of ["undo", "redo"]) byId(what).addEventListener("click", () => send({ do: what }));
  addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.target.matches("input:not([type=radio], [type=range], [type=checkbox])")) return;
    const key = event.key.toLowerCase();
    if (key === "z" || key === "y") { event.preventDefault(); send({ do: key === "y" || event.shiftKey ? "redo" : "undo" }); }
  });
  byId("method").addEventListener("change", (event) => step({ do: "method", method: event.target.value }));
  byId("n-components").addEventListener("change", (event) => step({ do: "set", name: "n_components", value: Number(event.target.value) }));
  byId("picture-of").addEventListener("change", (event) => step({ do: "view", picture: event.target.value }));
  byId("colour").addEventListener("change", (event) => step({ do: "view", colour: event.target.value }));
  for (const axis of ["x", "y"]) byId(axis).addEventListener("change", (event) => step({ do: "view", [axis]: Number(event.target.value) }));

  // --- sliders -----------------------------------------------------------------------------------------------------
  const middles = {};
  const KINDS = {
    shrinkage: { label: "Shrinkage", rules: ["auto", "held-out", "clusters"], from: 0, to: 1, step: .005, value: (at) => at, place: (value) => value },
    alpha: { label: "α", rules: ["auto", "held-out"], from: -2, to: 3, step: .02, value: (at) => 10 ** at, place: (value) => Math.log10(Math.max(value, 1e-2)) },
    epsilon: { label: "ε", rules: ["scaled", "held-out"], from: -5, to: 5, step: .05, value: (at) => middles.epsilon * 10 ** at, place: (value) => Math.log10(value / middles.epsilon) },
    gamma: { label: "Width of the kernel (γ)", rules: [null], from: -3, to: 3, step: .02, value: (at) => middles.gamma * 10 ** at, place: (value) => Math.log10(value / middles.gamma) },
  };
  const rounded = (value) => Number(value.toPrecision(4));
  let dragging = null;
  // A slider that comes back to where it was is not said to have changed.
  const released = (range, take) => {
    const end = () => { if (dragging) { dragging = null; thaw(); take(); } };
    range.addEventListener("change", end);
    range.addEventListener("pointerup", () => setTimeout(end));
  };
  const showSliders = () => {
    if (dragging) return;
    middles.gamma = 1 / Math.max(state.n_columns, 1);
    const parts = [];
    for (const [name, kind] of Object.entries(KINDS)) {
      if (!state.used.includes(name) || (name !== "gamma" && !state.compared)) continue;
      const range = make("input", { type: "range", id: `slider-${name}`, min: kind.from, max: kind.to, step: kind.step });
      const shown = make("output", { id: `value-${name}` });
      const rules = make("span", { className: "rules" }, ...kind.rules.map((rule) => make("button", { type: "button", textContent: rule === null ? "default" : rule, data: { rule: String(rule) }, onclick: () => step({ do: "set", name, value: rule }) })));
      const made = () => ({ do: "set", name, value: rounded(kind.value(Number(range.value))) });
      range.addEventListener("input", () => { dragging = name; freeze(); shown.textContent = plain(made().value); preview(made()); });
      released(range, () => step(made()));
      parts.push(make("div", { className: "setting" }, make("label", { htmlFor: range.id, textContent: kind.label }), range, shown, rules));
    }
    const backgrounds = state.sides.slice(1);
    if (backgrounds.length > 1 && backgrounds.length <= 12 && state.compared) {
      const now = () => backgrounds.map((_, k) => Math.max(Number(byId(`weight-${k}`).value), 0));
      const made = () => { const all = now(); return { do: "set", name: "background_weights", value: all.some((weight) => weight > 0) ? all : all.map(() => 1) }; };
      backgrounds.forEach(({ name }, k) => {
        const range = make("input", { type: "range", id: `weight-${k}`, min: 0, max: 1, step: .01, value: 1 });
        range.addEventListener("input", () => { dragging = "weights"; freeze(); preview(made()); });
        released(range, () => step(made()));
        parts.push(make("div", { className: "setting" }, make("label", { htmlFor: range.id }, "Weight of ", make("bdi", { textContent: name })), range, make("output", { id: `weight-value-${k}` })));
      });
    }
    byId("sliders").replaceChildren(...parts);
    showFound();
  };
  // Where sliders stand: at what was set, or at what a rule has found.
  const showFound = () => {
    if (!state || !answer) return;
    for (const [name, kind] of Object.entries(KINDS)) {
      const range = byId(`slider-${name}`);
      if (!range) continue;
      const given = state.parameters[name];
      const found = (answer.found[name] || [])[0];
      if (name === "epsilon" && found && (typeof given !== "number" || !middles.epsilon)) middles.epsilon = found;
      if (name === "epsilon" && !middles.epsilon) middles.epsilon = 1;
      const value = found !== undefined ? found : typeof given === "number" ? given : middles.gamma;
      if (dragging !== name) {
        range.value = kind.place(value);
        byId(`value-${name}`).textContent = plain(value);
      }
      const rule = typeof given === "number" ? undefined : given === undefined ? kind.rules[0] : given;
      for (const button of range.parentElement.querySelectorAll("[data-rule]")) button.setAttribute("aria-pressed", String(button.dataset.rule === String(rule)));
    }
    const weights = answer.found.background_weights || [];
    const largest = Math.max(...weights, 1e-9);
    weights.forEach((weight, k) => {
      const range = byId(`weight-${k}`);
      if (!range) return;
      if (dragging !== "weights") range.value = weight / largest;
      byId(`weight-value-${k}`).textContent = plain(weight);
    });
  };

  // --- the picture -------------------------------------------------------------------------------------------------
  const canvas = byId("plot");
  const context = canvas.getContext("2d");
  const still = document.createElement("canvas");
  const MARGIN = { left: 52, right: 14, top: 12, bottom: 40 };
  let points = null, range = null, zoomed = false, lasso = null, grabbed = null, images = null, pointed = -1, seenView = "";

  const takePoints = (reply) => {
    const x = floats(reply.x), y = floats(reply.y);
    if (reply.moved) points = { ...points, x, y };
    else points = { x, y, rows: new Uint32Array(bytes(reply.rows).buffer), roles: bytes(reply.roles), codes: reply.codes ? bytes(reply.codes) : null, scale: reply.scale, names: reply.names, axis: reply.axis };
    const view = JSON.stringify(reply.view || seenView);
    if (!reply.moved && view !== seenView) { zoomed = false; seenView = view; }
    if (!zoomed) range = bounds();
    if (!reply.moved) {
      const axes = [...Array(reply.n_components).keys()].map((k) => [String(k), `${reply.axis} ${k + 1}`]);
      fill(byId("x"), axes, String(state.view.x));
      fill(byId("y"), axes, String(state.view.y));
      showLegend();
      images = null;
    }
    paint();
    document.body.dataset.ready = "yes";
  };
  const takeImages = (reply) => {
    const [height, width] = reply.shape;
    images = reply.points.map((point, k) => ({ point, picture: greyImage(reply.grey[k], height, width) }));
    paint();
  };
  const greyImage = (text, height, width) => {
    const grey = bytes(text);
    const made = make("canvas", { width, height });
    const data = new ImageData(width, height);
    grey.forEach((level, k) => { data.data.set([level, level, level, 255], 4 * k); });
    made.getContext("2d").putImageData(data, 0, 0);
    return made;
  };
  const bounds = () => {
    const side = (numbers) => {
      const target = [], all = [];
      numbers.forEach((value, k) => { if (points.roles[k] === TARGET) target.push(value); if (points.roles[k] !== LEFT_OUT) all.push(value); });
      const sorted = Float32Array.from(all).sort();
      const at = (share) => sorted[Math.min(sorted.length - 1, Math.max(0, Math.round(share * (sorted.length - 1))))];
      let low = at(.005), high = at(.995);
      for (const value of target) { if (value < low) low = value; if (value > high) high = value; }
      const room = high > low ? .06 * (high - low) : Math.max(Math.abs(low), 1) * .1;
      return [low - room, high + room];
    };
    const [left, right] = side(points.x), [bottom, top] = side(points.y);
    return { left, right, bottom, top };
  };
  const width = () => canvas.clientWidth, height = () => canvas.clientHeight;
  const atX = (x) => MARGIN.left + (x - range.left) / (range.right - range.left) * (width() - MARGIN.left - MARGIN.right);
  const atY = (y) => height() - MARGIN.bottom - (y - range.bottom) / (range.top - range.bottom) * (height() - MARGIN.top - MARGIN.bottom);
  const ofX = (place) => range.left + (place - MARGIN.left) / (width() - MARGIN.left - MARGIN.right) * (range.right - range.left);
  const ofY = (place) => range.bottom + (height() - MARGIN.bottom - place) / (height() - MARGIN.top - MARGIN.bottom) * (range.top - range.bottom);
  const ticks = (low, high) => {
    const rough = (high - low) / 5, power = 10 ** Math.floor(Math.log10(rough));
    const size = [1, 2, 5, 10].map((times) => times * power).find((one) => one >= rough);
    const found = [];
    for (let at = Math.ceil(low / size) * size; at <= high; at += size) found.push(Math.abs(at) < size / 1e6 ? 0 : at);
    return found;
  };
  // Outlines of shapes, in units of their radius.
  const SHAPES = [null, [[0, -1.2], [1.1, .8], [-1.1, .8]], [[-.9, -.9], [.9, -.9], [.9, .9], [-.9, .9]], [[0, -1.3], [1, 0], [0, 1.3], [-1, 0]], [[0, 1.2], [1.1, -.8], [-1.1, -.8]]];
  const mark = (brush, x, y, size, shape) => {
    brush.beginPath();
    if (shape === null) brush.arc(x, y, size, 0, 2 * Math.PI);
    else { shape.forEach(([dx, dy], k) => { if (k) brush.lineTo(x + size * dx, y + size * dy); else brush.moveTo(x + size * dx, y + size * dy); }); brush.closePath(); }
    brush.fill();
  };
  const looks = () => {
    if (points.scale === "numbers") {
      const shades = [...Array(256).keys()].map((level) => {
        const at = level / 255 * (SCALE.length - 1), k = Math.min(Math.floor(at), SCALE.length - 2), share = at - k;
        return `rgb(${SCALE[k].map((part, c) => Math.round(part + share * (SCALE[k + 1][c] - part))).join(",")})`;
      });
      return (k) => [shades[points.codes[k]], null];
    }
    if (points.scale === "names") {
      const shades = [0, 1, 2, 3, 4, 5, 6].map((number) => colour(`c${number}`));
      return (k) => [points.codes[k] >= 12 ? colour("grey") : shades[points.codes[k] % 7], SHAPES[(points.codes[k] + 2 * Math.floor(points.codes[k] / 7)) % SHAPES.length]];
    }
    const shades = [colour("target"), colour("c1"), colour("grey"), colour("soft")];
    const shapes = [null, SHAPES[2], null, null];
    return (k) => [shades[points.roles[k]], shapes[points.roles[k]]];
  };
  const paint = () => {
    if (!points || !width()) return;
    const ratio = devicePixelRatio || 1;
    still.width = canvas.width = Math.round(width() * ratio);
    still.height = canvas.height = Math.round(height() * ratio);
    const brush = still.getContext("2d");
    brush.setTransform(ratio, 0, 0, ratio, 0, 0);
    brush.clearRect(0, 0, width(), height());
    brush.font = "12px system-ui, sans-serif";
    brush.lineWidth = 1;
    const right = width() - MARGIN.right, bottom = height() - MARGIN.bottom;
    brush.textAlign = "center";
    for (const at of ticks(range.left, range.right)) {
      brush.strokeStyle = colour("grid"); brush.beginPath(); brush.moveTo(atX(at), MARGIN.top); brush.lineTo(atX(at), bottom); brush.stroke();
      brush.fillStyle = colour("soft"); brush.fillText(plain(at), atX(at), bottom + 15);
    }
    brush.textAlign = "right";
    for (const at of ticks(range.bottom, range.top)) {
      brush.strokeStyle = colour("grid"); brush.beginPath(); brush.moveTo(MARGIN.left, atY(at)); brush.lineTo(right, atY(at)); brush.stroke();
      brush.fillStyle = colour("soft"); brush.fillText(plain(at), MARGIN.left - 6, atY(at) + 4);
    }
    brush.fillStyle = colour("soft");
    brush.textAlign = "center";
    brush.fillText(`${points.axis} ${state.view.x + 1}`, (MARGIN.left + right) / 2, height() - 8);
    brush.save(); brush.translate(14, (MARGIN.top + bottom) / 2); brush.rotate(-Math.PI / 2);
    brush.fillText(`${points.axis} ${state.view.y + 1}`, 0, 0); brush.restore();
    brush.save();
    brush.beginPath(); brush.rect(MARGIN.left, MARGIN.top, right - MARGIN.left, bottom - MARGIN.top); brush.clip();
    const look = looks(), n = points.x.length, size = n > 8000 ? 1.8 : n > 2000 ? 2.4 : 3.4;
    for (const role of [NEITHER, BACKGROUND, LEFT_OUT, TARGET]) {
      brush.globalAlpha = points.scale === "roles" ? [.75, .45, .22, .6][role] : [.85, .3, .15, .3][role];
      for (let k = 0; k < n; k++) {
        if (points.roles[k] !== role) continue;
        const x = atX(points.x[k]), y = atY(points.y[k]);
        if (x < MARGIN.left - 5 || x > right + 5 || y < MARGIN.top - 5 || y > bottom + 5) continue;
        const [shade, shape] = look(k);
        if (role === LEFT_OUT) { brush.strokeStyle = shade; brush.beginPath(); brush.moveTo(x - 3, y - 3); brush.lineTo(x + 3, y + 3); brush.moveTo(x - 3, y + 3); brush.lineTo(x + 3, y - 3); brush.stroke(); continue; }
        brush.fillStyle = shade;
        if (size < 2 && shape === null) brush.fillRect(x - size, y - size, 2 * size, 2 * size);
        else mark(brush, x, y, size, shape);
      }
    }
    brush.globalAlpha = 1;
    if (images && byId("thumbnails").checked) {
      const side = 34, taken = [];
      for (const { point, picture } of images) {
        const x = atX(points.x[point]), y = atY(points.y[point]);
        if (taken.some(([a, b]) => Math.abs(a - x) < side && Math.abs(b - y) < side)) continue;
        taken.push([x, y]);
        const tall = side * picture.height / picture.width;
        brush.imageSmoothingEnabled = false;
        brush.drawImage(picture, x - side / 2, y - tall / 2, side, tall);
        brush.strokeStyle = colour("target"); brush.strokeRect(x - side / 2, y - tall / 2, side, tall);
      }
    }
    brush.restore();
    overlay();
  };
  const overlay = () => {
    const ratio = devicePixelRatio || 1;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, canvas.width, canvas.height);
    context.drawImage(still, 0, 0);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    if (far.size) {
      context.strokeStyle = colour("ink"); context.lineWidth = 1.5;
      for (let k = 0; k < points.rows.length; k++) {
        if (!far.has(points.rows[k])) continue;
        context.beginPath(); context.arc(atX(points.x[k]), atY(points.y[k]), 7, 0, 2 * Math.PI); context.stroke();
      }
    }
    if (pointed >= 0) { context.strokeStyle = colour("accent"); context.lineWidth = 2; context.beginPath(); context.arc(atX(points.x[pointed]), atY(points.y[pointed]), 6, 0, 2 * Math.PI); context.stroke(); }
    if (lasso) {
      context.beginPath();
      lasso.corners.forEach(([x, y], k) => { if (k) context.lineTo(atX(x), atY(y)); else context.moveTo(atX(x), atY(y)); });
      context.closePath();
      const shade = colour(lasso.side === "target" ? "target" : "c1");
      context.fillStyle = shade; context.globalAlpha = .12; context.fill(); context.globalAlpha = 1;
      context.strokeStyle = shade; context.lineWidth = 2; context.setLineDash(lasso.how === "remove" ? [6, 4] : []); context.stroke(); context.setLineDash([]);
    }
  };
  const showLegend = () => {
    if (points.scale === "numbers") {
      byId("legend").replaceChildren(make("span", { className: "scale" }, points.names[0], make("i"), points.names[1]));
      return;
    }
    byId("legend").replaceChildren(...points.names.map(([code, name]) => {
      const swatch = make("canvas", { width: 30, height: 30, className: "swatch" });
      const brush = swatch.getContext("2d");
      const shape = points.scale === "roles" ? [null, SHAPES[2], null, null][code] : SHAPES[(code + 2 * Math.floor(code / 7)) % SHAPES.length];
      brush.fillStyle = points.scale === "roles" ? [colour("target"), colour("c1"), colour("grey"), colour("soft")][code] : code >= 12 ? colour("grey") : colour(`c${code % 7}`);
      mark(brush, 15, 15, 10, shape);
      return make("span", { className: "item" }, swatch, make("bdi", { textContent: name }));
    }));
  };
  byId("thumbnails").addEventListener("change", paint);
  new ResizeObserver(() => paint()).observe(canvas);

  // --- the mouse, the finger and the keys --------------------------------------------------------------------------
  const placeOf = (event) => { const box = canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
  const chosen = (name) => document.querySelector(`input[name="${name}"]:checked`).value;
  const nearest = (x, y) => {
    let best = 14 * 14, found = -1;
    for (let k = 0; k < points.x.length; k++) {
      const dx = atX(points.x[k]) - x, dy = atY(points.y[k]) - y, far = dx * dx + dy * dy;
      if (far < best) { best = far; found = k; }
    }
    return found;
  };
  let pressed = null, hoverTimer = 0, wanted = null;
  canvas.addEventListener("pointerdown", (event) => {
    if (!points || event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    const [x, y] = placeOf(event);
    pressed = { x, y, moved: false };
    freeze();
    if (chosen("side") === "move") grabbed = { x, y, range: { ...range } };
    else lasso = { side: chosen("side"), how: event.shiftKey ? "add" : event.altKey ? "remove" : chosen("how"), corners: [[ofX(x), ofY(y)]], last: [x, y] };
    hush();
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!points) return;
    const [x, y] = placeOf(event);
    if (pressed && Math.hypot(x - pressed.x, y - pressed.y) > 5) pressed.moved = true;
    if (grabbed) {
      const dx = (x - grabbed.x) / (width() - MARGIN.left - MARGIN.right) * (range.right - range.left);
      const dy = (y - grabbed.y) / (height() - MARGIN.top - MARGIN.bottom) * (range.top - range.bottom);
      range = { left: grabbed.range.left - dx, right: grabbed.range.right - dx, bottom: grabbed.range.bottom + dy, top: grabbed.range.top + dy };
      zoomed = true;
      paint();
    } else if (lasso) {
      if (Math.hypot(x - lasso.last[0], y - lasso.last[1]) < 5) return;
      lasso.corners.push([ofX(x), ofY(y)]);
      lasso.last = [x, y];
      overlay();
      if (lasso.corners.length > 4) preview({ do: "lasso", side: lasso.side, how: lasso.how, polygon: lasso.corners });
    } else if (event.pointerType === "mouse") {
      const found = nearest(x, y);
      if (found === pointed) return;
      pointed = found;
      hush();
      overlay();
      if (found >= 0) hoverTimer = setTimeout(() => { wanted = { row: points.rows[found], x: event.clientX, y: event.clientY }; send({ do: "row", row: points.rows[found] }); }, 60);
    }
  });
  canvas.addEventListener("pointerup", (event) => {
    const drawn = lasso, was = pressed;
    lasso = grabbed = pressed = null;
    thaw();
    if (!was) return;
    if (!was.moved) {
      const found = nearest(...placeOf(event));
      pointed = found;
      if (found >= 0) { wanted = { row: points.rows[found], pinned: true }; send({ do: "row", row: points.rows[found] }); } else byId("card").hidden = true;
    } else if (drawn && drawn.corners.length > 2) step({ do: "lasso", side: drawn.side, how: drawn.how, polygon: drawn.corners });
    overlay();
  });
  const giveUp = () => { if (!lasso && !grabbed) return; lasso = grabbed = pressed = nextPreview = null; thaw(); overlay(); send({ do: "hello" }); };
  canvas.addEventListener("pointercancel", giveUp);
  canvas.addEventListener("pointerleave", () => { if (!pressed) { pointed = -1; hush(); if (points) overlay(); } });
  const zoom = (factor, x, y) => {
    const px = ofX(x), py = ofY(y);
    range = { left: px + (range.left - px) * factor, right: px + (range.right - px) * factor, bottom: py + (range.bottom - py) * factor, top: py + (range.top - py) * factor };
    zoomed = true;
    paint();
  };
  canvas.addEventListener("wheel", (event) => { if (!points) return; event.preventDefault(); zoom(Math.exp(event.deltaY * .0015), ...placeOf(event)); }, { passive: false });
  canvas.addEventListener("dblclick", () => { zoomed = false; range = bounds(); paint(); });
  canvas.addEventListener("keydown", (event) => {
    const dx = .1 * (range.right - range.left), dy = .1 * (range.top - range.bottom);
    const shifts = { ArrowLeft: [-dx, 0], ArrowRight: [dx, 0], ArrowUp: [0, dy], ArrowDown: [0, -dy] };
    if (shifts[event.key]) { const [a, b] = shifts[event.key]; range = { left: range.left + a, right: range.right + a, bottom: range.bottom + b, top: range.top + b }; zoomed = true; paint(); }
    else if (event.key === "+" || event.key === "-") zoom(event.key === "+" ? .8 : 1.25, width() / 2, height() / 2);
    else if (event.key === "0") { zoomed = false; range = bounds(); paint(); }
    else return;
    event.preventDefault();
  });
  addEventListener("keydown", (event) => { if (event.key === "Escape") { giveUp(); byId("card").hidden = true; } });
  for (const input of document.querySelectorAll("#side input")) input.addEventListener("change", () => canvas.classList.toggle("moving", chosen("side") === "move"));
  const hush = () => { clearTimeout(hoverTimer); byId("point").hidden = true; };

  // --- rows --------------------------------------------------------------------------------------------------------
  let far = new Set();
  const leave = (row) => make("button", { type: "button", textContent: "Leave out", onclick: () => { byId("card").hidden = true; step({ do: "leave", rows: [row] }); } });
  const showRow = (reply) => {
    if (!wanted || wanted.row !== reply.row) return;
    const facts = make("dl", {}, ...reply.facts.flatMap(([name, value]) => [make("dt", { textContent: name }), make("dd", { textContent: value })]));
    const picture = reply.grey ? [greyImage(reply.grey, ...reply.shape)] : [];
    if (wanted.pinned) {
      const known = state.in_memory ? [leave(reply.row)] : [];
      byId("card").replaceChildren(...picture, make("div", {}, make("b", { textContent: reply.name }), facts, ...known));
      byId("card").hidden = false;
      return;
    }
    const bubble = byId("point");
    bubble.replaceChildren(make("b", { textContent: reply.name }), ...picture, ...reply.facts.slice(0, 4).map(([name, value]) => make("p", { textContent: `${name}: ${value}` })));
    bubble.hidden = false;
    const size = bubble.getBoundingClientRect();
    bubble.style.left = `${Math.max(8, Math.min(wanted.x + 14, innerWidth - size.width - 12))}px`;
    bubble.style.top = `${wanted.y + 18 + size.height > innerHeight ? wanted.y - size.height - 12 : wanted.y + 18}px`;
  };
  const showOutlying = (reply) => {
    far = new Set(reply.rows.map(({ row }) => row));
    byId("outlying").hidden = reply.rows.length === 0;
    byId("far").replaceChildren(...reply.rows.map(({ row, name, far: distance }) => make("li", {},
      make("span", { title: `${distance} robust standard deviations from the median` }, make("bdi", { textContent: name }), make("small", { textContent: ` ${distance} spreads away` })), ...(state.in_memory ? [leave(row)] : []))));
    if (points) overlay();
  };
  const askTable = () => send({ do: "table", side: byId("table-of").value, search: byId("search").value });
  let typing = 0;
  byId("table-of").addEventListener("change", askTable);
  byId("search").addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(askTable, 150); });
  const showTable = (reply) => {
    const table = byId("table"), labelled = state.has_labels;
    table.tHead.replaceChildren(make("tr", {}, ...["row", "name", "group", ...(labelled ? ["label"] : []), ...reply.columns].map((name, k) => make("th", { scope: "col", textContent: name, className: k === 0 || k > (labelled ? 3 : 2) ? "num" : "" }))));
    table.tBodies[0].replaceChildren(...reply.rows.map((row) => make("tr", {}, make("td", { className: "num", textContent: row.row }), make("td", { textContent: row.name }), make("td", { textContent: row.group }),
      ...(labelled ? [make("td", { textContent: row.label })] : []), ...row.values.map((value) => make("td", { className: "num", textContent: value })))));
    byId("table-count").textContent = `${reply.count.toLocaleString("en")} row${reply.count === 1 ? "" : "s"}${reply.count > reply.rows.length ? `, the first ${reply.rows.length} are shown` : ""}`;
  };

  // --- one column --------------------------------------------------------------------------------------------------
  const askColumn = (name) => { byId("column").value = name; send({ do: "column", name }); };
  byId("column").addEventListener("change", (event) => { if (state.columns.includes(event.target.value)) askColumn(event.target.value); });
  const showSpread = (reply) => {
    byId("column").value = reply.name;
    const most = Math.max(...reply.shares.flat(), 1e-9), n = reply.shares[0].length;
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("viewBox", `0 0 ${n} 100`);
    svg.setAttribute("preserveAspectRatio", "none");
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", `Distribution of ${reply.name} in the target and the backgrounds`);
    reply.shares.forEach((shares, side) => {
      const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
      const tops = shares.map((share, k) => `L${k} ${(98 - 92 * share / most).toFixed(2)}H${k + 1}`).join("");
      path.setAttribute("d", `M0 98${tops}V98`);
      path.setAttribute("vector-effect", "non-scaling-stroke");
      path.setAttribute("fill", side ? "none" : "var(--fill)");
      path.setAttribute("stroke", side ? "var(--c1)" : "var(--target)");
      path.setAttribute("stroke-width", "2");
      if (side > 1) path.setAttribute("stroke-dasharray", ["5 4", "2 3", "9 3 2 3"][(side - 2) % 3]);
      svg.append(path);
    });
    byId("histogram").replaceChildren(svg, make("div", { className: "ends" }, make("span", { textContent: reply.ends[0] }), make("span", { textContent: reply.ends[1] })),
      make("p", { className: "note" }, ...reply.names.slice(0, reply.shares.length).flatMap((name, k) => [k ? "; " : "Mean: ", make("bdi", { textContent: name }), ` ${reply.means[k]}`])));
  };

  // --- keeping -----------------------------------------------------------------------------------------------------
  byId("save").addEventListener("click", (event) => { event.target.disabled = true; byId("kept").textContent = "Writing the result and its report …"; send({ do: "save", folder: byId("folder").value }); });
  byId("keep").addEventListener("click", () => send({ do: "keep", file: byId("file").value }));
  byId("open").addEventListener("click", () => send({ do: "open", file: byId("file").value }));
  for (const button of document.querySelectorAll(".copy")) button.addEventListener("click", () => navigator.clipboard.writeText(byId(button.dataset.of).textContent).then(() => { button.textContent = "Copied"; setTimeout(() => { button.textContent = "Copy"; }, 1500); }));
  byId("again").addEventListener("click", connect);

  // --- dark and light ----------------------------------------------------------------------------------------------
  const wantsDark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme || (wantsDark.matches ? "dark" : "light")) === "dark";
  const themed = () => { byId("theme").textContent = isDark() ? "Light" : "Dark"; byId("theme").setAttribute("aria-label", `Switch to ${isDark() ? "light" : "dark"} colours`); if (points) { showLegend(); paint(); } };
  byId("theme").addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; themed(); });
  wantsDark.addEventListener("change", themed);
  themed();
  connect();
})();
