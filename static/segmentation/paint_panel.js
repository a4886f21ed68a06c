// What stands around the picture while painting: classes, learning, objects, controls.

import { filled, gettext, ngettext } from "../js/words.js";

const SVG = "http://www.w3.org/2000/svg";
const ROWS = 60;
const LEAST_PIXELS = 10; // smaller specks are no objects, here as in predictions
const number = (value, digits = 0) =>
  value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
const perCent = (share) =>
  share > 0 && share < 0.001 ? gettext("under 0.1 %") : `${number(100 * share, share < 0.1 ? 1 : 0)} %`;
const objects = (count) => filled(ngettext("%(count)s object", "%(count)s objects", count), { count: number(count) });
const strokesOf = (count) => filled(ngettext("%(count)s stroke", "%(count)s strokes", count), { count: number(count) });

function draw(parent, name, attributes, text) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  parent.append(element);
}

export class PaintPanel {
  constructor(paint) {
    this.paint = paint;
    this.find = paint.find;
    this.all = paint.all;
    this.objectClass = null;
    this.isLooking = paint.isLooking;
    this.find("[data-add-class]").addEventListener("click", () => paint.openClass(null));
    this.find("[data-class-form]").addEventListener("submit", (event) => {
      event.preventDefault();
      this.saveClass();
    });
    this.find("[data-class-select]").addEventListener("change", (event) => paint.pick(Number(event.target.value)));
    this.find("[data-remove-class]").addEventListener("click", () => this.removeClass());
  }

  showAll() {
    this.showClasses();
    this.showCounts();
    this.showTools();
    this.showView();
  }

  // -- Classes -----------------------------------------------------------------------------------

  showClasses() {
    const { state, header } = this.paint;
    const list = this.find("[data-classes]");
    const template = this.find("[data-class-template]");
    const focused = list.contains(document.activeElement) ? document.activeElement.dataset.of : null;
    list.replaceChildren();
    state.colours = new Map(state.classes.map(({ value, colour }) => [value, colour]));
    state.classes.forEach((one, k) => {
      const row = template.content.firstElementChild.cloneNode(true);
      const part = (name) => row.querySelector(`[data-${name}]`);
      row.classList.toggle("is-selected", one.value === state.value);
      part("name").textContent = one.name;
      part("key").textContent = k < 9 ? String(k + 1) : "";
      part("strokes").textContent = this.isLooking ? this.objectWords(k) : this.strokeWords(one.value);
      part("edit").hidden = this.isLooking;
      part("colour").disabled = this.isLooking;
      part("share").textContent = header?.shares ? perCent(header.shares[header.values.indexOf(one.value)] ?? 0) : "";
      part("colour").value = one.colour;
      part("colour").setAttribute("aria-label", filled(gettext("Colour of %(name)s"), one));
      part("colour").addEventListener("change", (event) => this.recolour(one.value, event.target.value));
      part("pick").setAttribute("aria-pressed", String(one.value === state.value));
      part("pick").addEventListener("click", () => this.paint.pick(one.value));
      part("edit").setAttribute("aria-label", filled(gettext("Rename %(name)s"), one));
      part("edit").addEventListener("click", () => this.paint.openClass(one.value));
      const eye = part("eye");
      eye.setAttribute("aria-pressed", String(!state.hidden.has(one.value)));
      eye.setAttribute("aria-label", filled(gettext("Show %(name)s"), one));
      eye.addEventListener("click", () => this.toggle(one.value));
      for (const name of ["pick", "edit", "eye", "colour"]) part(name).dataset.of = `${name}-${one.value}`;
      list.append(row);
    });
    if (focused) list.querySelector(`[data-of="${focused}"]`)?.focus();
    this.fillSelect();
    this.find("[data-class-count]").textContent = filled(
      ngettext("%(count)s class", "%(count)s classes", state.classes.length),
      { count: number(state.classes.length) },
    );
    this.find("[data-add-class]").disabled = state.classes.length >= 32;
  }

