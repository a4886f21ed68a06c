// Painting on one image: tools, strokes that the server keeps at once, and its answer after each.

import { openDialog } from "../js/dialogs.js";
import { showToast } from "../js/toasts.js";
import { packed, probabilityColours } from "./colour.js";
import { PaintPanel } from "./paint_panel.js";
import { Answer, PaintStage } from "./paint_stage.js";
import { floodRuns } from "./strokes.js";
import { Viewport } from "./viewport.js";

const PALETTE = ["#3b82f6", "#f28c1a", "#b9c2be", "#2fb344", "#d6336c", "#9b5de5", "#12b5b0", "#c9a400"];
const MOST_CLASSES = 32;
const SHIFT_STEP = 10;
const SLOW_SECONDS = 2;
const MOST_KEPT_ALIVE = 30_000; // letters; browsers allow 64 KB in all while a page is left

class Paint {
  constructor(root) {
    this.root = root;
    this.given = JSON.parse(document.getElementById("paint-state").textContent);
    // Where people only look, there are no tools: what is missing is nothing to listen to.
    this.find = (selector) => document.querySelector(selector) ?? document.createElement("div");
    this.isLooking = root.hasAttribute("data-looking");
    this.all = (selector) => [...document.querySelectorAll(selector)];
    this.state = {
      tool: this.isLooking ? "move" : "brush",
      show: "classes",
      opacity: 45,
      unsure: 0.62,
      size: Math.max(3, Math.round(Math.min(this.given.width, this.given.height) / 70)),
      tolerance: 24,
      value: this.given.classes[0].value,
      classes: this.given.classes,
      hidden: new Set(),
      strokes: this.given.strokes,
      canRedo: this.given.canRedo,
      colours: new Map(),
      current: null,
      cursor: null,
    };
    this.pointers = new Map();
    this.answer = null;
    this.stageBox = this.find("[data-stage]");
    this.ring = this.find("[data-brush]");
    this.tip = this.find("[data-tip]");
    this.saving = Promise.resolve();
    this.unsent = [];
    this.panel = new PaintPanel(this);
  }

  async start() {
    const { urls, width, height } = this.given;
    const response = await fetch(urls.picture, { credentials: "same-origin" });
    if (!response.ok) throw new Error("The picture cannot be shown. Load the page again.");
    this.image = await createImageBitmap(await response.blob());
    this.root.style.setProperty("--ratio", String(width / height));
    this.viewport = new Viewport(width, height);
    this.stage = new PaintStage(this.find("[data-canvas]"), this.image, this.viewport);
    this.listen();
    new ResizeObserver(() => this.resize()).observe(this.stageBox);
    this.resize();
    this.root.dataset.ready = "true";
    this.panel.showAll();
    if (this.isLooking) await this.takeLayers();
    else if (this.state.strokes.length > 0 || Object.keys(this.given.elsewhere).length > 0) this.learn();
    else this.post(`${urls.answer}?warm=1`).catch(() => {});
  }

  /** What was predicted: a header as JSON after its length, then the planes of an answer. */
  async takeLayers() {
    const response = await fetch(this.given.urls.layers, { credentials: "same-origin" });
    if (!response.ok) throw new Error("What was predicted cannot be shown. Load the page again.");
    const buffer = await response.arrayBuffer();
    const length = new DataView(buffer).getUint32(0, true);
    const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
    const shares = this.given.shares.map((one) => one.share ?? 0);
    this.take({ ...header, shares, right: {} }, new Uint8Array(buffer, 4 + length), 0);
  }

  resize() {
    this.stage.resize();
    this.stage.pattern = null;
    this.refresh();
  }

  refresh() {
    if (this.frame) return;
    this.frame = window.requestAnimationFrame(() => {
      this.frame = null;
      this.stage.draw(this.state);
      this.panel.showView();
    });
  }

  // -- The server --------------------------------------------------------------------------------

  /** POST JSON; throws with the server's sentence. Small ones arrive even if the page is left. */
  async post(url, content = {}) {
    const body = JSON.stringify(content);
    let response;
    try {
      response = await fetch(url, {
        method: "POST",
        credentials: "same-origin",
        keepalive: content.points !== undefined && body.length < MOST_KEPT_ALIVE,
        headers: { "X-CSRFToken": this.root.dataset.csrf, "Content-Type": "application/json" },
        body,
      });
    } catch {
      throw new Error("The server does not answer. Try again in a moment.");
    }
    if (response.ok) return response;
    const sentence = await response.json().then((body) => body.sentence, () => null);
    throw new Error(sentence ?? "The server could not do this. Load the page again.");
  }

