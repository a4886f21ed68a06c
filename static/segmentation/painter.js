// Corrections: a brush that adds to or takes from the mask, with undo, by pointer or keyboard.

import { showToast } from "../js/toasts.js";
import { gettext } from "../js/words.js";
import { packed } from "./colour.js";

const TINT = packed(0x2f, 0xd0, 0xa8, 115);
const KEPT_STEPS = 60;
const WIDEST = 120; // radius in layer pixels

/** The mask being corrected. Works in layer pixels; the viewer tells where strokes go. */
export class Painter {
  constructor(viewer) {
    this.viewer = viewer;
    const { width, height, mask } = viewer.layers;
    Object.assign(this, { width, height });
    this.mask = mask.slice();
    this.saved = mask.slice();
    this.tool = "paint";
    this.radius = Math.max(2, Math.round(Math.min(width, height) / 40));
    this.done = [];
    this.undone = [];
    this.open = false;
    this.box = viewer.find("[data-painter]");
    this.canvas = document.createElement("canvas");
    this.canvas.width = width;
    this.canvas.height = height;
    this.context = this.canvas.getContext("2d");
    this.ring = viewer.find("[data-brush]");
    this.listen();
    if (new URLSearchParams(window.location.search).has("correct")) this.setOpen(true);
  }

  get find() {
    return (selector) => this.box.querySelector(selector);
  }

  get isChanged() {
    return this.done.length > 0;
  }

  /** Whether anything would be lost with the page, also after the brush was put away. */
  get isUnsaved() {
    return this.mask.some((value, at) => value !== this.saved[at]);
  }

  listen() {
    for (const button of document.querySelectorAll("[data-correct]")) {
      button.addEventListener("click", (event) => {
        event.preventDefault();
        this.setOpen(!this.open);
      });
    }
    for (const button of this.box.querySelectorAll("[data-tool]")) {
      button.addEventListener("click", () => this.setTool(button.dataset.tool));
    }
    this.find("[data-size]").addEventListener("input", (event) => {
      this.setRadius(Number(event.target.value));
    });
    this.find("[data-undo]").addEventListener("click", () => this.undo());
    this.find("[data-redo]").addEventListener("click", () => this.redo());
    this.find("[data-leave]").addEventListener("click", () => this.leave());
    for (const button of this.box.querySelectorAll("[data-start]")) {
      button.addEventListener("click", () => this.startFrom(button.dataset.start));
    }
    this.find("[data-save]").addEventListener("click", () => this.save());
    window.addEventListener("beforeunload", (event) => {
      if (this.isUnsaved) event.preventDefault();
    });
  }

  setOpen(open) {
    this.open = open;
    this.box.hidden = !open;
    this.viewer.root.classList.toggle("is-correcting", open);
    for (const button of document.querySelectorAll("[data-correct]")) {
      button.setAttribute("aria-pressed", String(open));
    }
    this.viewer.stage.overlay = open ? this.canvas : null;
    this.viewer.stage.setMask(open ? this.mask : this.saved);
    if (open) {
      this.viewer.state.mode = "overlay";
      this.shownBefore = { ...this.viewer.state.shown };
      Object.assign(this.viewer.state.shown, { probability: false, entropy: false, errors: false });
      this.tint(0, 0, this.width, this.height);
      this.find("[data-tool=paint]").focus();
    } else {
      Object.assign(this.viewer.state.shown, this.shownBefore);
      this.ring.hidden = true;
    }
    const values = new URLSearchParams(window.location.search);
    if (open) values.set("correct", "1");
    else values.delete("correct");
    window.history.replaceState(null, "", `?${values}`);
    this.showControls();
    this.viewer.refresh();
  }

  /** Put the predicted mask back as one more step, so that the correction is not lost by a slip. */
  leave() {
    const isChanged = this.isChanged;
    if (isChanged) {
      const box = [0, 0, this.width, this.height];
      this.done.push({ box, before: this.mask.slice(), after: this.saved.slice() });
      this.undone = [];
      this.mask.set(this.saved);
    }
    this.setOpen(false);
    if (isChanged) {
      showToast(gettext("Corrections discarded. To have them back, correct the mask again and press Undo."));
    }
  }