  /** On a phone the list of classes stands far below the picture: a choice stands above it. */
  fillSelect() {
    const { classes, value } = this.paint.state;
    const select = this.find("[data-class-select]");
    select.replaceChildren();
    for (const one of classes) {
      const option = document.createElement("option");
      option.value = String(one.value);
      option.textContent = one.name;
      option.selected = one.value === value;
      select.append(option);
    }
  }

  objectWords(place) {
    const { count } = this.paint.given.shares[place];
    return count === undefined ? "" : objects(count);
  }

  strokeWords(value) {
    const [strokes, pixels] = this.painted(value);
    return strokes === 0 ? gettext("nothing painted yet") : `${strokesOf(strokes)}, ${number(pixels)} px`;
  }

  painted(value) {
    const [strokes, pixels] = this.paint.given.elsewhere[value] ?? [0, 0];
    const own = this.paint.state.strokes.filter((stroke) => stroke.value === value);
    return [strokes + own.length, pixels + own.reduce((sum, stroke) => sum + (stroke.pixels ?? 0), 0)];
  }

  toggle(value) {
    const { hidden } = this.paint.state;
    if (!hidden.delete(value)) hidden.add(value);
    this.paint.paintLayers();
    this.showClasses();
    this.paint.refresh();
  }

  recolour(value, colour) {
    const classes = this.paint.state.classes.map((one) => (one.value === value ? { ...one, colour } : one));
    this.paint.saveClasses(classes).catch((error) => this.setBadge("failed", error.message));
  }

  openClass(value, openDialog) {
    const one = this.paint.state.classes.find((other) => other.value === value);
    this.edited = value;
    this.find("#class-name").value = one?.name ?? "";
    this.find("[data-class-error]").hidden = true;
    this.withStrokes = false;
    this.find("[data-remove-class] span").textContent = gettext("Remove");
    this.find("[data-remove-class]").hidden = !one || this.paint.state.classes.length < 2;
    openDialog(this.find("#class-dialog"));
    this.find("#class-name").select();
  }

  saveClass() {
    const name = this.find("#class-name").value.trim();
    const { classes } = this.paint.state;
    const renamed = classes.map((one) => (one.value === this.edited ? { ...one, name } : one));
    this.closeWhen(this.edited === null ? this.paint.addClass(name) : this.paint.saveClasses(renamed));
  }

  removeClass() {
    const kept = this.paint.state.classes.filter((one) => one.value !== this.edited);
    this.closeWhen(this.paint.saveClasses(kept, this.withStrokes));
  }

  closeWhen(saved) {
    const error = this.find("[data-class-error]");
    saved.then(
      () => this.find("#class-dialog").close(),
      (problem) => {
        this.withStrokes = problem.body?.hasStrokes === true;
        if (this.withStrokes) this.find("[data-remove-class] span").textContent = gettext("Remove class and strokes");
        const warning = gettext("Removing them cannot be undone.");
        error.textContent = this.withStrokes ? `${problem.message} ${warning}` : problem.message;
        error.hidden = false;
      },
    );
  }

  // -- Learning ----------------------------------------------------------------------------------

  showCounts() {
    const { state, header, answer, given } = this.paint;
    const totals = state.classes.map(({ value }) => this.painted(value));
    const strokes = totals.reduce((sum, [count]) => sum + count, 0);
    const here = state.strokes.filter((stroke) => stroke.value > 0).reduce((sum, one) => sum + (one.pixels ?? 0), 0);
    this.find("[data-n-strokes]").textContent = number(strokes);
    this.find("[data-painted]").textContent = perCent(header?.painted ?? Math.min(1, here / (given.width * given.height)));
    this.find("[data-undo]").disabled = !state.canUndo;
    this.find("[data-clear]").disabled = state.strokes.length === 0;
    this.find("[data-redo]").disabled = !state.canRedo;
    const present = totals.filter(([count]) => count > 0).length;
    for (const button of this.all("[data-needs-two]")) button.disabled = present < 2;
    this.find("[data-next]").disabled = !answer || !header?.next;
    const advice = this.find("[data-advice]");
    const advices = [gettext("Paint a little of each class."), gettext("Paint a second class.")];
    advice.textContent = advices[present] ?? "";
    if (this.isLooking) return;
    this.all("[data-strokes]").forEach((place, k) => {
      if (state.classes[k]) place.textContent = this.strokeWords(state.classes[k].value);
    });
    this.drawCurve();
  }

