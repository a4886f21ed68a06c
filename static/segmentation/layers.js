// What the server sends of one prediction, unpacked, and the pictures made of it.
//
// The file: "BHL1", then little-endian unsigned 32-bit width, height, factor (image pixels per
// layer pixel along a side) and flags (1: a known mask is included); then three planes of
// width * height bytes: high and low byte of the probability (0..65535) as differences along each
// row, and bits (1: in the most likely mask, 2: in the known mask).

import { gettext } from "../js/words.js";
import { entropyColours, packed, probabilityColours } from "./colour.js";

const EXTRA = packed(0x4c, 0x84, 0xd6);
const MISSED = packed(0xc0, 0x6e, 0x18);

/** Unpack the file; throws when it is not one. */
export function unpackLayers(buffer) {
  const header = new DataView(buffer, 0, 20);
  const magic = String.fromCharCode(...new Uint8Array(buffer, 0, 4));
  const [width, height, factor, flags] = [4, 8, 12, 16].map((at) => header.getUint32(at, true));
  const count = width * height;
  if (magic !== "BHL1" || buffer.byteLength !== 20 + 3 * count) {
    throw new Error(gettext("The layers of this image are damaged."));
  }
  const high = new Uint8Array(buffer, 20, count);
  const low = new Uint8Array(buffer, 20 + count, count);
  const bits = new Uint8Array(buffer, 20 + 2 * count, count);
  const levels = new Uint16Array(count);
  const mask = new Uint8Array(count);
  for (let row = 0, at = 0; row < height; row += 1) {
    let level = 0;
    for (let column = 0; column < width; column += 1, at += 1) {
      level = (level + (high[at] << 8) + low[at]) & 0xffff;
      levels[at] = level;
      mask[at] = bits[at] & 1;
    }
  }
  return new Layers(width, height, factor, levels, mask, (flags & 1) === 1 ? bits : null);
}

/** Arrays of one image and, made when first needed, a canvas per layer. */
export class Layers {
  constructor(width, height, factor, levels, mask, truthBits) {
    Object.assign(this, { width, height, factor, levels, mask, truthBits });
    this.canvases = new Map();
  }

  get hasTruth() {
    return this.truthBits !== null;
  }

  /** Probability at a layer pixel, 0..1. */
  probability(x, y) {
    return this.levels[y * this.width + x] / 65535;
  }

  /** The mask of pixels at least so probable. */
  above(threshold) {
    const least = Math.round(65535 * threshold);
    return Uint8Array.from(this.levels, (level) => (level >= least ? 1 : 0));
  }

  /** Whether the known mask covers a layer pixel; null when there is none. */
  truth(x, y) {
    return this.truthBits === null ? null : (this.truthBits[y * this.width + x] & 2) !== 0;
  }

  /** The canvas of "probability", "entropy" or "errors". */
  canvas(name) {
    if (!this.canvases.has(name)) {
      this.canvases.set(name, paintCanvas(this.width, this.height, this[`${name}Painter`]()));
    }
    return this.canvases.get(name);
  }

  probabilityPainter() {
    const colours = probabilityColours();
    return (at) => colours[this.levels[at] >> 8];
  }

  entropyPainter() {
    const colours = entropyColours();
    return (at) => colours[this.levels[at] >> 8];
  }

  errorsPainter() {
    const bits = this.truthBits;
    if (bits === null) return () => 0;
    return (at) => {
      const known = (bits[at] & 2) >> 1;
      if (known === this.mask[at]) return 0;
      return known ? MISSED : EXTRA;
    };
  }
}

function paintCanvas(width, height, colourAt) {
  const canvas = document.createElement("canvas");
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext("2d");
  const pixels = context.createImageData(width, height);
  const words = new Uint32Array(pixels.data.buffer);
  for (let at = 0; at < words.length; at += 1) words[at] = colourAt(at);
  context.putImageData(pixels, 0, 0);
  return canvas;
}

/** The border between mask and rest, as a path along pixel edges in layer pixels. */
export function outlinePath(mask, width, height) {
  const path = new Path2D();
  // Horizontal runs: a border lies above row y wherever the pixel above differs.
  for (let y = 0; y <= height; y += 1) {
    let start = -1;
    for (let x = 0; x <= width; x += 1) {
      const inside = x < width && y < height ? mask[y * width + x] : 0;
      const above = x < width && y > 0 ? mask[(y - 1) * width + x] : 0;
      const border = x < width && inside !== above;
      if (border && start < 0) start = x;
      if (!border && start >= 0) {
        path.moveTo(start, y);
        path.lineTo(x, y);
        start = -1;
      }
    }
  }
  for (let x = 0; x <= width; x += 1) {
    let start = -1;
    for (let y = 0; y <= height; y += 1) {
      const inside = x < width && y < height ? mask[y * width + x] : 0;
      const before = x > 0 && y < height ? mask[y * width + x - 1] : 0;
      const border = y < height && inside !== before;
      if (border && start < 0) start = y;
      if (!border && start >= 0) {
        path.moveTo(x, start);
        path.lineTo(x, y);
        start = -1;
      }
    }
  }
  return path;
}
