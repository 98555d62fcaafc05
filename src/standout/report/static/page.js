"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const given = JSON.parse(byId("data").textContent);
  const { drawn, labels, datasets } = given;
  const parts = drawn.points;
  const root = document.documentElement;
  const colour = (name) => getComputedStyle(root).getPropertyValue(`--${name}`).trim();
  const hidden = new Set();
  const scatters = [];
  let lit = null;

  // --- numbers -------------------------------------------------------------------------------------------------------
  const brief = (value) => (value === 0 ? "0" : String(Number(value.toPrecision(3)))).replace("-", "\u2212");
  const ticks = (low, high, most) => {
    const rough = (high - low) / most;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((times) => times * power).find((size) => size >= rough);
    const found = [];
    for (let k = Math.ceil(low / step); k * step <= high; k += 1) found.push(k * step);
    return found;
  };
  // Axes cover most points. A few far points are drawn hollow at the edge, so that they do not compress the others.
  const limits = (columns) => {
    const every = Float64Array.from(columns.flatMap((column) => [...column]).filter(Number.isFinite)).sort();
    if (!every.length) return [-1, 1];
    const at = (share) => every[Math.round(share * (every.length - 1))];
    const reach = 0.6 * (at(0.98) - at(0.02));
    const low = every.find((value) => value >= at(0.02) - reach);
    const high = every.findLast((value) => value <= at(0.98) + reach);
    const margin = 0.05 * (high - low || Math.abs(high) || 1);
    return [low - margin, high + margin];
  };

  // --- colours of labels ---------------------------------------------------------------------------------------------
  const SCALE = [[0, 34, 78], [53, 69, 108], [102, 105, 112], [148, 142, 119], [200, 184, 102], [254, 232, 56]];
  const values = labels && labels.kind === "numbers" ? parts[0].labels.filter((value) => value !== null) : [];
  const ends = values.length ? [Math.min(...values), Math.max(...values)] : [0, 1];
  const onScale = (value) => {
    if (value === null) return colour("grey");
    const at = (SCALE.length - 1) * Math.min(Math.max((value - ends[0]) / (ends[1] - ends[0] || 1), 0), 1);
    const [from, to] = [SCALE[Math.floor(at)], SCALE[Math.ceil(at)]];
    return `rgb(${from.map((part, k) => Math.round(part + (at % 1) * (to[k] - part))).join()})`;
  };
  const keyOf = (number, row) => (number === 0 && labels && labels.kind === "words" ? `label-${parts[0].labels[row]}` : `part-${number}`);
  const colourOf = (number, row, known) => {
    if (number > 0) return known("grey");
    if (!labels) return known("c0");
    return labels.kind === "numbers" ? onScale(parts[0].labels[row]) : known(`c${parts[0].labels[row] % 12}`);
  };

  // --- scatter plots -------------------------------------------------------------------------------------------------
  class Scatter {
    constructor(canvas, columns, names) {
      [this.canvas, this.names] = [canvas, names];
      this.show(columns);
      canvas.addEventListener("pointermove", (event) => this.point(event));
      canvas.addEventListener("pointerdown", (event) => this.point(event));
      canvas.addEventListener("pointerleave", () => light(null));
      scatters.push(this);
      // For tests and the developer tools of the browser.
      canvas.scatter = this;
    }

    // columns: x and y for each dataset.
    show(columns) {
      this.columns = columns;
      this.ranges = [0, 1].map((axis) => limits(columns.map((part) => part[axis])));
    }

    place(number, row) {
      const [x, y] = this.columns[number];
      const inside = [x[row], y[row]].map((value, axis) => Math.min(Math.max(value, this.ranges[axis][0]), this.ranges[axis][1]));
      const [[left, right], [low, high]] = this.ranges;
      const far = inside[0] !== x[row] || inside[1] !== y[row];
      const { box } = this;
      return [box.left + (inside[0] - left) / (right - left) * box.width, box.top + (high - inside[1]) / (high - low) * box.height, far];
    }

    draw() {
      const { canvas } = this;
      const scale = devicePixelRatio || 1;
      const [width, height] = [canvas.clientWidth, canvas.clientHeight];
      if (!width) return;
      [canvas.width, canvas.height] = [Math.round(width * scale), Math.round(height * scale)];
      const pen = canvas.getContext("2d");
      pen.scale(scale, scale);
      const kept = {};
      const known = (name) => (kept[name] ??= colour(name));
      this.box = { left: 46, top: 10, width: width - 58, height: height - 50 };
      this.axes(pen, known);
      for (let number = parts.length - 1; number >= 0; number -= 1) this.points(pen, number, known);
      if (lit) this.ring(pen, known);
    }

    axes(pen, known) {
      const { box } = this;
      pen.font = "12px system-ui, sans-serif";
      pen.textAlign = "center";
      const [[left, right], [low, high]] = this.ranges;
      for (const value of ticks(left, right, Math.max(box.width / 90, 2))) {
        const x = box.left + (value - left) / (right - left) * box.width;
        pen.fillStyle = known("grid");
        pen.fillRect(x, box.top, 1, box.height);
        pen.fillStyle = known("soft");
        pen.fillText(brief(value), x, box.top + box.height + 15);
      }
      pen.textAlign = "right";
      for (const value of this.names[1] ? ticks(low, high, Math.max(box.height / 70, 2)) : []) {
        const y = box.top + (high - value) / (high - low) * box.height;
        pen.fillStyle = known("grid");
        pen.fillRect(box.left, y, box.width, 1);
        pen.fillStyle = known("soft");
        pen.fillText(brief(value), box.left - 5, y + 4);
      }
      pen.textAlign = "center";
      pen.fillStyle = known("soft");
      pen.font = "13px system-ui, sans-serif";
      pen.fillText(this.names[0], box.left + box.width / 2, box.top + box.height + 34);
      if (!this.names[1]) return;
      pen.save();
      pen.translate(12, box.top + box.height / 2);
      pen.rotate(-Math.PI / 2);
      pen.fillText(this.names[1], 0, 0);
      pen.restore();
    }

    points(pen, number, known) {
      const part = parts[number];
      const size = part.rows.length > 800 ? 2.4 : part.rows.length > 150 ? 3.2 : 4.2;
      for (let row = 0; row < part.rows.length; row += 1) {
        if (hidden.has(keyOf(number, row))) continue;
        const [x, y, far] = this.place(number, row);
        const paint = colourOf(number, row, known);
        pen.globalAlpha = number ? 0.4 : 0.72;
        pen.beginPath();
        pen.arc(x, y, number ? 0.85 * size : size, 0, 7);
        if (far) { pen.strokeStyle = paint; pen.stroke(); } else { pen.fillStyle = paint; pen.fill(); }
        if (part.outlying && part.outlying[row]) {
          pen.globalAlpha = 1;
          pen.strokeStyle = known("ink");
          pen.beginPath();
          pen.arc(x, y, size + 3, 0, 7);
          pen.stroke();
        }
      }
      pen.globalAlpha = 1;
    }

    ring(pen, known) {
      const [x, y] = this.place(...lit);
      pen.strokeStyle = known("ink");
      pen.lineWidth = 2;
      pen.beginPath();
      pen.arc(x, y, 6.5, 0, 7);
      pen.stroke();
    }

    point(event) {
      const at = this.canvas.getBoundingClientRect();
      let [nearest, least] = [null, 14 ** 2];
      parts.forEach((part, number) => part.rows.forEach((_, row) => {
        if (hidden.has(keyOf(number, row))) return;
        const [x, y] = this.place(number, row);
        // If two points are near, the point of the target is chosen.
        const distance = (x - event.clientX + at.left) ** 2 + (y - event.clientY + at.top) ** 2 + 9 * number;
        if (distance < least) [nearest, least] = [[number, row], distance];
      }));
      light(nearest, event, this);
    }
  }

  let waiting = false;
  const redraw = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; scatters.forEach((scatter) => scatter.draw()); images(); });
  };

  // --- the point under the pointer, and explanations -----------------------------------------------------------------
  const bubble = byId("point");
  const tell = (lines, x, y) => {
    bubble.replaceChildren(...lines.map((line, index) => {
      const element = document.createElement(index || lines.length === 1 ? "div" : "b");
      element.textContent = line;
      return element;
    }));
    bubble.hidden = false;
    const size = bubble.getBoundingClientRect();
    const left = x + 16 + size.width < innerWidth ? x + 16 : x - 16 - size.width;
    bubble.style.left = `${Math.max(left, 8)}px`;
    bubble.style.top = `${Math.max(Math.min(y - size.height / 2, innerHeight - size.height - 8), 8)}px`;
  };
  const light = (found, event, scatter) => {
    const changed = String(lit) !== String(found);
    lit = found;
    bubble.hidden = !found;
    if (found) {
      const [number, row] = found;
      const part = parts[number];
      const lines = [part.ids ? part.ids[row] : `row ${part.rows[row]}`, `${datasets[number]}${part.ids ? `, row ${part.rows[row]}` : ""}`];
      if (number === 0 && labels) {
        const label = part.labels[row];
        const shown = labels.kind === "words" ? labels.names[label] : label === null ? "none" : brief(label);
        lines.push(`${labels.name}: ${shown}`);
      }
      scatter.columns[number].forEach((column, axis) => {
        if (scatter.names[axis]) lines.push(`${scatter.names[axis]}: ${brief(column[row])}`);
      });
      tell(lines, event.clientX, event.clientY);
    }
    if (changed) redraw();
  };
  for (const element of document.querySelectorAll(".tip")) {
    const explain = () => {
      const at = element.getBoundingClientRect();
      tell([element.dataset.tip], at.left, at.bottom + 40);
    };
    element.addEventListener("pointerenter", explain);
    element.addEventListener("focus", explain);
    for (const end of ["pointerleave", "blur"]) element.addEventListener(end, () => { bubble.hidden = true; });
  }
  addEventListener("keydown", (event) => { if (event.key === "Escape") bubble.hidden = true; });
  addEventListener("scroll", () => { if (!bubble.hidden) light(null); }, { passive: true });

  // --- drawing -------------------------------------------------------------------------------------------------
  // With one component, points are spread over the height by row number.
  const spread = (part, number) => part.rows.map((_, row) => -number + 0.7 * ((row * 0.618034) % 1));
  const plane = (x, y) => parts.map((part, number) => [part.scores[x], y < drawn.n_components ? part.scores[y] : spread(part, number)]);
  const named = (x, y) => [`component ${x + 1}`, y < drawn.n_components ? `component ${y + 1}` : ""];
  const view = new Scatter(byId("view"), plane(0, 1), named(0, 1));
  if (byId("principal")) {
    new Scatter(byId("again"), plane(0, 1), named(0, 1));
    const flat = parts[0].pca.length < 2;
    new Scatter(byId("principal"), parts.map((part, number) => [part.pca[0], flat ? spread(part, number) : part.pca[1]]), ["PCA 1", flat ? "" : "PCA 2"]);
  }
  if (drawn.n_components > 2) {
    const place = byId("axes");
    const selects = ["Across", "up"].map((words, axis) => {
      const select = document.createElement("select");
      select.setAttribute("aria-label", axis ? "Component of the vertical axis" : "Component of the horizontal axis");
      for (let k = 0; k < drawn.n_components; k += 1) select.add(new Option(`component ${k + 1}`, k, k === axis, k === axis));
      place.append(` ${words} `, select);
      select.addEventListener("change", () => {
        const [x, y] = selects.map((one) => Number(one.value));
        view.show(plane(x, y));
        view.names = named(x, y);
        redraw();
      });
      return select;
    });
    place.hidden = false;
  }

  // --- the legend ----------------------------------------------------------------------------------------------------
  const legend = byId("legend");
  const paints = [];
  const entry = (key, words, name) => {
    const button = document.createElement("button");
    const dot = document.createElement("i");
    button.type = "button";
    button.setAttribute("aria-pressed", "true");
    button.append(dot, words);
    button.addEventListener("click", () => {
      if (!hidden.delete(key)) hidden.add(key);
      button.setAttribute("aria-pressed", String(!hidden.has(key)));
      redraw();
    });
    paints.push([dot, name]);
    legend.append(button);
  };
  if (labels && labels.kind === "words") labels.names.forEach((name, index) => entry(`label-${index}`, name, `c${index % 12}`));
  else if (!labels) entry("part-0", datasets[0], "c0");
  else {
    const scale = document.createElement("span");
    scale.className = "scale";
    scale.append(`${labels.name}: ${brief(ends[0])}`, document.createElement("i"), brief(ends[1]));
    legend.append(scale);
  }
  datasets.slice(1).forEach((name, index) => entry(`part-${index + 1}`, name, "grey"));

  // --- charts ---------------------------------------------------------------------------------------------------------
  const chart = byId("chart") ? charts.path(given.path) : null;
  if (chart) byId("chart").append(chart);
  for (const place of document.querySelectorAll(".spread")) place.append(charts.spread(parts.map((part) => part.scores[place.dataset.component])));

  // --- the slider over the path --------------------------------------------------------------------------------------
  const { views } = drawn;
  if (views) {
    const slider = byId("slider");
    const decoded = (words, scales) => {
      const bytes = Uint8Array.from(atob(words), (letter) => letter.charCodeAt(0));
      const whole = new DataView(bytes.buffer);
      const size = bytes.length / 4;
      const column = (axis) => Float64Array.from({ length: size }, (_, row) => scales[axis] * whole.getInt16(2 * (axis * size + row), true));
      const [x, y] = [column(0), column(1)];
      let start = 0;
      return parts.map((part, number) => {
        const end = start + part.rows.length;
        const cut = [x.slice(start, end), drawn.n_components > 1 ? y.slice(start, end) : spread(part, number)];
        start = end;
        return cut;
      });
    };
    const planes = views.data.map((words, index) => decoded(words, views.scale[index]));
    const along = new Scatter(byId("along"), planes[views.chosen], named(0, 1));
    const word = { shrinkage: "Shrinkage", alpha: "\u03b1 =", epsilon: "\u03b5 =" }[views.parameter];
    const step = () => {
      const index = Number(slider.value);
      along.show(planes[index]);
      const ratio = views.ratios[index] === null ? "" : `: ${brief(views.ratios[index])} times`;
      byId("step").textContent = `${word} ${brief(views.values[index])}${index === views.chosen ? " (the fit)" : ""}${ratio}`;
      byId("back").hidden = index === views.chosen;
      along.canvas.dataset.step = index;
      if (chart) chart.mark(views.values[index]);
      redraw();
    };
    slider.addEventListener("input", step);
    byId("back").addEventListener("click", () => { slider.value = views.chosen; step(); });
    step();
  }

  // --- images --------------------------------------------------------------------------------------------------------
  const images = () => {
    for (const canvas of document.querySelectorAll("canvas.image")) {
      const [height, width] = given.images.shape;
      const { pattern, end, row } = canvas.dataset;
      const cells = pattern === undefined ? given.images[end][row] : given.images.patterns[pattern];
      const most = Math.max(...cells.map(Math.abs)) || 1;
      [canvas.width, canvas.height] = [width, height];
      const pixels = new ImageData(width, height);
      const rgb = (name) => colour(name).match(/\w\w/g).map((digits) => parseInt(digits, 16));
      const [plus, minus] = [rgb("plus"), rgb("minus")];
      const paper = root.dataset.theme === "dark" ? [20, 23, 26] : [255, 255, 255];
      cells.forEach((cell, at) => {
        const ink = pattern === undefined ? null : cell > 0 ? plus : minus;
        const share = Math.abs(cell) / most;
        for (let k = 0; k < 3; k += 1) pixels.data[4 * at + k] = ink ? paper[k] + share * (ink[k] - paper[k]) : cell;
        pixels.data[4 * at + 3] = 255;
      });
      canvas.getContext("2d").putImageData(pixels, 0, 0);
    }
  };

  // --- dark and light ------------------------------------------------------------------------------------------------
  const toggle = byId("theme");
  const theme = (dark) => {
    root.dataset.theme = dark ? "dark" : "light";
    toggle.textContent = dark ? "Light" : "Dark";
    for (const [dot, name] of paints) dot.style.background = colour(name);
    redraw();
  };
  toggle.hidden = false;
  toggle.addEventListener("click", () => theme(root.dataset.theme !== "dark"));
  theme(matchMedia("(prefers-color-scheme: dark)").matches);
  addEventListener("resize", redraw);
  document.body.dataset.ready = "yes";
})();