  setBadge(kind, detail) {
    const badge = this.find("[data-badge]");
    const words = {
      learning: gettext("Learning"),
      slow: gettext("Learning, the server is busy"),
      answered:
        typeof detail === "number" ? filled(gettext("Answered in %(seconds)s s"), { seconds: detail.toFixed(1) }) : "",
      waiting: gettext("Waiting for strokes"),
      failed: gettext("No answer"),
      line: filled(gettext("Waiting in line, number %(place)s"), { place: detail }),
    };
    badge.textContent = words[kind];
    badge.className = `badge push${kind === "answered" ? " badge--accent" : kind === "failed" ? " badge--danger" : ""}`;
    this.find("[data-again]").hidden = kind !== "failed";
    if (kind === "failed") this.find("[data-advice]").textContent = `${detail}`;
  }

  drawCurve() {
    const shares = this.paint.state.strokes.filter((one) => one.right !== null && one.value > 0).map((one) => one.right);
    const svg = this.find("[data-curve]");
    this.find("[data-curve-box]").hidden = shares.length < 2;
    svg.replaceChildren();
    if (shares.length < 2) return;
    const [left, right, top, bottom] = [30, 254, 8, 72];
    const x = (k) => left + ((right - left) * k) / (shares.length - 1);
    const y = (share) => bottom - (bottom - top) * share;
    for (const level of [0, 0.5, 1]) {
      draw(svg, "line", { x1: left, x2: right, y1: y(level), y2: y(level), class: "paint-svg__grid" });
      draw(svg, "text", { x: left - 6, y: y(level) + 4, "text-anchor": "end", class: "paint-svg__text" }, 100 * level);
    }
    const points = shares.map((share, k) => `${x(k).toFixed(1)},${y(share).toFixed(1)}`).join(" ");
    draw(svg, "polyline", { points, class: "paint-svg__line" });
    draw(svg, "circle", { cx: x(shares.length - 1), cy: y(shares.at(-1)), r: 3.5, class: "paint-svg__dot" });
    draw(svg, "text", { x: left, y: 88, class: "paint-svg__text" }, gettext("first"));
    draw(svg, "text", { x: right, y: 88, "text-anchor": "end", class: "paint-svg__text" }, strokesOf(shares.length));
    const spoken = gettext("Right before painted, by stroke: %(shares)s");
    svg.setAttribute("aria-label", filled(spoken, { shares: shares.map((one) => perCent(one)).join(", ") }));
  }

  // -- Controls ----------------------------------------------------------------------------------

  showTools() {
    const { state, root, given } = this.paint;
    for (const button of this.all("[data-tool]")) {
      if (button.tagName === "BUTTON") button.setAttribute("aria-pressed", String(button.dataset.tool === state.tool));
    }
    this.find("[data-stage]").dataset.tool = state.tool;
    const isFill = state.tool === "fill";
    const value = isFill ? state.tolerance : state.size;
    const slider = this.find("[data-size]");
    slider.value = String(value);
    slider.style.setProperty("--share", `${(100 * (slider.value - 1)) / (slider.max - 1)}%`);
    this.find("[data-size-label]").textContent = isFill ? gettext("Alike within") : gettext("Size");
    this.find("[data-size-value]").textContent = isFill ? `${value}` : `${number(value)} px`;
    root.dataset.tool = state.tool;
    if (!given.classes) return;
  }