  /** Keep a stroke: shown at once, taken away again if the server refuses it. */
  keep(stroke) {
    this.state.strokes.push(stroke);
    this.state.canRedo = false;
    this.panel.showCounts();
    this.unsent.push(stroke);
    this.saving = this.saving
      .then(async () => {
        if (!this.unsent.includes(stroke)) return; // the page is being left, see sendAll
        this.unsent = this.unsent.filter((other) => other !== stroke);
        const response = await this.post(this.given.urls.strokes, stroke);
        Object.assign(stroke, await response.json());
        this.panel.showCounts();
      })
      .catch((error) => {
        this.state.strokes = this.state.strokes.filter((other) => other !== stroke);
        showToast(`${error.message} The stroke was not kept.`, { error: true });
        this.panel.showCounts();
        this.refresh();
      })
      .then(() => void this.learn()); // the next stroke is kept before this one is answered
    this.refresh();
  }

  /** Send what still waits for strokes before it, when somebody goes to another page. */
  sendAll() {
    for (const stroke of this.unsent.splice(0)) this.post(this.given.urls.strokes, stroke).catch(() => {});
  }

  undo(redo) {
    this.saving = this.saving
      .then(() => this.post(`${this.given.urls.undo}${redo ? "?redo=1" : ""}`))
      .then((response) => response.json())
      .then((kept) => {
        Object.assign(this.state, kept);
        this.panel.showCounts();
        this.refresh();
        this.learn();
      })
      .catch((error) => showToast(error.message, { error: true }));
  }

  /** Ask for an answer; what comes meanwhile is asked for once more when it is there. */
  async learn() {
    if (this.isAsking) {
      this.isBehind = true;
      return;
    }
    this.isAsking = true;
    do {
      this.isBehind = false;
      await this.ask();
    } while (this.isBehind);
    this.isAsking = false;
  }

  async ask() {
    const started = performance.now();
    this.panel.setBadge("learning");
    const slow = setTimeout(() => this.panel.setBadge("slow"), 1000 * SLOW_SECONDS);
    try {
      const response = await this.post(this.given.urls.answer);
      const header = JSON.parse(response.headers.get("X-Answer"));
      const bytes = new Uint8Array(await response.arrayBuffer());
      this.take(header, bytes, (performance.now() - started) / 1000);
    } catch (error) {
      this.panel.setBadge("failed", error.message);
    } finally {
      clearTimeout(slow);
    }
  }

  take(header, bytes, seconds) {
    this.header = header;
    for (const stroke of this.state.strokes) {
      if (stroke.id in header.right) stroke.right = header.right[stroke.id];
    }
    if (bytes.length === 0) {
      this.answer = null;
      Object.assign(this.stage.layers, { classes: null, unsure: null, doubt: null });
      this.panel.setBadge("waiting");
    } else {
      this.answer = new Answer(header, bytes);
      this.paintLayers();
      this.panel.setBadge("answered", seconds);
      this.panel.countObjects();
    }
    this.root.dataset.answers = String(Number(this.root.dataset.answers ?? 0) + 1);
    this.root.dataset.seconds = seconds.toFixed(3);
    this.panel.showAll();
    this.refresh();
  }

  /** Colours of the answer, its doubt and its hatching; again when a colour or threshold changes. */
  paintLayers() {
    if (!this.answer) return;
    const colours = [];
    for (const { value, colour } of this.state.classes) {
      const [red, green, blue] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
      const label = this.header.values.indexOf(value);
      if (label >= 0) colours[label] = this.state.hidden.has(value) ? 0 : packed(red, green, blue);
    }
    this.stage.layers.classes = this.answer.classCanvas(colours);
    this.stage.layers.doubt ??= null;
    this.stage.layers.doubt = this.answer.doubtCanvas();
    this.stage.layers.errors = this.answer.errorCanvas();
    this.paintProbability();
    this.paintUnsure();
  }

  /** The heatmap of the class that is picked. */
  paintProbability() {
    const label = this.header.values.indexOf(this.state.value);
    this.heat ??= probabilityColours();
    this.stage.layers.probability = this.isLooking ? this.answer.probabilityCanvas(label, this.heat) : null;
  }

  paintUnsure() {
    if (this.answer) this.stage.layers.unsure = this.answer.unsureCanvas(this.state.unsure);
  }

  // -- Classes -----------------------------------------------------------------------------------

  async saveClasses(classes) {
    const response = await this.post(this.given.urls.classes, classes);
    this.state.classes = (await response.json()).classes;
    if (!this.state.classes.some(({ value }) => value === this.state.value)) {
      this.state.value = this.state.classes[0].value;
    }
    this.paintLayers();
    this.panel.showAll();
    this.refresh();
  }

