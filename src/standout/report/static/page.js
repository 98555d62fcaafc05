"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const given = JSON.parse(byId("data").textContent);
  const wantsDark = matchMedia("(prefers-color-scheme: dark)");
  const wantsCalm = matchMedia("(prefers-reduced-motion: reduce)");
  let doc = null;
  const model = (name) => doc.get_model_by_name(name);
  const plots = () => [model("view"), model("pca")].filter((plot) => plot !== null);

  // --- numbers that explain themselves -------------------------------------------------------------------------------
  // The title attribute is for pages without scripts; here its text is shown on hover, on focus and on touch.
  const bubble = byId("bubble");
  let explained = null;
  const explain = (element) => {
    explained = element;
    bubble.textContent = element.dataset.tip;
    bubble.hidden = false;
    element.setAttribute("aria-describedby", "bubble");
    const at = element.getBoundingClientRect();
    const size = bubble.getBoundingClientRect();
    const left = Math.min(Math.max(at.left + at.width / 2 - size.width / 2, 12), innerWidth - size.width - 12);
    const above = at.top - size.height - 8;
    bubble.style.left = `${left}px`;
    bubble.style.top = `${above > 8 ? above : at.bottom + 8}px`;
  };
  const hush = () => {
    if (explained) explained.removeAttribute("aria-describedby");
    explained = null;
    bubble.hidden = true;
  };
  for (const element of document.querySelectorAll("[title]")) {
    element.dataset.tip = element.title;
    element.removeAttribute("title");
  }
  const tipOf = (event) => (event.target instanceof Element ? event.target.closest("[data-tip]") : null);
  document.addEventListener("pointerover", (event) => { const found = tipOf(event); if (found) explain(found); });
  document.addEventListener("pointerout", (event) => { if (tipOf(event) && event.pointerType === "mouse") hush(); });
  document.addEventListener("focusin", (event) => { const found = tipOf(event); if (found) explain(found); });
  document.addEventListener("focusout", hush);
  document.addEventListener("click", (event) => { const found = tipOf(event); if (found) explain(found); else hush(); });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hush(); });
  addEventListener("scroll", hush, { passive: true });

  // --- dark and light ------------------------------------------------------------------------------------------------
  const isDark = () => (document.documentElement.dataset.theme || (wantsDark.matches ? "dark" : "light")) === "dark";
  const paint = () => {
    if (!doc) return;
    const known = getComputedStyle(document.documentElement);
    const colour = (name) => known.getPropertyValue(`--${name}`).trim();
    const palette = given.colours.map(colour);
    for (const plot of plots()) {
      for (const axis of [...plot.below, ...plot.left]) {
        axis.setv({
          axis_label_text_color: colour("soft"), major_label_text_color: colour("soft"),
          axis_line_color: colour("line"), major_tick_line_color: colour("line"),
        });
      }
      for (const part of plot.center) if (part.type === "Grid") part.grid_line_color = colour("grid");
      for (const renderer of plot.renderers) {
        if (renderer.name === "ring") {
          for (const glyph of [renderer.glyph, renderer.nonselection_glyph, renderer.selection_glyph]) {
            if (glyph && glyph.type) glyph.line_color = { value: colour("ink") };
          }
          continue;
        }
        const fill = renderer.glyph.fill_color;
        if (renderer.name === "target") {
          renderer.hover_glyph.line_color = { value: colour("ink") };
          if (fill.transform && palette.length > 0) fill.transform.palette = palette;
        }
        if (fill.transform) continue;
        const value = { value: renderer.name === "target" ? palette[0] : colour("grey") };
        for (const glyph of [renderer.glyph, renderer.nonselection_glyph, renderer.selection_glyph, renderer.hover_glyph]) {
          if (glyph && glyph.type) glyph.fill_color = value;
        }
      }
    }
  };
  const toggle = byId("theme");
  const themed = () => {
    toggle.textContent = isDark() ? "Light" : "Dark";
    toggle.setAttribute("aria-label", `Switch to ${isDark() ? "light" : "dark"} colours`);
    paint();
  };
  toggle.hidden = false;
  toggle.addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    themed();
  });
  wantsDark.addEventListener("change", themed);
  // Plots do not follow the width of the paper: pictures of them do. Paper is white.
  const viewOf = (plot) => (Bokeh.index.get_by_id ? Bokeh.index.get_by_id(plot.id) : Bokeh.index[plot.id]);
  let before = null;
  addEventListener("beforeprint", () => {
    before = document.documentElement.dataset.theme || "";
    document.documentElement.dataset.theme = "light";
    paint();
    if (!doc) return;
    for (const plot of plots()) {
      const place = byId(given.roots[plot.id]);
      const picture = place.querySelector("img") || place.appendChild(new Image());
      picture.alt = "";
      picture.src = viewOf(plot).export("png").canvas.toDataURL();
    }
  });
  addEventListener("afterprint", () => {
    if (before === null) return;
    if (before) document.documentElement.dataset.theme = before;
    else delete document.documentElement.dataset.theme;
    before = null;
    paint();
  });

  // --- the table -----------------------------------------------------------------------------------------------------
  const table = byId("columns");
  if (table) {
    const heads = [...table.tHead.rows[0].cells];
    const body = table.tBodies[0];
    heads.forEach((head, index) => head.querySelector("button").addEventListener("click", () => {
      const byText = head.dataset.sort === "text";
      const before = head.getAttribute("aria-sort");
      const order = before === "none" ? (byText ? "ascending" : "descending") : before === "ascending" ? "descending" : "ascending";
      for (const other of heads) other.setAttribute("aria-sort", other === head ? order : "none");
      const key = byText
        ? (row) => row.cells[index].textContent
        : (row) => Math.abs(Number(row.cells[index].dataset.value));
      const compare = byText
        ? (a, b) => key(a).localeCompare(key(b), undefined, { numeric: true })
        : (a, b) => key(a) - key(b);
      const sign = order === "ascending" ? 1 : -1;
      body.append(...[...body.rows].sort((a, b) => sign * compare(a, b)));
    }));
  }

  // --- copying -------------------------------------------------------------------------------------------------------
  const copy = async (words, button) => {
    const before = button.textContent;
    try {
      await navigator.clipboard.writeText(words);
    } catch {
      // Pages opened from a file may have no clipboard: the old way.
      const area = document.createElement("textarea");
      area.value = words;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = before; }, 1500);
  };
  const copyCode = byId("copy-code");
  copyCode.hidden = false;
  copyCode.addEventListener("click", () => copy(document.querySelector(".code code").textContent, copyCode));

  // --- selection -----------------------------------------------------------------------------------------------------
  const selected = byId("selected");
  const source = () => model("points-0");
  const nameOf = (index) => (source().data.id ? source().data.id[index] : `row ${source().data.row[index]}`);
  const select = (indices) => { source().selected.indices = indices; };
  const tellSelection = () => {
    const indices = [...source().selected.indices];
    const total = source().data.x.length;
    selected.hidden = indices.length === 0;
    const shown = indices.slice(0, 12).map(nameOf).join(", ");
    const more = indices.length > 12 ? ` and ${(indices.length - 12).toLocaleString("en")} more` : "";
    selected.firstElementChild.textContent =
      `${indices.length.toLocaleString("en")} of ${total.toLocaleString("en")} points selected: ${shown}${more}`;
    const groups = new Set(indices.map((index) => (source().data.group || [])[index]));
    for (const button of document.querySelectorAll("[data-group]")) {
      const all = groups.size === 1 && groups.has(button.dataset.group);
      button.setAttribute("aria-pressed", String(indices.length > 0 && all));
    }
  };
  // What distinguishes the selected rows from all others: the difference of their means, in standard deviations.
  const MOST_COLUMNS = 6;
  const cells = given.cells ? Int8Array.from(atob(given.cells.values), (letter) => letter.charCodeAt(0)) : null;
  const tellDistinct = () => {
    const place = byId("distinct");
    const chosen = new Set(source().selected.indices);
    const total = source().data.x.length;
    place.hidden = !cells || chosen.size === 0 || chosen.size === total;
    if (place.hidden) return;
    const width = given.cells.names.length;
    const [inside, outside] = [new Float64Array(width), new Float64Array(width)];
    for (let row = 0; row < total; row += 1) {
      const sums = chosen.has(row) ? inside : outside;
      for (let column = 0; column < width; column += 1) sums[column] += cells[row * width + column];
    }
    const gaps = given.cells.names.map((name, column) =>
      [name, (inside[column] / chosen.size - outside[column] / (total - chosen.size)) / 16]);
    gaps.sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
    place.replaceChildren("Compared with the other rows, on average, in standard deviations: ");
    gaps.slice(0, MOST_COLUMNS).forEach(([name, gap], index) => {
      const bold = document.createElement("b");
      bold.textContent = name;
      place.append(index ? ", " : "", bold, ` ${gap > 0 ? "+" : "\u2212"}${Math.abs(gap).toFixed(1)}`);
    });
  };
  const connectSelection = () => {
    source().selected.properties.indices.change.connect(tellDistinct);
    source().selected.properties.indices.change.connect(tellSelection);
    byId("clear").addEventListener("click", () => select([]));
    byId("copy-names").addEventListener("click", (event) =>
      copy([...source().selected.indices].map(nameOf).join("\n"), event.currentTarget));
    for (const button of document.querySelectorAll("[data-group]")) {
      button.addEventListener("click", () => {
        const pressed = button.getAttribute("aria-pressed") === "true";
        const indices = [];
        if (!pressed) source().data.group.forEach((group, index) => { if (group === button.dataset.group) indices.push(index); });
        select(indices);
      });
    }
    for (const button of document.querySelectorAll("[data-background]")) {
      button.addEventListener("click", () => {
        const visible = button.getAttribute("aria-pressed") !== "true";
        button.setAttribute("aria-pressed", String(visible));
        for (const plot of plots()) {
          for (const renderer of plot.renderers) {
            if (renderer.name === `background-${button.dataset.background}`) renderer.visible = visible;
          }
        }
      });
    }
  };

  // --- the point under the pointer -----------------------------------------------------------------------------------
  const point = byId("point");
  const MOST_POINTS = 3;
  const brief = (value) => (Object.is(value, -0) ? "0" : String(Number(value.toPrecision(3)))).replace("-", "\u2212");
  const line = (words, tag = "div") => {
    const element = document.createElement(tag);
    element.textContent = words;
    return element;
  };
  const linesOf = (number, index, place) => {
    const { data } = model(`points-${number}`);
    const [x, y] = place === "plot-view" ? [data.x, data.y] : [data.px, data.py];
    const lines = [line(`${given.datasets[number]}, row ${data.row[index]}`)];
    if (data.id) lines.unshift(line(data.id[index], "b"));
    if (data.label) lines.push(line(`${given.label}: ${data.label[index]}`));
    given.axes[place].forEach((axis, k) => {
      // A coordinate that only spreads the points means nothing.
      if (!axis.startsWith("(")) lines.push(line(`${axis}: ${brief([x, y][k][index])}`));
    });
    return lines;
  };
  const grey = given.images ? Uint8Array.from(atob(given.images.grey), (letter) => letter.charCodeAt(0)) : null;
  const imageOf = (index) => {
    const { height, width } = given.images;
    const canvas = document.createElement("canvas");
    [canvas.height, canvas.width] = [height, width];
    const pixels = new ImageData(width, height);
    for (let at = 0; at < height * width; at += 1) {
      pixels.data.fill(grey[index * height * width + at], 4 * at, 4 * at + 3);
      pixels.data[4 * at + 3] = 255;
    }
    canvas.getContext("2d").putImageData(pixels, 0, 0);
    return canvas;
  };
  const tellPoint = (place, x, y) => {
    const found = given.datasets.flatMap((_, number) =>
      [...model(`points-${number}`).inspected.indices].map((index) => [number, index]));
    point.hidden = found.length === 0;
    if (point.hidden) return;
    const shown = found.slice(0, MOST_POINTS).map(([number, index]) => {
      const entry = document.createElement("p");
      entry.append(...linesOf(number, index, place));
      if (grey && number === 0 && (index + 1) * given.images.height * given.images.width <= grey.length) entry.append(imageOf(index));
      return entry;
    });
    if (found.length > MOST_POINTS) shown.push(line(`and ${found.length - MOST_POINTS} more here`));
    point.replaceChildren(...shown);
    const size = point.getBoundingClientRect();
    const left = x + 16 + size.width < innerWidth ? x + 16 : x - 16 - size.width;
    point.style.left = `${Math.max(left, 8)}px`;
    point.style.top = `${Math.max(Math.min(y - size.height / 2, innerHeight - size.height - 8), 8)}px`;
  };
  const connectPoints = () => {
    for (const id of Object.values(given.roots)) {
      const place = byId(id);
      // Bokeh looks for the points first.
      place.addEventListener("pointermove", (event) =>
        requestAnimationFrame(() => tellPoint(id, event.clientX, event.clientY)));
      place.addEventListener("pointerleave", () => requestAnimationFrame(() => { point.hidden = true; }));
    }
    addEventListener("scroll", () => { point.hidden = true; }, { passive: true });
  };

  // --- the slider ----------------------------------------------------------------------------------------------------
  const decoded = (words) => {
    const bytes = Uint8Array.from(atob(words), (letter) => letter.charCodeAt(0));
    const view = new DataView(bytes.buffer);
    return Int16Array.from({ length: bytes.length / 2 }, (_, index) => view.getInt16(2 * index, true));
  };
  let resetAxes = () => {};
  let resetSlider = () => {};
  const connectSlider = () => {
    const views = given.views;
    if (!views) return;
    const slider = byId("path");
    const back = byId("path-back");
    const levels = decoded(views.levels);
    const total = views.sizes.reduce((sum, size) => sum + size, 0);
    const sources = views.sizes.map((_, index) => model(`points-${index}`));
    const own = sources.map((each) => [Float32Array.from(each.data.x), Float32Array.from(each.data.y)]);
    const view = model("view");
    const placesAt = (step) => {
      if (step === views.chosen) return own;
      const [lowX, lowY] = views.low[step];
      const [stepX, stepY] = views.step[step];
      let at = 2 * total * step;
      return views.sizes.map((size) => {
        const x = new Float32Array(size);
        const y = new Float32Array(size);
        for (let index = 0; index < size; index += 1, at += 2) {
          x[index] = lowX + (levels[at] + 32768) * stepX;
          y[index] = lowY + (levels[at + 1] + 32768) * stepY;
        }
        return [x, y];
      });
    };
    const show = (places, bounds) => {
      sources.forEach((each, index) => {
        const [x, y] = places[index];
        each.data = { ...each.data, x, y };
      });
      const [left, right, bottom, top] = bounds;
      view.x_range.setv({ start: left, end: right, reset_start: left, reset_end: right });
      view.y_range.setv({ start: bottom, end: top, reset_start: bottom, reset_end: top });
    };
    let running = 0;
    const move = (step) => {
      cancelAnimationFrame(running);
      resetAxes();
      const last = placesAt(step);
      const bounds = views.bounds[step];
      const settle = () => { show(last, bounds); byId("plot-view").dataset.step = String(step); };
      if (wantsCalm.matches || total > 8000) { settle(); return; }
      const first = sources.map((each) => [each.data.x, each.data.y]);
      const from = [view.x_range.start, view.x_range.end, view.y_range.start, view.y_range.end];
      const began = performance.now();
      const frame = (now) => {
        const share = Math.min((now - began) / 260, 1);
        if (share >= 1) { settle(); return; }
        const ease = share * (2 - share);
        const between = (a, b) => a + (b - a) * ease;
        show(
          first.map(([x, y], k) => [x.map((value, i) => between(value, last[k][0][i])), y.map((value, i) => between(value, last[k][1][i]))]),
          from.map((value, i) => between(value, bounds[i])),
        );
        running = requestAnimationFrame(frame);
      };
      running = requestAnimationFrame(frame);
    };
    const tell = () => {
      const step = Number(slider.value);
      byId("path-step").textContent = views.words[step];
      slider.setAttribute("aria-valuetext", views.values[step]);
      back.hidden = step === views.chosen;
      move(step);
    };
    resetSlider = () => {
      cancelAnimationFrame(running);
      slider.value = String(views.chosen);
      byId("path-step").textContent = views.words[views.chosen];
      slider.setAttribute("aria-valuetext", views.values[views.chosen]);
      back.hidden = true;
    };
    slider.addEventListener("input", tell);
    back.addEventListener("click", () => { slider.value = String(views.chosen); tell(); slider.focus(); });
    slider.setAttribute("aria-valuetext", views.values[views.chosen]);
  };

  // --- which components, and whether each row is drawn by a fit without it ------------------------------------------
  const connectAxes = () => {
    const across = byId("axis-x");
    const up = byId("axis-y");
    const fitted = byId("as-fitted");
    if (!across && !fitted) return;
    const sources = given.datasets.map((_, index) => model(`points-${index}`));
    const own = sources.map((each) => [each.data.x, each.data.y]);
    const view = model("view");
    const boundsOf = (columns) => {
      let [low, high] = [Infinity, -Infinity];
      for (const column of columns) for (const value of column) { low = Math.min(low, value); high = Math.max(high, value); }
      const margin = high > low ? 0.06 * (high - low) : 1;
      return [low - margin, high + margin];
    };
    const show = () => {
      const asFitted = fitted && fitted.getAttribute("aria-pressed") === "true";
      const places = across ? [across.value, up.value] : ["1", "2"];
      sources.forEach((each, index) => {
        const column = (axis) => {
          const place = places[axis];
          if (asFitted) return each.data[`f${place}`] || own[index][axis];
          return each.data[`s${place}`] || own[index][axis];
        };
        each.data = { ...each.data, x: column(0), y: column(1) };
      });
      [view.x_range, view.y_range].forEach((range, axis) => {
        const [start, end] = boundsOf(sources.map((each) => each.data[axis === 0 ? "x" : "y"]));
        range.setv({ start, end, reset_start: start, reset_end: end });
      });
      if (across) {
        given.axes["plot-view"] = places.map((place) => `component ${place}`);
        view.below[0].axis_label = given.axes["plot-view"][0];
        view.left[0].axis_label = given.axes["plot-view"][1];
      }
      byId("plot-view").dataset.drawn = asFitted ? "fitted" : "held out";
    };
    if (across) {
      byId("axes").hidden = false;
      for (const select of [across, up]) select.addEventListener("change", () => { resetSlider(); show(); });
    }
    if (fitted) {
      fitted.hidden = false;
      fitted.addEventListener("click", () => {
        const pressed = fitted.getAttribute("aria-pressed") !== "true";
        fitted.setAttribute("aria-pressed", String(pressed));
        fitted.textContent = pressed ? "Draw them held out" : "Draw them as fitted";
        resetSlider();
        show();
      });
    }
    // The slider shows the first two components.
    resetAxes = () => {
      if (across) { across.value = "1"; up.value = "2"; }
      if (fitted) { fitted.setAttribute("aria-pressed", "false"); fitted.textContent = "Draw them as fitted"; }
    };
  };

  // --- the plots -----------------------------------------------------------------------------------------------------
  const start = async () => {
    const roots = given.roots;
    await Bokeh.embed.embed_items({ report: given.document }, [{ docid: "report", roots, root_ids: Object.keys(roots) }]);
    doc = Bokeh.documents[Bokeh.documents.length - 1];
    // A finger that drags across a plot shall scroll the page.
    if (matchMedia("(pointer: coarse)").matches) {
      for (const plot of plots()) plot.toolbar.active_drag = null;
    }
    // The plots are pictures to the keyboard: their parts take no focus. Rows are selected by the buttons of the legend.
    const still = (root) => {
      for (const part of root.querySelectorAll("*")) {
        if (part.tabIndex >= 0) part.tabIndex = -1;
        if (part.shadowRoot) still(part.shadowRoot);
      }
    };
    document.querySelectorAll(".plot").forEach(still);
    connectSelection();
    connectPoints();
    connectSlider();
    connectAxes();
    themed();
    document.body.dataset.ready = "yes";
  };
  themed();
  start();
})();