  showView() {
    const { state, viewport, answer, given } = this.paint;
    for (const button of this.all("[data-show]")) button.setAttribute("aria-pressed", String(button.dataset.show === state.show));
    const label = this.find("[data-label]");
    const picked = state.classes.find(({ value }) => value === state.value)?.name ?? "";
    const shown = {
      classes: filled(gettext("Classes, %(opacity)s %. Hatched: unsure"), state),
      doubt: gettext("Doubt: brighter is less sure"),
      probability:
        answer?.planes.length === 1
          ? gettext("Too many classes for a heatmap of each")
          : filled(gettext("Probability of %(picked)s: yellow 1, dark blue 0"), { picked }),
      errors: gettext("Where labels are known: green right, orange wrong"),
      picture: gettext("Picture"),
    }[state.show];
    label.textContent = answer || state.show === "picture" ? shown : gettext("Picture and strokes");
    this.find("[data-zoom-value]").textContent = `${number(100 * viewport.scale)} %`;
    const opacity = this.find("[data-opacity]");
    opacity.value = String(state.opacity);
    opacity.style.setProperty("--share", `${state.opacity}%`);
    this.find("[data-opacity-value]").textContent = `${state.opacity} %`;
    const unsure = this.find("[data-unsure]");
    unsure.value = String(Math.round(100 * state.unsure));
    unsure.style.setProperty("--share", `${(100 * (100 * state.unsure - unsure.min)) / (unsure.max - unsure.min)}%`);
    this.find("[data-unsure-value]").textContent = state.unsure.toFixed(2);
    const sureOnly = this.find("[data-sure-only]");
    if (sureOnly.dataset.url) sureOnly.href = `${sureOnly.dataset.url}?least=${state.unsure.toFixed(2)}`;
    this.find("[data-unsure-share]").textContent = answer ? perCent(answer.unsureShare ?? 0) : "";
    this.showScale(viewport, given.pixelSize);
  }

  /** A bar of a round length, where the size of a pixel, [width, height], is known. */
  showScale(viewport, pixelSize) {
    const scale = this.find("[data-scale]");
    scale.hidden = !pixelSize;
    if (!pixelSize) return;
    const [across] = pixelSize;
    const wanted = (100 / viewport.scale) * across;
    const power = 10 ** Math.floor(Math.log10(wanted));
    const length = [5, 2, 1].map((step) => step * power).find((value) => value <= wanted);
    scale.firstElementChild.style.width = `${(length / across) * viewport.scale}px`;
    scale.lastElementChild.textContent = length >= 1000 ? `${length / 1000} mm` : `${length} µm`;
  }

  fillTip(answer, at, x, y) {
    const { state } = this.paint;
    const { tip } = this.paint.pointers;
    const { values } = answer.header;
    const hasAll = answer.planes.length > 1;
    const named = state.classes
      .map((one) => ({ ...one, label: values.indexOf(one.value) }))
      .filter(({ label }) => label >= 0 && (hasAll || label === answer.labels[at]))
      .map((one) => ({ ...one, share: answer.planes[hasAll ? one.label : 0][at] / 255 }))
      .sort((a, b) => b.share - a.share);
    if (named.length === 0) return;
    const [first, ...rest] = named;
    const lead = document.createElement("b");
    lead.textContent = first.share.toFixed(2);
    const others = document.createElement("span");
    others.textContent = rest.slice(0, 3).map((one) => `${one.name} ${one.share.toFixed(2)}`).join(", ");
    const where = document.createElement("span");
    where.textContent = `x ${Math.floor(x)}, y ${Math.floor(y)}`;
    tip.replaceChildren(lead, ` ${first.name}`, others, where);
  }

  // -- Objects -----------------------------------------------------------------------------------

  countObjects() {
    window.clearTimeout(this.later);
    this.later = window.setTimeout(() => this.askObjects(), 350);
  }

  /** Classes that are objects: all but background. */
  objectClasses() {
    const { given, state } = this.paint;
    const found = state.classes.filter(({ value }) => !given.background.includes(value));
    return found.length > 0 ? found : state.classes;
  }