  addClass(name) {
    const taken = new Set(this.state.classes.map(({ value }) => value));
    let value = 1;
    while (taken.has(value)) value += 1;
    const used = new Set(this.state.classes.map(({ colour }) => colour));
    const colour = PALETTE.find((one) => !used.has(one)) ?? PALETTE[value % PALETTE.length];
    return this.saveClasses([...this.state.classes, { value, name, colour }]).then(() => this.pick(value));
  }

  pick(value) {
    this.state.value = value;
    if (this.isLooking) {
      if (this.answer) this.paintProbability();
      this.refresh();
    } else if (["eraser", "move"].includes(this.state.tool)) this.setTool("brush");
    this.panel.showClasses();
  }

  // -- Tools -------------------------------------------------------------------------------------

  setTool(tool) {
    this.endPolygon(false);
    this.state.tool = tool;
    this.panel.showTools();
    this.refresh();
  }

  setSize(size) {
    if (this.state.tool === "fill") this.state.tolerance = Math.min(100, Math.max(1, Math.round(size)));
    else this.state.size = Math.min(200, Math.max(1, Math.round(size)));
    this.panel.showTools();
    this.showRing();
  }

  newStroke(points, tool = "brush") {
    const value = this.state.tool === "eraser" ? 0 : this.state.value;
    return { id: "", tool, value, radius: this.state.size / 2, points, radii: [], right: null };
  }

  fill([x, y]) {
    const most = Math.sqrt(1_100_000 / (this.image.width * this.image.height));
    const scale = Math.min(1, most);
    const canvas = document.createElement("canvas");
    canvas.width = Math.max(1, Math.round(this.image.width * scale));
    canvas.height = Math.max(1, Math.round(this.image.height * scale));
    const context = canvas.getContext("2d");
    context.drawImage(this.image, 0, 0, canvas.width, canvas.height);
    const pixels = context.getImageData(0, 0, canvas.width, canvas.height);
    const factor = this.given.width / canvas.width;
    const points = floodRuns(pixels, x, y, this.state.tolerance, factor).map((n) => Math.round(n));
    if (points.length > 0) this.keep({ ...this.newStroke(points, "fill"), step: factor });
  }

  endPolygon(keep = true) {
    const { current } = this.state;
    if (current?.tool !== "polygon") return;
    this.state.current = null;
    current.points = current.points.slice(0, -2);
    if (keep && current.points.length >= 6) this.keep(current);
    this.refresh();
  }

  goToNext() {
    const place = this.header?.next;
    if (!place || !this.answer) return;
    const { factor } = this.answer;
    this.state.cursor = [(place[0] + 0.5) * factor, (place[1] + 0.5) * factor];
    this.viewport.zoom = Math.max(this.viewport.scale, 1.2);
    this.viewport.centre = [...this.state.cursor];
    this.viewport.keepInside();
    this.stageBox.focus();
    this.refresh();
  }

  // -- Listening ---------------------------------------------------------------------------------

  listen() {
    for (const button of this.all("[data-tool]")) {
      button.addEventListener("click", () => this.setTool(button.dataset.tool));
    }
    for (const button of this.all("[data-show]")) {
      button.addEventListener("click", () => this.setShow(button.dataset.show));
    }
    for (const button of this.all("[data-zoom]")) {
      button.addEventListener("click", () => this.zoom(button.dataset.zoom));
    }
    for (const button of this.all("[data-nudge]")) {
      button.addEventListener("click", () => this.setOpacity(this.state.opacity + 5 * Number(button.dataset.nudge)));
    }
    this.find("[data-size]").addEventListener("input", (event) => this.setSize(Number(event.target.value)));
    this.find("[data-opacity]").addEventListener("input", (event) => this.setOpacity(Number(event.target.value)));
    this.find("[data-unsure]").addEventListener("input", (event) => this.setUnsure(Number(event.target.value) / 100));
    this.find("[data-undo]").addEventListener("click", () => this.undo(false));
    this.find("[data-redo]").addEventListener("click", () => this.undo(true));
    this.find("[data-next]").addEventListener("click", () => this.goToNext());
    this.find("[data-again]").addEventListener("click", () => this.learn());
    window.addEventListener("pagehide", () => this.sendAll());
    this.listenToStage();
    document.addEventListener("keydown", (event) => this.onKey(event, true), true);
    document.addEventListener("keyup", (event) => this.onKey(event, false), true);
  }