  /** Begin again from the known mask, what was predicted, or the threshold shown; can be undone. */
  startFrom(kind) {
    const { layers } = this.viewer;
    const wanted = { known: (at) => (layers.truthBits[at] & 2) >> 1, predicted: (at) => this.saved[at] }[kind];
    const after = kind === "threshold" ? layers.above(this.viewer.threshold) : this.mask.map((_, at) => wanted(at));
    this.done.push({ box: [0, 0, this.width, this.height], before: this.mask.slice(), after });
    this.undone = [];
    this.put(after, [0, 0, this.width, this.height]);
  }

  setTool(tool) {
    this.tool = tool;
    this.showControls();
  }

  setRadius(radius) {
    this.radius = Math.min(WIDEST, Math.max(1, Math.round(radius)));
    this.showControls();
  }

  showControls() {
    for (const button of this.box.querySelectorAll("[data-tool]")) {
      button.setAttribute("aria-pressed", String(button.dataset.tool === this.tool));
    }
    const slider = this.find("[data-size]");
    slider.value = String(this.radius);
    slider.style.setProperty("--share", `${(100 * (this.radius - 1)) / (slider.max - 1)}%`);
    const pixels = (2 * this.radius - 1) * this.viewer.layers.factor;
    this.find("[data-size-value]").textContent = `${pixels} px`;
    this.find("[data-undo]").disabled = this.done.length === 0;
    this.find("[data-redo]").disabled = this.undone.length === 0;
    this.find("[data-save]").disabled = !this.isChanged;
  }

  // -- Painting ----------------------------------------------------------------------------------

  /** Whether a press begins a stroke; with another button or a second finger it moves the picture. */
  begins(event) {
    if (!this.open || event.button !== 0 || this.viewer.pointers.size > 0) return false;
    this.last = null;
    this.before = this.mask.slice();
    this.touched = [this.width, this.height, 0, 0];
    return true;
  }

  /** Carry the stroke on to a layer position. */
  stroke([x, y]) {
    const from = this.last || [x, y];
    const steps = Math.max(1, Math.ceil(Math.hypot(x - from[0], y - from[1]) / (this.radius / 2)));
    for (let k = 1; k <= steps; k += 1) {
      this.stamp(from[0] + ((x - from[0]) * k) / steps, from[1] + ((y - from[1]) * k) / steps);
    }
    this.last = [x, y];
    this.hoverAt([x, y]);
  }

  stamp(x, y) {
    const value = this.tool === "paint" ? 1 : 0;
    const reach = this.radius - 0.5;
    const [left, right] = [x - reach, x + reach].map(Math.floor);
    const [top, bottom] = [y - reach, y + reach].map(Math.floor);
    const box = [
      Math.max(0, left),
      Math.max(0, top),
      Math.min(this.width - 1, right),
      Math.min(this.height - 1, bottom),
    ];
    if (box[2] < box[0] || box[3] < box[1]) return;
    for (let row = box[1]; row <= box[3]; row += 1) {
      for (let column = box[0]; column <= box[2]; column += 1) {
        const far = Math.hypot(column + 0.5 - x, row + 0.5 - y) > Math.max(reach, 0.75);
        if (!far) this.mask[row * this.width + column] = value;
      }
    }
    this.touched = [
      Math.min(this.touched[0], box[0]),
      Math.min(this.touched[1], box[1]),
      Math.max(this.touched[2], box[2] + 1),
      Math.max(this.touched[3], box[3] + 1),
    ];
    this.tint(box[0], box[1], box[2] + 1 - box[0], box[3] + 1 - box[1]);
  }

  /** End a stroke: what it covered can be undone. */
  ends() {
    const [left, top, right, bottom] = this.touched;
    if (right <= left || bottom <= top) return;
    const box = [left, top, right - left, bottom - top];
    this.done.push({ box, before: this.cut(this.before, box), after: this.cut(this.mask, box) });
    if (this.done.length > KEPT_STEPS) this.done.shift();
    this.undone = [];
    this.settle();
  }

