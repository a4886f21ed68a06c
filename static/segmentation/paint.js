// Painting on one image: tools, strokes that the server keeps at once, and its answer after each.

import { openDialog } from "../js/dialogs.js";
import { showToast } from "../js/toasts.js";
import { gettext } from "../js/words.js";
import { packed, probabilityColours } from "./colour.js";
import { PaintKeys } from "./paint_keys.js";
import { PaintPanel } from "./paint_panel.js";
import { PaintPointers } from "./paint_pointers.js";
import { Answer, PaintStage } from "./paint_stage.js";
import { PictureTones } from "./picture_tones.js";
import { StrokeQueue } from "./stroke_queue.js";
import { floodRuns } from "./strokes.js";
import { Viewport } from "./viewport.js";

const PALETTE = ["#3b82f6", "#f28c1a", "#b9c2be", "#2fb344", "#d6336c", "#9b5de5", "#12b5b0", "#c9a400"];
const MOST_CLASSES = 32;
const SLOW_SECONDS = 2;
const POLL = 6000; // milliseconds between two looks for strokes of others
const LINE_PAUSE = 4000; // milliseconds between two questions while others paint

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
      canUndo: this.given.canUndo,
      canRedo: this.given.canRedo,
      colours: new Map(),
      current: null,
      cursor: null,
    };
    this.answer = null;
    this.stageBox = this.find("[data-stage]");
    this.panel = new PaintPanel(this);
    this.pointers = new PaintPointers(this);
    this.queue = new StrokeQueue({
      person: root.dataset.person,
      url: this.given.urls.strokes,
      send: (...request) => this.post(...request),
      onKept: () => this.onKept(),
      onRefused: (stroke, sentence) => this.onRefused(stroke, sentence),
      onDelay: (sentence) => {
        const waiting = gettext("Strokes wait in this browser until they are kept.");
        showToast(`${sentence} ${waiting}`, { error: true });
      },
    });
  }

  async start() {
    const { urls, width, height } = this.given;
    const response = await fetch(urls.picture, { credentials: "same-origin" });
    if (!response.ok) throw new Error(gettext("The picture cannot be shown. Load the page again."));
    this.image = await createImageBitmap(await response.blob());
    this.root.style.setProperty("--ratio", String(width / height));
    this.viewport = new Viewport(width, height);
    this.stage = new PaintStage(this.find("[data-canvas]"), this.image, this.viewport);
    const tones = new PictureTones(this.image, () => {
      this.stage.image = tones.picture;
      this.refresh();
    });
    this.stage.image = tones.picture;
    this.listen();
    new ResizeObserver(() => this.resize()).observe(this.stageBox);
    this.resize();
    this.root.dataset.ready = "true";
    this.panel.showAll();
    if (this.isLooking) await this.takeLayers();
    else {
      this.begin();
      window.setInterval(() => this.lookForOthers(), POLL);
    }
  }

  /** Show what others have painted on this picture meanwhile. */
  async lookForOthers() {
    if (document.hidden || this.queue.strokes.length > 0 || this.state.current) return;
    const url = `${this.given.urls.painted}?mark=${this.mark ?? ""}`;
    const found = await fetch(url, { credentials: "same-origin" }).then((response) => response.json()).catch(() => null);
    if (!found?.strokes || this.queue.strokes.length > 0) {
      if (found && !found.strokes) this.mark = found.mark;
      return;
    }
    const known = new Set(this.state.strokes.map(({ id }) => id));
    const isNew = found.strokes.length !== known.size || found.strokes.some(({ id }) => !known.has(id));
    this.mark = found.mark;
    if (!isNew) return;
    this.takeStrokes(found);
    this.learn();
  }

  takeStrokes({ strokes, canUndo, canRedo }) {
    const isNew = this.queue.strokes.length > 0; // painted meanwhile
    Object.assign(this.state, {
      strokes: [...strokes, ...this.queue.strokes],
      canUndo: canUndo || isNew,
      canRedo: canRedo && !isNew,
    });
    this.panel.showCounts();
    this.refresh();
  }

  /** Take up strokes that an earlier page could not have confirmed, and ask for the first answer. */
  begin() {
    const { strokes, isAny } = this.queue.takeLeft(new Set(this.state.strokes.map(({ id }) => id)));
    this.state.strokes.push(...strokes);
    if (strokes.length > 0) Object.assign(this.state, { canUndo: true, canRedo: false });
    this.panel.showCounts();
    this.refresh();
    if (isAny) this.queue.then(() => void this.learn());
    else if (this.state.strokes.length > 0 || Object.keys(this.given.elsewhere).length > 0) this.learn();
    else {
      this.panel.setBadge("waiting");
      this.post(`${this.given.urls.answer}?warm=1`).catch(() => {});
    }
  }

  /** What was predicted: a header as JSON after its length, then the planes of an answer. */
  async takeLayers() {
    const response = await fetch(this.given.urls.layers, { credentials: "same-origin" });
    if (!response.ok) throw new Error(gettext("The prediction cannot be shown. Load the page again."));
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

  /** POST JSON; throws with the server's sentence and status. */
  async post(url, content = {}, { keepalive = false } = {}) {
    let response;
    try {
      response = await fetch(url, {
        method: "POST",
        credentials: "same-origin",
        redirect: "manual", // to the page where one signs in
        keepalive,
        headers: { "X-CSRFToken": this.root.dataset.csrf, "Content-Type": "application/json" },
        body: JSON.stringify(content),
      });
    } catch {
      throw new Error(gettext("The server does not answer. Try again in a moment."));
    }
    if (response.ok) return response;
    if (response.type === "opaqueredirect") throw new Error(gettext("You are signed out. Sign in and load the page again."));
    const body = await response.json().catch(() => ({}));
    const error = new Error(body.sentence ?? gettext("The server could not do this. Load the page again."));
    throw Object.assign(error, { status: response.status, body });
  }

  /** Keep a stroke: shown at once, taken away again if the server refuses it. */
  keep(stroke) {
    this.state.strokes.push(stroke);
    Object.assign(this.state, { canUndo: true, canRedo: false });
    this.find("[data-restore]").hidden = true;
    this.queue.add(stroke);
    this.panel.showCounts();
    this.refresh();
  }

  onKept() {
    this.panel.showCounts();
    this.learn(); // not awaited: the next stroke is kept before this one is answered
  }

  onRefused(stroke, sentence) {
    this.state.strokes = this.state.strokes.filter((other) => other !== stroke);
    const lost = gettext("The stroke was not kept.");
    showToast(`${sentence} ${lost}`, { error: true });
    this.panel.showCounts();
    this.refresh();
    this.learn();
  }

  undo(redo) {
    this.queue.then(async () => {
      try {
        const response = await this.post(`${this.given.urls.undo}${redo ? "?redo=1" : ""}`);
        this.takeStrokes(await response.json());
        this.learn();
      } catch (error) {
        showToast(error.message, { error: true });
      }
    });
  }

  /** Take back all strokes on the picture, or bring those with these keys back. */
  clear(restore = null) {
    this.queue.then(async () => {
      try {
        const answer = await this.post(this.given.urls.clear, restore ? { restore } : {}).then((response) => response.json());
        this.cleared = restore ? null : answer.keys;
        this.find("[data-restore]").hidden = !this.cleared?.length;
        this.takeStrokes(answer);
        this.learn();
      } catch (error) {
        showToast(error.message, { error: true });
      }
    });
  }

  /** Learn from every stroke: a form goes when the server has them all. */
  submitWhenKept(event) {
    if (this.queue.strokes.length === 0) return;
    event.preventDefault();
    event.stopPropagation();
    const { target, submitter } = event;
    this.queue.then(() => target.requestSubmit(submitter));
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
      const { place } = error.body ?? {};
      if (place) this.waitInLine(place, error.message);
      else this.panel.setBadge("failed", error.message);
    } finally {
      clearTimeout(slow);
    }
  }

  /** Others paint; ask again in a moment, which keeps the place in line. */
  waitInLine(place, sentence) {
    this.panel.setBadge("line", place);
    this.find("[data-advice]").textContent = sentence;
    window.clearTimeout(this.inLine);
    this.inLine = window.setTimeout(() => this.learn(), LINE_PAUSE);
  }

  take(header, bytes, seconds) {
    this.header = header;
    this.given.elsewhere = header.elsewhere ?? this.given.elsewhere;
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

  async saveClasses(classes, withStrokes = false) {
    const response = await this.post(this.given.urls.classes, withStrokes ? { classes, withStrokes } : classes);
    if (withStrokes) {
      const values = new Set(classes.map(({ value }) => value));
      this.state.strokes = this.state.strokes.filter(({ value }) => value === 0 || values.has(value));
      this.learn();
    }
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
    this.pointers.showRing();
  }

  newStroke(points, tool = "brush") {
    const value = this.state.tool === "eraser" ? 0 : this.state.value;
    return { tool, value, radius: this.state.size / 2, points, radii: [], right: null };
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
    this.viewport.show(...this.state.cursor, Math.max(this.viewport.scale, 1.2));
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
    this.find("[data-clear]").addEventListener("click", () => this.clear());
    this.find("[data-restore]").addEventListener("click", () => this.clear(this.cleared));
    this.find("[data-next]").addEventListener("click", () => this.goToNext());
    this.find("[data-again]").addEventListener("click", () => this.learn());
    window.addEventListener("pagehide", () => {
      this.pointers.endStroke();
      this.queue.sendLeaving();
    });
    // A page that shows a prediction learns nothing.
    document.getElementById("learn-painted")?.addEventListener("submit", (event) => this.submitWhenKept(event));
    this.pointers.listen();
    new PaintKeys(this).listen();
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