  async askObjects() {
    const { given } = this.paint;
    const shown = this.objectClasses();
    if (!shown.some(({ value }) => value === this.objectClass)) this.objectClass = shown[0].value;
    const least = Math.max(1, Math.round(LEAST_PIXELS / given.factor ** 2));
    const url = `${given.urls.objects}?class=${this.objectClass}&least=${least}`;
    const response = await fetch(url, { credentials: "same-origin" }).catch(() => null);
    if (!response?.ok) return;
    this.find("[data-object-csv]").href = given.urls.objectsCsv ?? `${url}&format=csv`;
    this.showObjects(await response.json());
  }

  showObjects({ rows, count, total, areas }) {
    const { given } = this.paint;
    const unit = given.pixelSize ? "µm" : "px";
    this.find("[data-objects]").hidden = false;
    const tabs = this.find("[data-object-tabs]");
    tabs.replaceChildren();
    for (const { value, name } of this.objectClasses()) {
      const button = document.createElement("button");
      const isShown = value === this.objectClass;
      button.type = "button";
      button.textContent = isShown ? `${name} ${number(count)}` : name;
      button.setAttribute("aria-pressed", String(isShown));
      button.addEventListener("click", () => {
        this.objectClass = value;
        this.askObjects();
      });
      tabs.append(button);
    }
    const sides = [...new Set((given.pixelSize ?? []).map((side) => Number(side.toPrecision(4))))];
    const facts = given.pixelSize
      ? gettext("%(total)s %(unit)s² in all, pixel %(sides)s µm")
      : gettext("%(total)s %(unit)s² in all");
    this.find("[data-object-facts]").textContent = filled(facts, { total: number(total), unit, sides: sides.join(" × ") });
    this.find("[data-unit=area]").textContent = filled(gettext("Area, %(unit)s²"), { unit });
    this.find("[data-unit=perimeter]").textContent = filled(gettext("Perimeter, %(unit)s"), { unit });
    const digits = given.pixelSize ? 1 : 0;
    const body = this.find("[data-object-rows]");
    body.replaceChildren();
    for (const row of rows.slice(0, ROWS)) {
      const line = document.createElement("tr");
      const cells = [
        number(row.number),
        number(row.area, digits),
        number(row.perimeter, 1),
        `${number(row.column * given.factor)}, ${number(row.row * given.factor)}`,
        number(row.mean),
        row.sureness === null ? "" : row.sureness.toFixed(2),
      ];
      for (const text of cells) {
        const cell = document.createElement("td");
        cell.className = "num";
        cell.textContent = text;
        line.append(cell);
      }
      body.append(line);
    }
    this.drawHistogram(areas, unit);
  }

  drawHistogram(areas, unit) {
    const svg = this.find("[data-histogram]");
    svg.replaceChildren();
    if (areas.length === 0) return;
    const [left, right, top, bottom] = [4, 176, 20, 72];
    const most = areas[0];
    const bins = new Array(14).fill(0);
    for (const area of areas) bins[Math.min(13, Math.floor((14 * area) / most))] += 1;
    const highest = Math.max(...bins);
    const width = (right - left) / 14;
    bins.forEach((count, k) => {
      const height = ((bottom - top) * count) / highest;
      draw(svg, "rect", { x: left + k * width + 0.5, y: bottom - height, width: width - 1, height, class: "paint-svg__bar" });
    });
    draw(svg, "line", { x1: left, x2: right, y1: bottom, y2: bottom, class: "paint-svg__grid" });
    const median = areas[Math.floor(areas.length / 2)];
    const at = left + ((right - left) * median) / most;
    draw(svg, "line", { x1: at, x2: at, y1: top - 4, y2: bottom, class: "paint-svg__median" });
    const anchor = at < 40 ? "start" : at > 140 ? "end" : "middle";
    draw(svg, "text", { x: at, y: 12, "text-anchor": anchor, class: "paint-svg__value" }, number(median));
    draw(svg, "text", { x: left, y: 88, class: "paint-svg__text" }, "0");
    draw(svg, "text", { x: right, y: 88, "text-anchor": "end", class: "paint-svg__text" }, `${number(most)} ${unit}²`);
  }
}
