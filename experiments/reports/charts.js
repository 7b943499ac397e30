// Draws each chart of the page at the width it has, and says the values under the pointer.
"use strict";
const SVG = "http://www.w3.org/2000/svg";
const HEIGHT = 260, LEFT = 54, RIGHT = 12, TOP = 8, BOTTOM = 40; // pixels

function element(parent, name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  if (text !== undefined) made.textContent = text;
  parent.appendChild(made);
  return made;
}

// Round numbers from low to high, about as many as asked for.
function ticks(low, high, count) {
  const rough = (high - low) / count || 1;
  const power = Math.pow(10, Math.floor(Math.log10(rough)));
  const step = [1, 2, 5, 10].map((x) => x * power).find((x) => x >= rough);
  const found = [];
  for (let i = Math.ceil(low / step); i * step <= high + step * 1e-6; i++) found.push(i * step);
  return found;
}

function short(x) {
  const size = Math.abs(x);
  if (size >= 1e6) return Number((x / 1e6).toPrecision(3)) + " M";
  if (size >= 1e4) return Number((x / 1e3).toPrecision(3)) + " k";
  return String(Number(x.toPrecision(3)));
}

function nearest(values, wanted) {
  let best = 0;
  for (let i = 1; i < values.length; i++)
    if (Math.abs(values[i] - wanted) < Math.abs(values[best] - wanted)) best = i;
  return best;
}

function draw(figure, data) {
  figure.querySelectorAll("svg, .tip").forEach((old) => old.remove());
  const width = Math.max(figure.clientWidth, 200);
  const all = (key) => data.lines.flatMap((line) => line[key]);
  const right = Math.max(...all("x"), 1), top = Math.max(...all("high"), 0), bottom = Math.min(...all("low"), 0);
  const high = top > bottom ? top : bottom + 1;
  const x = (value) => LEFT + (value / right) * (width - LEFT - RIGHT);
  const y = (value) => HEIGHT - BOTTOM - ((value - bottom) / (high - bottom)) * (HEIGHT - TOP - BOTTOM);
  const svg = element(figure, "svg", { height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, role: "img",
    "aria-label": `${data.title}, ${data.vertical}, against ${data.horizontal}` });
  for (const value of ticks(bottom, high, 5)) {
    element(svg, "line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: y(value), y2: y(value) });
    element(svg, "text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, short(value));
  }
  for (const value of ticks(0, right, width < 420 ? 3 : 6))
    element(svg, "text", { x: x(value), y: HEIGHT - BOTTOM + 16, "text-anchor": "middle" }, short(value));
  element(svg, "text", { x: (LEFT + width) / 2, y: HEIGHT - 6, "text-anchor": "middle" }, data.horizontal);
  for (const line of data.lines) {
    const path = (key) => line.x.map((at, i) => `${x(at).toFixed(1)},${y(line[key][i]).toFixed(1)}`);
    if (line.low.some((value, i) => value < line.high[i]))
      element(svg, "polygon", { points: [...path("high"), ...path("low").reverse()].join(" "), fill: line.color,
        opacity: 0.18 });
    element(svg, "polyline", { points: path("y").join(" "), fill: "none", stroke: line.color, "stroke-width": 2 });
  }
  const cursor = element(svg, "line", { class: "cursor", y1: TOP, y2: HEIGHT - BOTTOM, visibility: "hidden" });
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  figure.appendChild(tip);
  const hide = () => { tip.hidden = true; cursor.setAttribute("visibility", "hidden"); };
  svg.addEventListener("pointerleave", hide);
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const at = ((event.clientX - box.left - LEFT) / (width - LEFT - RIGHT)) * right;
    const longest = data.lines.reduce((a, b) => (a.x.length >= b.x.length ? a : b));
    const frames = longest.x[nearest(longest.x, at)];
    cursor.setAttribute("x1", x(frames));
    cursor.setAttribute("x2", x(frames));
    cursor.setAttribute("visibility", "visible");
    tip.replaceChildren(`${Math.round(frames).toLocaleString("en")} ${data.horizontal}`);
    for (const line of data.lines) {
      const i = nearest(line.x, frames);
      const row = document.createElement("div");
      const band = line.low[i] < line.high[i] ? ` [${short(line.low[i])}, ${short(line.high[i])}]` : "";
      row.textContent = `${line.name}: ${short(line.y[i])}${band}`;
      tip.appendChild(row);
    }
    tip.hidden = false;
    const place = x(frames) + 12;
    tip.style.left = `${place + tip.offsetWidth > width ? Math.max(0, place - tip.offsetWidth - 24) : place}px`;
    tip.style.top = `${svg.offsetTop + TOP}px`;
  });
}

for (const script of document.querySelectorAll("script.chart")) {
  const figure = script.parentElement, data = JSON.parse(script.textContent);
  const title = document.createElement("div"), legend = document.createElement("div");
  title.className = "title";
  title.textContent = `${data.title} (${data.vertical})`;
  legend.className = "legend";
  for (const line of data.lines) {
    const entry = document.createElement("span"), mark = document.createElement("i");
    mark.style.background = line.color;
    entry.append(mark, line.name);
    legend.appendChild(entry);
  }
  figure.append(title, legend);
  let before = figure.clientWidth;
  draw(figure, data);
  new ResizeObserver(() => {
    if (figure.clientWidth === before) return;
    before = figure.clientWidth;
    setTimeout(() => draw(figure, data)); // not within the observer, which would see it
  }).observe(figure);
}