  setShow(show) {
    this.state.show = show;
    this.panel.showView();
    this.refresh();
  }

  setOpacity(value) {
    this.state.opacity = Math.min(100, Math.max(0, Math.round(value)));
    this.refresh();
  }

  setUnsure(value) {
    this.state.unsure = value;
    window.clearTimeout(this.later);
    this.later = window.setTimeout(() => {
      this.paintUnsure();
      this.refresh();
    }, 60);
    this.panel.showView();
  }

  zoom(action) {
    if (action === "fit") this.viewport.fit();
    else this.viewport.zoomStep(action === "in" ? 1 : -1);
    this.refresh();
  }

  listenToStage() {
    const box = this.stageBox;
    box.addEventListener("contextmenu", (event) => event.preventDefault());
    box.addEventListener("pointerdown", (event) => this.onDown(event));
    box.addEventListener("pointermove", (event) => this.onMove(event));
    for (const name of ["pointerup", "pointercancel"]) box.addEventListener(name, (event) => this.onUp(event));
    box.addEventListener("dblclick", () => this.endPolygon());
    box.addEventListener("pointerleave", () => {
      this.ring.hidden = true;
      this.tip.hidden = true;
    });
    box.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        const [x, y] = this.position(event);
        this.viewport.zoomAt(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0016)), x, y);
        this.refresh();
      },
      { passive: false },
    );
  }

  position(event) {
    const box = this.find("[data-canvas]").getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  place(event) {
    return this.viewport.toLayer(...this.position(event)).map((value) => Math.round(10 * value) / 10);
  }

  get isMoving() {
    return this.state.tool === "move" || this.isSpace;
  }

  onDown(event) {
    if (event.target.closest("[data-overlay]")) return;
    this.pointers.set(event.pointerId, [event.clientX, event.clientY]);
    this.stageBox.setPointerCapture(event.pointerId);
    if (this.pointers.size === 2) {
      this.state.current = null; // a second finger moves and zooms; the stroke that began is dropped
      this.dragging = "picture";
      return;
    }
    this.state.cursor = null;
    const place = this.place(event);
    if (event.button !== 0 || this.isMoving) this.dragging = "picture";
    else if (this.state.tool === "fill") this.fill(place);
    else if (this.state.tool === "polygon") this.addCorner(place);
    else {
      this.dragging = "stroke";
      this.state.current = this.newStroke([...place]);
      this.press(event);
    }
    this.refresh();
  }

  /** Add the width of a pen that presses. */
  press(event) {
    const { current } = this.state;
    if (event.pointerType === "pen" && event.pressure > 0 && current.tool === "brush" && this.state.tool !== "line") {
      current.radii.push(Math.round(10 * current.radius * Math.max(0.15, 1.6 * event.pressure)) / 10);
    }
  }

  addCorner(place) {
    const { current } = this.state;
    if (current?.tool !== "polygon") {
      this.state.current = this.newStroke([...place, ...place], "polygon");
      return;
    }
    const [x, y] = current.points;
    const near = Math.hypot(place[0] - x, place[1] - y) * this.viewport.scale < 10;
    if (near && current.points.length >= 8) this.endPolygon();
    else current.points.splice(-2, 2, ...place, ...place);
  }

  onMove(event) {
    if (event.target.closest("[data-overlay]")) {
      this.ring.hidden = true;
      this.tip.hidden = true;
      return;
    }
    const before = this.pointers.get(event.pointerId);
    const place = this.place(event);
    this.lastPosition = this.position(event);
    this.showRing();
    this.showTip(place);
    const { current } = this.state;
    if (current?.tool === "polygon") current.points.splice(-2, 2, ...place);
    if (!before) {
      if (current) this.refresh();
      return;
    }
    const now = [event.clientX, event.clientY];
    if (this.pointers.size === 2) this.pinch(event.pointerId, before, now);
    else if (this.dragging === "picture") this.viewport.pan(now[0] - before[0], now[1] - before[1]);
    else if (this.dragging === "stroke" && current) this.carryOn(event, place);
    this.pointers.set(event.pointerId, now);
    this.refresh();
  }

  carryOn(event, place) {
    const { current } = this.state;
    if (this.state.tool === "line") {
      current.tool = "line";
      current.points.splice(2, 2, ...place);
      return;
    }
    const [x, y] = current.points.slice(-2);
    if (Math.hypot(place[0] - x, place[1] - y) * this.viewport.scale < 1.5) return;
    current.points.push(...place);
    this.press(event);
  }

  pinch(id, before, now) {
    const [other] = [...this.pointers].filter(([key]) => key !== id).map(([, place]) => place);
    const box = this.find("[data-canvas]").getBoundingClientRect();
    const apart = (place) => Math.max(1, Math.hypot(place[0] - other[0], place[1] - other[1]));
    const [x, y] = [(now[0] + other[0]) / 2 - box.left, (now[1] + other[1]) / 2 - box.top];
    this.viewport.zoomAt(apart(now) / apart(before), x, y);
    this.viewport.pan((now[0] - before[0]) / 2, (now[1] - before[1]) / 2);
  }

  onUp(event) {
    this.pointers.delete(event.pointerId);
    const { current } = this.state;
    if (this.dragging === "stroke" && current) {
      this.state.current = null;
      if (event.type === "pointerup") {
        if (current.radii.length !== current.points.length / 2) current.radii = [];
        this.keep(current);
      }
    }
    if (this.pointers.size === 0) this.dragging = null;
    this.refresh();
  }

  showRing() {
    const isBrush = ["brush", "line", "eraser"].includes(this.state.tool) && !this.isMoving;
    this.ring.hidden = !isBrush || !this.lastPosition;
    if (this.ring.hidden) return;
    const width = Math.max(4, this.state.size * this.viewport.scale);
    const [x, y] = this.lastPosition;
    this.ring.style.width = `${width}px`;
    this.ring.style.height = `${width}px`;
    this.ring.style.transform = `translate(${x - width / 2}px, ${y - width / 2}px)`;
  }

  showTip([x, y]) {
    const { answer } = this;
    const [column, row] = answer ? [x, y].map((value) => Math.floor(value / answer.factor)) : [-1, -1];
    const inside = answer && column >= 0 && row >= 0 && column < answer.width && row < answer.height;
    this.tip.hidden = !inside || this.dragging === "stroke";
    if (this.tip.hidden) return;
    this.panel.fillTip(answer, row * answer.width + column, x, y);
    const [left, top] = this.lastPosition;
    const flip = left > this.stage.size[0] - 230 ? -this.tip.offsetWidth - 18 : 18;
    const drop = top > this.stage.size[1] - 80 ? -this.tip.offsetHeight - 12 : 14;
    this.tip.style.transform = `translate(${left + flip}px, ${top + drop}px)`;
  }

  // -- Keys --------------------------------------------------------------------------------------

  onKey(event, isDown) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target.matches?.("input:not([type=range]), textarea, select");
    if (typing || document.querySelector("dialog[open]")) return;
    if (event.key === " " && !event.target.closest("button, a, summary")) {
      this.isSpace = isDown;
      this.showRing();
    } else if (event.key.toLowerCase() === "d" && !event.repeat) {
      if (isDown) this.before = this.state.show;
      this.setShow(isDown ? "doubt" : (this.before ?? "classes"));
    } else if (!isDown) return;
    else if (/^[1-9]$/.test(event.key)) {
      const chosen = this.state.classes[Number(event.key) - 1];
      if (!chosen) return;
      this.pick(chosen.value);
    } else if (event.key === "+" || event.key === "-") {
      const by = Math.max(1, Math.round(0.15 * this.state.size));
      this.setSize(this.state.size + (event.key === "+" ? by : -by));
    } else if (event.target === this.stageBox && this.onStageKey(event)) {
      // taken
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  onStageKey(event) {
    const by = event.shiftKey ? SHIFT_STEP : 1;
    const step = { ArrowLeft: [-by, 0], ArrowRight: [by, 0], ArrowUp: [0, -by], ArrowDown: [0, by] }[event.key];
    const { cursor } = this.state;
    if (step) {
      const [x, y] = cursor ?? this.viewport.centre;
      const { width, height } = this.given;
      this.state.cursor = [
        Math.min(width - 0.5, Math.max(0.5, x + step[0])),
        Math.min(height - 0.5, Math.max(0.5, y + step[1])),
      ];
      this.viewport.reveal(...this.state.cursor);
    } else if (event.key === "Enter" && this.state.current?.tool === "polygon") this.endPolygon();
    else if (event.key === "Enter" && cursor && !this.isLooking) {
      if (this.state.tool === "fill") this.fill(cursor);
      else this.keep(this.newStroke([...cursor]));
    } else if (event.key === "Escape") {
      this.endPolygon(false);
      this.state.cursor = null;
    } else return false;
    this.refresh();
    return true;
  }

  openClass(value) {
    this.panel.openClass(value, openDialog, MOST_CLASSES);
  }
}

const root = document.querySelector("[data-paint]");
if (root) {
  new Paint(root).start().catch((error) => {
    document.querySelector("[data-loading]").textContent = error.message;
  });
}
