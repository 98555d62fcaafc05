"use strict";
// Charts as SVG, for the report and the explorer: the path of a choice, and outlines of histograms.
const charts = (() => {
  const brief = (value, digits = 2) => {
    const size = Math.abs(value);
    const text = size >= 1e6 || (size > 0 && size < 1e-4) ? value.toExponential(digits - 1) : String(Number(value.toPrecision(digits)));
    return text.replace("-", "\u2212");
  };
  const svg = (tag, properties = {}, text = "") => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(properties)) element.setAttribute(name, value);
    element.textContent = text;
    return element;
  };
  const middle = (x, y, text) => svg("text", { x, y, "text-anchor": "middle" }, text);

  // Horizontal positions: logit scale for shrinkage, log scale for α and ε.
  const across = ({ parameter, values }) => {
    const least = Math.min(...[...values, ...(parameter === "shrinkage" ? values.map((value) => 1 - value) : [])].filter((value) => value > 0));
    const scaled = (value) => {
      if (parameter !== "shrinkage") return Math.log(Math.max(value, 0.3 * least));
      const inside = Math.min(Math.max(value, 0.5 * least), 1 - 0.5 * least);
      return Math.log(inside / (1 - inside));
    };
    const places = values.map(scaled);
    const [low, high] = [Math.min(...places), Math.max(...places)];
    return (value) => 76 + 534 * Math.min(Math.max((scaled(value) - low) / (high - low || 1), 0), 1);
  };

  // The held-out ratio along the path. The line of the chosen value can be moved: chart.mark(value).
  const path = (given) => {
    const place = across(given);
    const known = given.values.map((value, k) => ({ value, x: place(value), log: given.log_ratios[k], error: given.errors[k] || 0, k })).filter((one) => one.log !== null).sort((one, other) => one.x - other.x);
    const [low, high] = [Math.min(...known.map((one) => one.log - one.error)), Math.max(...known.map((one) => one.log + one.error))];
    const margin = 0.06 * (high - low) || 0.1;
    const height = (value) => 350 - (value - low + margin) / (high - low + 2 * margin) * 340;
    const points = (list) => list.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" ");
    const chart = svg("svg", { viewBox: "0 0 640 400", role: "img", "aria-label": "Held-out ratio along the path" });
    for (let k = 1; k < 5; k += 1) {
      const log = low - margin + k * (high - low + 2 * margin) / 5;
      chart.append(svg("line", { class: "grid", x1: 56, x2: 630, y1: height(log), y2: height(log) }), svg("text", { x: 50, y: height(log) + 4, "text-anchor": "end" }, brief(Math.exp(log))));
    }
    const words = [];
    for (const value of [known[0].value, known[known.length - 1].value, given.value]) {
      if (words.every((x) => Math.abs(x - place(value)) > 45)) { words.push(place(value)); chart.append(middle(place(value), 374, brief(value))); }
    }
    chart.append(svg("polygon", { class: "band", points: points([...known.map((one) => [one.x, height(one.log + one.error)]), ...known.map((one) => [one.x, height(one.log - one.error)]).reverse()]) }));
    chart.append(svg("polyline", { class: "line", points: points(known.map((one) => [one.x, height(one.log)])) }));
    const here = svg("line", { class: "here", y1: 10, y2: 350 });
    const at = place(given.value);
    const right = known.findIndex((one) => one.x >= at);
    const [from, to] = [known[Math.max(right - 1, 0)], known[right < 0 ? known.length - 1 : right]];
    const log = from.log + (to.x > from.x ? (at - from.x) / (to.x - from.x) : 0) * (to.log - from.log);
    const best = known.find((one) => one.k === given.best);
    chart.append(here, ...(best ? [svg("circle", { class: "best", cx: best.x, cy: height(best.log), r: 5 })] : []));
    chart.append(svg("circle", { class: "chosen", cx: at, cy: height(log), r: 6.5 }), svg("rect", { class: "frame", x: 56, y: 10, width: 574, height: 340 }));
    chart.append(middle(343, 396, { shrinkage: "shrinkage", alpha: "α", epsilon: "ε" }[given.parameter]));
    chart.mark = (value) => { for (const end of ["x1", "x2"]) here.setAttribute(end, place(value).toFixed(1)); };
    chart.mark(given.value);
    return chart;
  };

  // Histograms of several datasets with the same area: the first is filled, the others are lines.
  const spread = (parts) => {
    const every = Float64Array.from(parts.flatMap((part) => [...part])).sort();
    const at = (share) => every[Math.round(share * (every.length - 1))];
    const [bins, reach] = [40, (at(0.995) - at(0.005)) || 1];
    const [low, width] = [at(0.005) - 0.05 * reach, 1.1 * reach / bins];
    const shares = parts.map((part) => {
      const counts = new Array(bins).fill(0);
      for (const value of part) if (value >= low && value < low + bins * width) counts[Math.floor((value - low) / width)] += 1;
      return counts.map((count) => count / Math.max(part.length, 1));
    });
    const most = Math.max(...shares.flat()) || 1;
    const chart = svg("svg", { viewBox: "0 0 480 170", role: "img", "aria-label": "Distribution of the scores" });
    shares.forEach((heights, k) => chart.append(svg("path", {
      class: k ? "background" : "target",
      "stroke-dasharray": k ? ["none", "6 4", "2 3"][(k - 1) % 3] : "none",
      d: `M0 145${heights.map((height) => `V${(145 - 135 * height / most).toFixed(1)}h${480 / bins}`).join("")}V145`,
    })));
    chart.append(svg("line", { class: "frame", x1: 0, x2: 480, y1: 145, y2: 145 }));
    const step = Number((reach / 4).toPrecision(1));
    for (let k = Math.ceil(low / step); k * step < low + bins * width; k += 1) chart.append(middle((480 * (k * step - low) / (bins * width)).toFixed(1), 163, brief(k * step)));
    return chart;
  };

  return { path, spread, svg };
})();