  cut(mask, [left, top, width, height]) {
    const piece = new Uint8Array(width * height);
    for (let row = 0; row < height; row += 1) {
      const start = (top + row) * this.width + left;
      piece.set(mask.subarray(start, start + width), row * width);
    }
    return piece;
  }

  put(piece, [left, top, width, height]) {
    for (let row = 0; row < height; row += 1) {
      const part = piece.subarray(row * width, (row + 1) * width);
      this.mask.set(part, (top + row) * this.width + left);
    }
    this.tint(left, top, width, height);
    this.settle();
  }

  undo() {
    const step = this.open && this.done.pop();
    if (!step) return;
    this.undone.push(step);
    this.put(step.before, step.box);
  }

  redo() {
    const step = this.open && this.undone.pop();
    if (!step) return;
    this.done.push(step);
    this.put(step.after, step.box);
  }

  settle() {
    this.viewer.stage.setMask(this.mask);
    this.showControls();
    this.viewer.refresh();
  }

  /** Tint the mask within a box of the overlay. */
  tint(left, top, width, height) {
    const pixels = this.context.createImageData(width, height);
    const words = new Uint32Array(pixels.data.buffer);
    for (let row = 0, at = 0; row < height; row += 1) {
      const start = (top + row) * this.width + left;
      for (let column = 0; column < width; column += 1, at += 1) {
        if (this.mask[start + column]) words[at] = TINT;
      }
    }
    this.context.putImageData(pixels, left, top);
  }

  /** Show the brush's ring at a layer position. */
  hoverAt([x, y]) {
    this.ring.hidden = !this.open;
    if (!this.open) return;
    const [left, top] = this.viewer.viewport.toPane(x, y);
    const size = (2 * this.radius - 1) * this.viewer.viewport.scale;
    this.ring.style.width = `${size}px`;
    this.ring.style.height = `${size}px`;
    this.ring.style.transform = `translate(${left - size / 2}px, ${top - size / 2}px)`;
  }

  // -- Keyboard and saving -----------------------------------------------------------------------

  /** One step of the brush's size. */
  nudge(direction) {
    this.setRadius(this.radius + direction * Math.max(1, Math.round(this.radius / 8)));
  }

  /** Paint or erase under the crosshair; returns whether there was anything to do. */
  stampAt(pixel) {
    if (!this.open || pixel === null) return false;
    this.before = this.mask.slice();
    this.touched = [this.width, this.height, 0, 0];
    this.last = null;
    this.stroke([pixel[0] + 0.5, pixel[1] + 0.5]);
    this.ends();
    return true;
  }

  /** The corrected mask as a black and white PNG. */
  async asPng() {
    const canvas = document.createElement("canvas");
    canvas.width = this.width;
    canvas.height = this.height;
    const context = canvas.getContext("2d");
    const pixels = context.createImageData(this.width, this.height);
    const words = new Uint32Array(pixels.data.buffer);
    const [white, black] = [packed(255, 255, 255), packed(0, 0, 0)];
    for (let at = 0; at < words.length; at += 1) words[at] = this.mask[at] ? white : black;
    context.putImageData(pixels, 0, 0);
    return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
  }

  async save() {
    const button = this.find("[data-save]");
    const message = this.find("[data-save-message]");
    button.disabled = true;
    message.textContent = gettext("Saving");
    const form = new FormData();
    form.append("csrfmiddlewaretoken", this.viewer.root.dataset.csrf);
    form.append("mask", await this.asPng(), "mask.png");
    try {
      const url = this.viewer.root.dataset.correctUrl;
      const response = await fetch(url, { method: "POST", body: form, credentials: "same-origin" });
      const answer = await response.json();
      if (!response.ok) throw new Error(answer.sentence);
      this.saved = this.mask.slice();
      this.done = [];
      this.undone = [];
      const values = new URLSearchParams(window.location.search);
      values.delete("correct");
      window.location.assign(`${answer.url}?${values}`);
    } catch (error) {
      message.textContent =
        error instanceof TypeError || error instanceof SyntaxError
          ? gettext("The server did not answer. Your corrections are still here: save again.")
          : error.message;
      button.disabled = false;
    }
  }
}
