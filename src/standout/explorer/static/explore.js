"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const root = document.documentElement;
  const token = new URLSearchParams(location.search).get("token") || "";
  const ROLES = ["neither", "target", "background"];
  const SCALE = [[0, 34, 78], [53, 69, 108], [102, 105, 112], [148, 142, 119], [200, 184, 102], [254, 232, 56]];
  const NAMES = { shrinkage: "Shrinkage", alpha: "α", epsilon: "ε" };
  let state = null, answer = null, points = null, images = null, shown = null, busy = 0, answered = 0;

  // All elements are made by this function. It inserts names from the data as text, never as HTML.
  const make = (tag, properties = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
      if (name in element) element[name] = value; else element.setAttribute(name, value);
    }
    element.append(...children);
    return element;
  };
  const colour = (name) => getComputedStyle(root).getPropertyValue(`--${name}`).trim();
  const brief = (value, digits = 3) => {
    if (value === null) return "–";
    const size = Math.abs(value);
    const text = size >= 1e5 || (size > 0 && size < 1e-3) ? value.toExponential(1) : String(Number(value.toPrecision(digits)));
    return text.replace("-", "\u2212");
  };
  // The same format as in the headline.
  const number = (value) => Math.abs(value) >= 1e6 || Math.abs(value) < 1e-4 ? brief(value) : Math.abs(value) >= 100 ? Math.round(value).toLocaleString("en") : value.toPrecision(3);
  const rows = (count) => `${count.toLocaleString("en")} row${count === 1 ? "" : "s"}`;
  const option = (value, text) => make("option", { value, textContent: text });
  const fill = (select, pairs, chosen) => { select.replaceChildren(...pairs.map(([value, text]) => option(value, text))); select.value = chosen; };

  // --- the conversation ----------------------------------------------------------------------------------------------
  // A name for this tab: the server keeps its steps when the page is loaded again.
  const name = sessionStorage.getItem("standout-page") || Array.from(crypto.getRandomValues(new Uint8Array(8)), (part) => part.toString(16).padStart(2, "0")).join("");
  sessionStorage.setItem("standout-page", name);
  const ask = async (message) => {
    try {
      const reply = await fetch(`/ask?page=${name}`, { method: "POST", headers: { "X-Standout-Token": token, "Content-Type": "application/json" }, body: JSON.stringify(message) });
      if (!reply.ok) throw new Error(String(reply.status));
      byId("gone").hidden = true;
      const read = await reply.json();
      byId("problem").hidden = !read.problem;
      byId("problem").textContent = read.problem || "";
      return read;
    } catch (error) {
      byId("gone").hidden = false;
      return { problem: String(error) };
    }
  };
  // Only the reply to the newest step is shown. Replies to older steps are dropped.
  let newest = 0;
  const step = async (message) => {
    const own = newest += 1;
    busy += 1;
    document.body.classList.add("waiting");
    nextPreview = null;
    const reply = await ask(message);
    busy -= 1;
    if (own === newest) {
      if (reply.problem) { if (state) showState(state); } else {
        show(reply);
        const details = await ask({ do: "details" });
        if (own === newest && !details.problem) { showDetails(details); await column(shown && answer.columns.rows.some(([which]) => which === shown) ? shown : answer.columns.rows[0]?.[0] ?? shown, false); }
      }
    }
    if (own === newest) { document.body.classList.remove("waiting", "preview"); document.body.dataset.answered = String(answered += 1); }
  };
  // One preview at a time: after its answer, the newest value is sent.
  let previewing = false, nextPreview = null;
  const preview = async (value) => {
    if (previewing) { nextPreview = value; return; }
    previewing = true;
    const own = newest, reply = await ask({ do: "preview", value });
    previewing = false;
    if (own === newest && !reply.problem) { document.body.classList.add("preview"); show(reply); document.body.dataset.previews = String(Number(document.body.dataset.previews || 0) + 1); }
    if (nextPreview !== null) { const next = nextPreview; nextPreview = null; preview(next); }
  };
  const show = (reply) => {
    if (reply.state) showState(reply.state);
    // Clear the headline of the last answer until the new one arrives.
    if (reply.answer && byId("asked").textContent) byId("headline").textContent = byId("asked").textContent;
    if (reply.answer) showAnswer(reply.answer);
    if (reply.points) showPoints(reply.points);
    if (!("ready" in document.body.dataset)) {
      // Scroll a long list to the first chosen entry.
      const chosen = document.querySelector("#values tr.target, #values tr.background"), list = byId("values").parentElement;
      if (chosen) list.scrollTop = Math.max(chosen.offsetTop - 60, 0);
    }
    document.body.dataset.ready = "";
  };

  // --- the question --------------------------------------------------------------------------------------------------
  const set = (which, value) => step({ do: "set", name: which, value });
  const showState = (reply) => {
    state = reply;
    byId("undo").disabled = !reply.undo;
    byId("redo").disabled = !reply.redo;
    fill(byId("by"), reply.words.map((word) => [word, word]), reply.by);
    fill(byId("subjects"), [["", "none"], ...reply.words.map((word) => [word, word])], reply.subjects || "");
    fill(byId("colour"), [["role", "target and background"], ...reply.words.map((word) => [word, word]), ...(shown ? [[`column ${shown}`, shown]] : [])], points ? wantedColour : "role");
    for (const [id, value] of [["method", reply.method], ["n-components", reply.n_components], ["scale", reply.scale || ""], ["center", reply.center]]) byId(id).value = value;
    byId("scale").disabled = reply.method.startsWith("k");
    byId("by").parentElement.hidden = reply.words.length === 0;
    byId("find-value").hidden = reply.values.length < 9;
    showValues();
    const [target, background, neither] = reply.counts;
    byId("now").textContent = `${rows(target)} are target, ${background.toLocaleString("en")} background${reply.datasets.length > 2 ? ` (${reply.datasets.length - 1} datasets)` : ""}, ${neither.toLocaleString("en")} neither.`;
    const [own, ...others] = reply.datasets;
    byId("asked").textContent = own === undefined ? "" : others.length ? `What stands out in ${own} against ${others.slice(0, 3).join(", ")}${others.length > 3 ? " and others" : ""}?` : own;
    byId("size").replaceChildren(make("b", { textContent: `${target.toLocaleString("en")} + ${background.toLocaleString("en")}` }), make("span", { textContent: `rows, ${reply.n_columns.toLocaleString("en")} columns` }));
    byId("python").textContent = reply.python;
    byId("command").textContent = reply.command || "# The data are not from files, or nothing is compared yet.";
    for (const input of document.querySelectorAll("#side input, #only")) input.disabled = !reply.lasso;
  };
  const showValues = () => {
    const word = byId("find-value").value.toLowerCase();
    byId("values").tBodies[0].replaceChildren(...state.values.filter((one) => one.name.toLowerCase().includes(word)).slice(0, 300).map((one, number) => make("tr", { className: one.role || "mixed" },
      make("td", {}, make("bdi", { textContent: one.name || "(empty)" }), one.role === null ? make("small", { textContent: " in part" }) : ""),
      make("td", { textContent: one.rows.toLocaleString("en") }),
      ...["target", "background", "neither"].map((role) => make("td", {}, make("input", { type: "radio", name: `value-${number}`, checked: one.role === role, "aria-label": `${one.name}: ${role}`, onchange: () => step({ do: "role", values: [one.name], role }) }))))));
  };
  byId("find-value").addEventListener("input", showValues);
  for (const act of ["clear", "rest", "swap", "undo", "redo"]) byId(act).addEventListener("click", () => step({ do: act }));
  byId("by").addEventListener("change", (event) => set("by", event.target.value));
  byId("method").addEventListener("change", (event) => set("method", event.target.value));
  byId("center").addEventListener("change", (event) => set("center", event.target.value));
  byId("scale").addEventListener("change", (event) => set("scale", event.target.value || null));
  byId("subjects").addEventListener("change", (event) => set("subjects", event.target.value || null));
  byId("n-components").addEventListener("change", (event) => set("n_components", Number(event.target.value)));
  addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z" || /search|text/.test(event.target.type || "")) return;
    event.preventDefault();
    step({ do: event.shiftKey ? "redo" : "undo" });
  });

  // --- the answer ----------------------------------------------------------------------------------------------------
  const tile = (id, big, words) => byId(id).replaceChildren(make("b", {}, big), ...(words instanceof Node ? [words] : [make("span", { textContent: words })]));
  const showAnswer = (reply) => {
    answer = reply;
    const [ratio, low, high] = reply.components[reply.columns.component];
    if (ratio === null) tile("ratio", reply.reason ? "–" : "…", reply.reason ? "no ratio without a background" : slides() ? "when the slider is released" : "no ratio");
    else tile("ratio", `${number(ratio)} times`, `± 1 error: ${number(low)} to ${number(high)}, component ${reply.columns.component + 1}, held out`);
    const p = reply.p_values && reply.p_values[reply.columns.component];
    const button = make("button", { type: "button", id: "test", textContent: reply.p_values ? "Open the report" : "Test, and make a report", disabled: Boolean(reply.reason), onclick: test });
    tile("p-value", p === null || p === undefined ? "p = ?" : p < 0.001 ? "p < 0.001" : `p = ${brief(p, 2)}`, make("span", {}, button));
    byId("components").replaceChildren(...reply.components.map((_, k) => make("button", { type: "button", role: "tab", "aria-selected": String(k === reply.columns.component), textContent: `component ${k + 1}`, onclick: () => list(k) })));
    showSlider(reply.slider);
    showList(reply.columns);
  };
  const showDetails = (reply) => {
    byId("headline").textContent = reply.headline;
    document.title = `standout: ${reply.headline}`.slice(0, 90);
    byId("cautions").hidden = reply.cautions.length === 0;
    byId("cautions").querySelector("ol").replaceChildren(...reply.cautions.map((text) => make("li", { textContent: text })));
    byId("chart").replaceChildren(...(reply.path ? [charts.path(reply.path)] : []));
    images = reply.images;
    pattern();
  };
  const test = async () => {
    const button = byId("test");
    if (answer.p_values) { open(`/report?token=${encodeURIComponent(token)}&page=${name}&number=${answer.report}`); return; }
    const own = newest;
    button.disabled = true;
    button.textContent = "Testing …";
    const reply = await ask({ do: "report" });
    if (own !== newest) return;
    if (!reply.problem) { answer.p_values = reply.p_values; answer.report = reply.report; byId("headline").textContent = reply.headline; }
    showAnswer(answer);
    document.body.dataset.tested = "";
  };

  // --- the slider over the path --------------------------------------------------------------------------------------
  let held = false;
  const slides = () => held;
  const slider = byId("slider");
  // A position of the slider is an index into the values of the path. Between two indices the value is interpolated.
  const valueAt = (place) => {
    const { values } = answer.slider, low = Math.floor(place), high = Math.min(low + 1, values.length - 1);
    return values[low] + (place - low) * (values[high] - values[low]);
  };
  const placeOf = (value) => {
    const { values } = answer.slider;
    for (let k = 0; k + 1 < values.length; k += 1) {
      const [low, high] = [values[k], values[k + 1]];
      if ((value - low) * (value - high) <= 0) return high === low ? k : k + (value - low) / (high - low);
    }
    return Math.abs(value - values[0]) < Math.abs(value - values[values.length - 1]) ? 0 : values.length - 1;
  };
  const showSlider = (reply) => {
    byId("sliding").hidden = reply.values.length < 2;
    byId("sliding").style.display = reply.values.length < 2 ? "none" : "";
    byId("slider-name").textContent = NAMES[reply.name];
    slider.max = Math.max(reply.values.length - 1, 1);
    if (reply.value !== null && !held && reply.values.length > 1) { slider.value = placeOf(reply.value); byId("slider-value").textContent = brief(reply.value, 2); }
    byId("auto").textContent = reply.auto ? "by the rule" : "Use the rule";
    byId("auto").disabled = reply.auto;
  };
  slider.addEventListener("input", () => {
    held = true;
    const value = Number(valueAt(Number(slider.value)).toPrecision(3));
    byId("slider-value").textContent = brief(value, 2);
    if (!state.method.startsWith("k")) preview(value);
  });
  slider.addEventListener("change", () => { held = false; set("value", Number(valueAt(Number(slider.value)).toPrecision(3))); });
  byId("auto").addEventListener("click", () => set("value", null));

  // --- columns -------------------------------------------------------------------------------------------------------
  const list = async (component) => {
    const own = newest, reply = await ask({ do: "columns", component, search: byId("search").value, sort: byId("sort").value });
    if (own !== newest || reply.problem) return;
    answer.columns = reply.columns;
    showAnswer(answer);
    pattern();
  };
  let typing = 0;
  byId("search").addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(() => list(answer.columns.component), 80); });
  byId("sort").addEventListener("change", () => list(answer.columns.component));
  const showList = (reply) => {
    byId("list").tBodies[0].replaceChildren(...reply.rows.map(([which, correlation, effect, differs]) => {
      const bar = make("b", { className: correlation < 0 ? "minus" : "plus" });
      bar.style.width = `${50 * Math.min(Math.abs(correlation || 0), 1)}%`;
      return make("tr", { className: which === shown ? "shown" : "" },
        make("td", {}, make("button", { type: "button", textContent: which, title: "Show how this column is spread, and colour by it", onclick: () => column(which) })),
        make("td", {}, make("div", { className: "cell" }, make("div", { className: "bar" }, bar), make("span", { className: "num", textContent: (correlation || 0).toFixed(2).replace("-", "\u2212") }))),
        make("td", { className: differs ? "" : "weak", textContent: effect === null ? "–" : effect.toFixed(2).replace("-", "\u2212"), title: differs ? "The means differ (q ≤ 0.05)" : "" }));
    }));
    byId("found").textContent = reply.found > reply.rows.length ? `The first ${reply.rows.length} of ${reply.found.toLocaleString("en")} columns; type to find others.` : reply.found ? "" : "No column has this in its name.";
  };
  const { svg } = charts;
  const column = async (which, coloured = true) => {
    const reply = await ask({ do: "column", name: which });
    if (reply.problem) return;
    shown = which;
    const drawing = svg("svg", { viewBox: "0 0 400 100", preserveAspectRatio: "none", role: "img", "aria-label": "Distribution of the column" });
    for (const side of reply.sides) {
      const wide = 400 / side.shares.length;
      drawing.append(svg("path", { class: side.role === "background" ? "background" : "target", "vector-effect": "non-scaling-stroke", d: `M0 100${side.shares.map((share) => `V${(100 - 95 * share).toFixed(1)}h${wide}`).join("")}V100` }));
    }
    const words = reply.sides.map((side) => `${side.role}: ${brief(side.mean)} ± ${brief(side.spread)}`).join(", ");
    byId("histogram").replaceChildren(drawing, make("figcaption", {}, make("b", {}, make("bdi", { textContent: which })), ` from ${brief(reply.low)} to ${brief(reply.high)}. Mean ± standard deviation: ${words}.`));
    byId("histogram").hidden = false;
    showList(answer.columns);
    if (!coloured) return;
    wantedColour = `column ${which}`;
    fill(byId("colour"), [["role", "target and background"], ...state.words.map((word) => [word, word]), [wantedColour, which]], wantedColour);
    view({ colour: wantedColour });
  };
  const pattern = () => {
    const place = byId("pattern");
    place.replaceChildren();
    if (!images || !images.patterns[answer.columns.component]) return;
    const [high, wide] = images.shape, values = images.patterns[answer.columns.component];
    const picture = make("canvas", { width: wide, height: high, role: "img", "aria-label": "Correlations of the pixels" });
    const pen = picture.getContext("2d"), most = Math.max(...values.map(Math.abs)) || 1, pixels = pen.createImageData(wide, high);
    values.forEach((value, k) => {
      const share = Math.abs(value) / most, end = value > 0 ? [213, 94, 0] : [0, 114, 178];
      end.forEach((part, j) => { pixels.data[4 * k + j] = 255 + share * (part - 255); });
      pixels.data[4 * k + 3] = 255;
    });
    pen.putImageData(pixels, 0, 0);
    place.append(picture);
  };

  // --- the picture ---------------------------------------------------------------------------------------------------
  const canvas = byId("plot"), BOX = { left: 46, top: 8, right: 10, bottom: 40 };
  let range = null, lasso = null, lit = -1, wantedColour = "role";
  const view = async (message) => { const own = newest, reply = await ask({ do: "view", ...message }); if (own === newest && reply.points) showPoints(reply.points); };
  for (const [id, axis] of [["x", 0], ["y", 1]]) byId(id).addEventListener("change", () => { const axes = [Number(byId("x").value), Number(byId("y").value)]; points.axes[axis] = axes[axis]; view({ axes }); });
  byId("colour").addEventListener("change", (event) => { wantedColour = event.target.value; view({ colour: wantedColour }); });
  // Axes cover most points. A few far points are drawn hollow at the edge, so that they do not compress the others.
  const limits = (column) => {
    const every = Float64Array.from(column.filter((value) => value !== null)).sort();
    if (!every.length) return [-1, 1];
    const at = (share) => every[Math.round(share * (every.length - 1))];
    const reach = 0.6 * (at(0.98) - at(0.02));
    const low = every.find((value) => value >= at(0.02) - reach), high = every.findLast((value) => value <= at(0.98) + reach);
    const margin = 0.05 * (high - low || Math.abs(high) || 1);
    return [low - margin, high + margin];
  };
  const showPoints = (reply) => {
    points = reply;
    if (!lasso) range = [limits(reply.x), limits(reply.y)];
    const axes = Array.from({ length: reply.n_components }, (_, k) => [k, `${k + 1}`]);
    fill(byId("x"), axes, reply.axes[0]);
    fill(byId("y"), axes, reply.axes[1]);
    for (const id of ["x", "y"]) byId(id).parentElement.hidden = reply.n_components < 3;
    byId("drawn").textContent = `${rows(reply.x.length)} drawn${reply.held_out ? "; scores are held out, in units of the background's standard deviation" : ""}.`;
    legend();
    draw();
  };
  const onScale = (value, low, high) => {
    if (value === null) return colour("grey");
    const at = (SCALE.length - 1) * Math.min(Math.max((value - low) / (high - low || 1), 0), 1), [from, to] = [SCALE[Math.floor(at)], SCALE[Math.ceil(at)]];
    return `rgb(${from.map((part, k) => Math.round(part + (at % 1) * (to[k] - part))).join()})`;
  };
  const ends = () => { const known = points.marks.filter((value) => value !== null); return [Math.min(...known), Math.max(...known)]; };
  const legend = () => {
    const entry = (paint, words) => { const dot = make("i"); dot.style.background = paint; return make("span", {}, dot, make("bdi", { textContent: words })); };
    if (points.names === null) byId("legend").replaceChildren(...[1, 2, 0].filter((role) => points.roles.includes(role)).map((role) => entry(`var(--${["grey", "c0", "c1"][role]})`, ROLES[role])));
    else if (points.names.length) byId("legend").replaceChildren(...points.names.map((word, k) => entry(`var(--c${k % 12})`, word)));
    else byId("legend").replaceChildren(make("span", { className: "scale" }, `${points.colour}: ${brief(ends()[0])}`, make("i"), brief(ends()[1])));
  };
  const box = () => ({ left: BOX.left, top: BOX.top, width: canvas.clientWidth - BOX.left - BOX.right, height: canvas.clientHeight - BOX.top - BOX.bottom });
  const clamp = (value, [low, high]) => Math.min(Math.max(value, low), high);
  const atX = (value) => { const { left, width } = box(); return left + (value - range[0][0]) / (range[0][1] - range[0][0]) * width; };
  const atY = (value) => { const { top, height } = box(); return top + (range[1][1] - value) / (range[1][1] - range[1][0]) * height; };
  const ofX = (x) => { const { left, width } = box(); return range[0][0] + (x - left) / width * (range[0][1] - range[0][0]); };
  const ofY = (y) => { const { top, height } = box(); return range[1][1] - (y - top) / height * (range[1][1] - range[1][0]); };
  const ticks = ([low, high], most) => {
    const rough = (high - low) / most, power = 10 ** Math.floor(Math.log10(rough)), size = [1, 2, 5, 10].map((times) => times * power).find((one) => one >= rough), found = [];
    for (let k = Math.ceil(low / size); k * size <= high; k += 1) found.push(k * size);
    return found;
  };
  const paintAxes = (pen) => {
    const { left, top, width, height } = box(), grid = colour("grid"), soft = colour("soft");
    pen.font = "12px system-ui, sans-serif";
    for (const value of ticks(range[0], Math.max(width / 90, 2))) {
      pen.fillStyle = grid; pen.fillRect(atX(value), top, 1, height);
      pen.fillStyle = soft; pen.textAlign = "center"; pen.fillText(brief(value), atX(value), top + height + 15);
    }
    const named = points.axes[1] !== null;
    for (const value of named ? ticks(range[1], Math.max(height / 70, 2)) : []) {
      pen.fillStyle = grid; pen.fillRect(left, atY(value), width, 1);
      pen.fillStyle = soft; pen.textAlign = "right"; pen.fillText(brief(value), left - 5, atY(value) + 4);
    }
    pen.fillStyle = soft; pen.textAlign = "center";
    pen.fillText(`${points.axis} ${points.axes[0] + 1}`, left + width / 2, top + height + 32);
    if (!named) return;
    pen.save(); pen.translate(11, top + height / 2); pen.rotate(-Math.PI / 2); pen.fillText(`${points.axis} ${points.axes[1] + 1}`, 0, 0); pen.restore();
  };
  let waiting = false;
  const draw = () => { if (!waiting) { waiting = true; requestAnimationFrame(() => { waiting = false; paint(); }); } };
  const paint = () => {
    if (!points || !canvas.clientWidth) return;
    const scale = devicePixelRatio || 1;
    [canvas.width, canvas.height] = [Math.round(canvas.clientWidth * scale), Math.round(canvas.clientHeight * scale)];
    const pen = canvas.getContext("2d");
    pen.scale(scale, scale);
    paintAxes(pen);
    const known = ["grey", "c0", "c1"].map(colour), words = Array.from({ length: 12 }, (_, k) => colour(`c${k}`)), at = points.names && !points.names.length ? ends() : null;
    const size = points.x.length > 2500 ? 2.2 : points.x.length > 400 ? 3 : 4;
    // Points of the target are drawn last.
    for (const role of [0, 2, 1]) for (let k = 0; k < points.x.length; k += 1) {
      if (points.roles[k] !== role || points.x[k] === null) continue;
      const x = clamp(points.x[k], range[0]), y = clamp(points.y[k], range[1]);
      const shade = points.names === null ? known[role] : at ? onScale(points.marks[k], ...at) : words[points.marks[k] % 12];
      pen.globalAlpha = role === 1 ? 0.75 : role === 2 ? 0.5 : 0.3;
      pen.beginPath();
      pen.arc(atX(x), atY(y), role === 1 ? size : 0.85 * size, 0, 7);
      if (x !== points.x[k] || y !== points.y[k]) { pen.strokeStyle = shade; pen.stroke(); } else { pen.fillStyle = shade; pen.fill(); }
    }
    pen.globalAlpha = 1;
    if (lit >= 0 && lit < points.x.length) { pen.strokeStyle = colour("ink"); pen.lineWidth = 2; pen.beginPath(); pen.arc(atX(clamp(points.x[lit], range[0])), atY(clamp(points.y[lit], range[1])), 6.5, 0, 7); pen.stroke(); }
    if (!lasso) return;
    pen.beginPath();
    lasso.forEach(([x, y]) => pen.lineTo(atX(x), atY(y)));
    pen.closePath();
    pen.fillStyle = pen.strokeStyle = known[ROLES.indexOf(side())];
    pen.globalAlpha = 0.12; pen.fill(); pen.globalAlpha = 1; pen.lineWidth = 2; pen.stroke();
  };
  new ResizeObserver(draw).observe(canvas);
  canvas.explorer = { place: (k) => [atX(clamp(points.x[k], range[0])), atY(clamp(points.y[k], range[1]))], points: () => points };

  // --- the pointer ---------------------------------------------------------------------------------------------------
  const side = () => document.querySelector("input[name=side]:checked").value;
  const where = (event) => { const at = canvas.getBoundingClientRect(); return [event.clientX - at.left, event.clientY - at.top]; };
  const bubble = byId("point");
  const point = (event) => {
    const [x, y] = where(event);
    let least = 14 ** 2, found = -1;
    for (let k = 0; k < points.x.length; k += 1) {
      const far = (atX(clamp(points.x[k], range[0])) - x) ** 2 + (atY(clamp(points.y[k], range[1])) - y) ** 2;
      if (far < least) [least, found] = [far, k];
    }
    if (found !== lit) { lit = found; draw(); }
    bubble.hidden = found < 0;
    if (found < 0) return;
    const lines = [points.ids && points.ids[found] ? points.ids[found] : `row ${points.rows[found]}`, ROLES[points.roles[found]]];
    if (points.marks) { const mark = points.marks[found]; lines.push(`${points.colour}: ${points.names.length ? points.names[mark] : brief(mark)}`); }
    bubble.replaceChildren(...lines.map((line, k) => make(k ? "div" : "b", { textContent: line })));
    const size = bubble.getBoundingClientRect();
    bubble.style.left = `${Math.max(8, event.clientX + 16 + size.width < innerWidth ? event.clientX + 16 : event.clientX - 16 - size.width)}px`;
    bubble.style.top = `${Math.max(8, Math.min(event.clientY + 14, innerHeight - size.height - 8))}px`;
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (!points || event.button || !state.lasso) return;
    canvas.setPointerCapture(event.pointerId);
    const [x, y] = where(event);
    lasso = [[ofX(x), ofY(y)]];
    lasso.last = [x, y];
    bubble.hidden = true;
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!points) return;
    if (!lasso) { point(event); return; }
    const [x, y] = where(event);
    if (Math.hypot(x - lasso.last[0], y - lasso.last[1]) < 5) return;
    lasso.push([ofX(x), ofY(y)]);
    lasso.last = [x, y];
    draw();
  });
  const end = (event) => {
    const polygon = lasso;
    lasso = null;
    draw();
    if (event.type === "pointerup" && polygon && polygon.length > 2) step({ do: "lasso", polygon: [...polygon], role: side(), only: byId("only").checked });
  };
  canvas.addEventListener("pointerup", end);
  canvas.addEventListener("pointercancel", end);
  canvas.addEventListener("pointerleave", () => { bubble.hidden = true; lit = -1; draw(); });
  addEventListener("keydown", (event) => { if (event.key === "Escape" && lasso) { lasso = null; draw(); } });

  // --- code and sessions ---------------------------------------------------------------------------------------------
  for (const button of document.querySelectorAll(".copy")) button.addEventListener("click", () => navigator.clipboard.writeText(byId(button.dataset.of).textContent).then(() => { button.textContent = "Copied"; setTimeout(() => { button.textContent = "Copy"; }, 1500); }));
  byId("save").addEventListener("click", async () => {
    const reply = await ask({ do: "session" });
    if (reply.problem) return;
    const link = make("a", { href: URL.createObjectURL(new Blob([reply.text], { type: "application/json" })), download: "session.json" });
    link.click();
    URL.revokeObjectURL(link.href);
  });
  byId("open").addEventListener("change", async (event) => { const [file] = event.target.files; event.target.value = ""; if (file) step({ do: "open", text: await file.text() }); });
  byId("again").addEventListener("click", () => step({ do: "hello" }));
  addEventListener("pagehide", () => navigator.sendBeacon(`/leave?token=${encodeURIComponent(token)}&page=${name}`));
  addEventListener("pageshow", (event) => { if (event.persisted) step({ do: "hello" }); });

  // --- dark and light ------------------------------------------------------------------------------------------------
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme || (dark.matches ? "dark" : "light")) === "dark";
  const themed = () => { root.dataset.theme = isDark() ? "dark" : "light"; byId("theme").textContent = isDark() ? "Light" : "Dark"; draw(); };
  byId("theme").addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; themed(); });
  themed();
  step({ do: "hello" });
})();
