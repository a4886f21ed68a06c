// Draws the layers into one canvas: overlay, swipe or side by side.

import { outlinePath } from "./layers.js";

const DRAWN_ABOVE_IMAGE = ["probability", "entropy", "errors"];
const GAP = 8; // CSS pixels between two panes

/** The canvas, what is drawn into it, and where panes begin. */
export class Stage {
  constructor(canvas, image, layers, viewport) {
    Object.assign(this, { canvas, image, layers, viewport });
    this.context = canvas.getContext("2d");
    this.overlay = null; // a canvas in layer pixels, drawn above the image while correcting
    this.setMask(layers.mask);
  }

  /** Use this mask for the outline. */
  setMask(mask) {
    this.outline = outlinePath(mask, this.layers.width, this.layers.height);
  }

  /** Fit the canvas to its box; returns whether anything can be drawn. */
  resize(mode) {
    const box = this.canvas.getBoundingClientRect();
    const ratio = window.devicePixelRatio || 1;
    this.size = [box.width, box.height];
    this.canvas.width = Math.round(box.width * ratio);
    this.canvas.height = Math.round(box.height * ratio);
    this.ratio = ratio;
    const [paneWidth, paneHeight] = paneSize(mode, box.width, box.height);
    this.viewport.setPane(paneWidth, paneHeight);
    const second = paneWidth < box.width ? [paneWidth + GAP, 0] : [0, paneHeight + GAP];
    this.panes = mode === "side" ? [[0, 0], second] : [[0, 0]];
  }

  /** Left and top, in CSS pixels, of the pane around a position in the canvas. */
  paneAt(x, y) {
    return this.panes.findLast(([left, top]) => x >= left && y >= top) ?? this.panes[0];
  }

  draw(state) {
    const { context, ratio } = this;
    const [width, height] = this.size;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    if (state.mode === "swipe") {
      const border = (state.swipe / 100) * width;
      this.drawPane(state, [0, 0], [0, border], false);
      this.drawPane(state, [0, 0], [border, width], true);
    } else {
      const { pane } = this.viewport;
      this.panes.forEach((start, k) => {
        this.drawPane(state, start, [start[0], start[0] + pane[0]], k === this.panes.length - 1);
      });
    }
    if (state.at !== null) this.drawPointer(state);
  }

  /** Draw the pane that begins at `start`, between two positions from the left. */
  drawPane(state, start, [from, to], withLayers) {
    const { context, viewport } = this;
    if (to <= from) return;
    context.save();
    context.beginPath();
    context.rect(from, start[1], to - from, viewport.pane[1]);
    context.clip();
    const [left, top] = viewport.toPane(0, 0);
    context.translate(start[0] + left, start[1] + top);
    context.scale(viewport.scale, viewport.scale);
    context.imageSmoothingEnabled = viewport.scale < 2;
    const { width, height } = this.layers;
    if (state.shown.image || !withLayers) {
      context.globalAlpha = withLayers ? state.opacity.image / 100 : 1;
      context.drawImage(this.image, 0, 0, width, height);
    }
    for (const name of DRAWN_ABOVE_IMAGE) {
      if (!withLayers || !state.shown[name] || state.opacity[name] === 0) continue;
      context.globalAlpha = state.opacity[name] / 100;
      context.drawImage(this.layers.canvas(name), 0, 0);
    }
    if (this.overlay !== null && withLayers) {
      context.globalAlpha = 1;
      context.drawImage(this.overlay, 0, 0);
    }
    if (state.shown.outline) this.strokeOutline(state.opacity.outline / 100);
    context.restore();
  }

  strokeOutline(opacity) {
    const { context, viewport } = this;
    context.globalAlpha = opacity;
    context.lineCap = "round";
    context.lineWidth = 3.4 / viewport.scale;
    context.strokeStyle = "rgba(0, 0, 0, 0.55)";
    context.stroke(this.outline);
    context.lineWidth = 1.6 / viewport.scale;
    context.strokeStyle = "#ffffff";
    context.stroke(this.outline);
  }

  drawPointer(state) {
    const { context } = this;
    const [x, y] = this.viewport.toPane(state.at[0] + 0.5, state.at[1] + 0.5);
    for (const [left, top] of this.panes) {
      context.lineWidth = 4;
      context.strokeStyle = "rgba(0, 0, 0, 0.7)";
      circle(context, left + x, top + y, 7);
      context.lineWidth = 2;
      context.strokeStyle = "#ffffff";
      circle(context, left + x, top + y, 7);
    }
  }
}

/** Two panes stand side by side, or one above the other where the box is taller than wide. */
function paneSize(mode, width, height) {
  if (mode !== "side") return [width, height];
  return height > width ? [width, (height - GAP) / 2] : [(width - GAP) / 2, height];
}

function circle(context, x, y, radius) {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.stroke();
}
