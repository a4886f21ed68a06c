// Draws picture, answer, doubt and strokes into one canvas.

import { packed } from "./colour.js";
import { drawStroke } from "./strokes.js";

const UNKNOWN = 255;
const RIGHT = packed(47, 179, 68, 90);
const WRONG = packed(242, 110, 20);
const AREAS = ["polygon", "fill"]; // such as imported labels
const HATCH = 7; // CSS pixels between two lines

/** The answer of the server for this picture: labels, sureness and probabilities, unpacked. */
export class Answer {
  constructor(header, bytes) {
    const { width, height, planes } = header;
    const count = width * height;
    Object.assign(this, { header, width, height, factor: header.factor });
    this.labels = bytes.subarray(0, count);
    this.planes = [];
    for (let k = 0; k < planes; k += 1) this.planes.push(bytes.subarray((k + 1) * count, (k + 2) * count));
    this.truth = header.hasTruth ? bytes.subarray((planes + 1) * count, (planes + 2) * count) : null;
    this.sureness = this.planes.length === 1 ? this.planes[0] : new Uint8Array(count);
    if (this.planes.length > 1) {
      for (const plane of this.planes) {
        for (let at = 0; at < count; at += 1) if (plane[at] > this.sureness[at]) this.sureness[at] = plane[at];
      }
    }
  }

  /** A canvas of the colours of visible classes. */
  classCanvas(colours) {
    return this.paint((at) => colours[this.labels[at]] ?? 0);
  }

  /** A canvas that is opaque where the sureness lies below a threshold. */
  unsureCanvas(threshold) {
    const limit = 255 * threshold;
    let unsure = 0;
    const canvas = this.paint((at) => {
      if (this.sureness[at] >= limit) return 0;
      unsure += 1;
      return 0xffffffff;
    });
    this.unsureShare = unsure / this.labels.length;
    return canvas;
  }

  /** A canvas of the probability of one class; none where only the largest is known. */
  probabilityCanvas(label, colours) {
    if (this.planes.length === 1 || label < 0) return null;
    return this.paint((at) => colours[this.planes[label][at]]);
  }

  /** A canvas of what is known: orange where the answer is wrong, faint green where it is right. */
  errorCanvas() {
    if (!this.truth) return null;
    return this.paint((at) => {
      if (this.truth[at] === UNKNOWN) return 0;
      return this.truth[at] === this.labels[at] ? RIGHT : WRONG;
    });
  }

  /** A canvas of doubt, brighter where less sure. */
  doubtCanvas() {
    return this.paint((at) => {
      const doubt = Math.min(255, 2 * (255 - this.sureness[at]));
      return ((doubt << 24) | 0x00ffffff) >>> 0;
    });
  }

  paint(colourAt) {
    const canvas = document.createElement("canvas");
    canvas.width = this.width;
    canvas.height = this.height;
    const context = canvas.getContext("2d");
    const pixels = context.createImageData(this.width, this.height);
    const words = new Uint32Array(pixels.data.buffer);
    for (let at = 0; at < words.length; at += 1) words[at] = colourAt(at);
    context.putImageData(pixels, 0, 0);
    return canvas;
  }
}

/** The canvas and all that is drawn into it. */
export class PaintStage {
  constructor(canvas, image, viewport) {
    Object.assign(this, { canvas, image, viewport });
    this.context = canvas.getContext("2d");
    this.ink = document.createElement("canvas");
    this.veil = document.createElement("canvas");
    this.layers = { classes: null, unsure: null, doubt: null, probability: null, errors: null };
  }

  resize() {
    const box = this.canvas.getBoundingClientRect();
    this.ratio = window.devicePixelRatio || 1;
    this.size = [box.width, box.height];
    for (const canvas of [this.canvas, this.ink, this.veil]) {
      canvas.width = Math.max(1, Math.round(box.width * this.ratio));
      canvas.height = Math.max(1, Math.round(box.height * this.ratio));
    }
    this.viewport.setPane(box.width, box.height);
  }

  /** Make the unit of a context the image's pixel. */
  inImage(context) {
    const { scale } = this.viewport;
    const [left, top] = this.viewport.toPane(0, 0);
    const { ratio } = this;
    context.setTransform(scale * ratio, 0, 0, scale * ratio, left * ratio, top * ratio);
    context.imageSmoothingEnabled = scale < 3;
  }

  draw(state) {
    const { context, viewport } = this;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    this.inImage(context);
    context.drawImage(this.image, 0, 0, viewport.width, viewport.height);
    if (state.show === "classes" && this.layers.classes) {
      context.globalAlpha = state.opacity / 100;
      context.drawImage(this.layers.classes, 0, 0, viewport.width, viewport.height);
      context.globalAlpha = 1;
      this.drawHatching();
    }
    if (state.show === "doubt" && this.layers.doubt) {
      context.globalAlpha = 0.85;
      context.drawImage(this.layers.doubt, 0, 0, viewport.width, viewport.height);
      context.globalAlpha = 1;
    }
    const other = ["probability", "errors"].includes(state.show) ? this.layers[state.show] : null;
    if (other) {
      context.globalAlpha = state.show === "errors" ? 0.85 : state.opacity / 100;
      context.drawImage(other, 0, 0, viewport.width, viewport.height);
      context.globalAlpha = 1;
    }
    if (state.show !== "picture") this.drawInk(state);
    if (state.cursor) this.drawCursor(state.cursor);
  }

  /** Lines over what is unsure, at one distance on the screen whatever the zoom. */
  drawHatching() {
    if (!this.layers.unsure) return;
    const veil = this.veil.getContext("2d");
    veil.setTransform(1, 0, 0, 1, 0, 0);
    veil.globalCompositeOperation = "source-over";
    veil.clearRect(0, 0, this.veil.width, this.veil.height);
    this.inImage(veil);
    veil.imageSmoothingEnabled = false;
    veil.drawImage(this.layers.unsure, 0, 0, this.viewport.width, this.viewport.height);
    veil.setTransform(1, 0, 0, 1, 0, 0);
    veil.globalCompositeOperation = "source-in";
    veil.fillStyle = this.hatch(veil);
    veil.fillRect(0, 0, this.veil.width, this.veil.height);
    this.context.setTransform(1, 0, 0, 1, 0, 0);
    this.context.drawImage(this.veil, 0, 0);
    this.inImage(this.context);
  }

  hatch(context) {
    if (this.pattern) return this.pattern;
    const side = Math.round(HATCH * this.ratio);
    const tile = document.createElement("canvas");
    tile.width = side;
    tile.height = side;
    const lines = tile.getContext("2d");
    const stripe = (colour, width) => {
      lines.strokeStyle = colour;
      lines.lineWidth = width * this.ratio;
      for (const shift of [-side, 0, side]) {
        lines.beginPath();
        lines.moveTo(shift - 1, side + 1);
        lines.lineTo(shift + side + 1, -1);
        lines.stroke();
      }
    };
    stripe("rgb(0 0 0 / 55%)", 3);
    stripe("#ffffff", 1.3);
    this.pattern = context.createPattern(tile, "repeat");
    return this.pattern;
  }

  /** An area that takes the place of what lies below it, as opaque as the classes are. */
  drawArea(ink, stroke, colour, state) {
    ink.globalCompositeOperation = "destination-out";
    drawStroke(ink, stroke, "#000");
    ink.globalCompositeOperation = "source-over";
    ink.globalAlpha = state.opacity / 100;
    drawStroke(ink, stroke, colour);
    ink.globalAlpha = 1;
  }

  /** Strokes with a white edge; the eraser takes away what lies below it. */
  drawInk(state) {
    const ink = this.ink.getContext("2d");
    ink.setTransform(1, 0, 0, 1, 0, 0);
    ink.clearRect(0, 0, this.ink.width, this.ink.height);
    this.inImage(ink);
    const edge = 1.5 / this.viewport.scale;
    const all = state.current ? [...state.strokes, state.current] : state.strokes;
    for (const stroke of all) {
      const colour = state.colours.get(stroke.value);
      ink.globalCompositeOperation = stroke.value === 0 ? "destination-out" : "source-over";
      if (state.hidden.has(stroke.value)) continue;
      if (stroke.value === 0) drawStroke(ink, stroke, "#000");
      else if (colour && AREAS.includes(stroke.tool) && stroke !== state.current) this.drawArea(ink, stroke, colour, state);
      else if (colour) {
        drawStroke(ink, stroke, "#ffffff", edge);
        drawStroke(ink, stroke, colour);
      }
    }
    ink.globalCompositeOperation = "source-over";
    if (state.current?.value === 0) drawStroke(ink, state.current, "rgb(255 255 255 / 35%)");
    this.context.setTransform(1, 0, 0, 1, 0, 0);
    this.context.drawImage(this.ink, 0, 0);
    this.inImage(this.context);
  }

  drawCursor([x, y]) {
    const { context } = this;
    const reach = 9 / this.viewport.scale;
    for (const [colour, width] of [["#000", 3.5], ["#fff", 1.5]]) {
      context.strokeStyle = colour;
      context.lineWidth = width / this.viewport.scale;
      context.beginPath();
      context.moveTo(x - reach, y);
      context.lineTo(x + reach, y);
      context.moveTo(x, y - reach);
      context.lineTo(x, y + reach);
      context.stroke();
    }
  }
}
