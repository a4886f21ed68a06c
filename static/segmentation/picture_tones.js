// Brightness, contrast, gamma and channels of the picture on the page; files and answers keep theirs.

import { gettext } from "../js/words.js";

const KEPT = "picture-tones"; // in this browser, for every picture
const NEUTRAL = { brightness: 0, contrast: 1, gamma: 1, red: true, green: true, blue: true };
const CHANNELS = ["red", "green", "blue"];

/** New value of each of 256 values: contrast about the middle, then brightness, then gamma. */
export function toneTable({ brightness, contrast, gamma }) {
  return Uint8ClampedArray.from({ length: 256 }, (_, value) => {
    const level = (value / 255 - 0.5) * contrast + 0.5 + brightness;
    return 255 * Math.min(1, Math.max(0, level)) ** (1 / gamma);
  });
}

/** Change the pixels in place; a single channel is shown grey. */
export function changeTones(data, tones) {
  const table = toneTable(tones);
  const shown = CHANNELS.map((name) => tones[name]);
  const only = shown.filter(Boolean).length === 1 ? shown.indexOf(true) : -1;
  for (let at = 0; at < data.length; at += 4) {
    const grey = only >= 0 ? table[data[at + only]] : 0;
    for (let k = 0; k < 3; k += 1) data[at + k] = only >= 0 ? grey : shown[k] ? table[data[at + k]] : 0;
  }
}

export const isNeutral = (tones) => Object.keys(NEUTRAL).every((name) => tones[name] === NEUTRAL[name]);

/** The controls of a page, and its picture with the chosen tones. */
export class PictureTones {
  constructor(image, onChange) {
    this.image = image;
    this.onChange = onChange;
    this.box = document.querySelector("[data-tones]");
    this.tones = this.remembered();
    this.show();
    this.box?.addEventListener("input", () => this.changeSoon());
    this.box?.querySelector("[data-tones-reset]").addEventListener("click", () => {
      this.tones = { ...NEUTRAL };
      this.change();
    });
  }

  /** What is drawn: the image itself, or a changed copy. */
  get picture() {
    if (isNeutral(this.tones)) return this.image;
    if (!this.changed) {
      this.changed = document.createElement("canvas");
      this.changed.width = this.image.width;
      this.changed.height = this.image.height;
      const context = this.changed.getContext("2d");
      context.drawImage(this.image, 0, 0);
      const pixels = context.getImageData(0, 0, this.changed.width, this.changed.height);
      changeTones(pixels.data, this.tones);
      context.putImageData(pixels, 0, 0);
    }
    return this.changed;
  }

  changeSoon() {
    for (const input of this.box.querySelectorAll("[data-tone]")) {
      this.tones[input.dataset.tone] = input.type === "checkbox" ? input.checked : Number(input.value);
    }
    if (!CHANNELS.some((name) => this.tones[name])) this.tones.red = true;
    this.show();
    window.clearTimeout(this.later);
    this.later = window.setTimeout(() => this.change(), 60);
  }

  change() {
    this.changed = null;
    try {
      localStorage.setItem(KEPT, JSON.stringify(this.tones));
    } catch {
      // They hold for this page.
    }
    this.show();
    this.onChange();
  }

  show() {
    if (!this.box) return;
    for (const input of this.box.querySelectorAll("[data-tone]")) {
      const value = this.tones[input.dataset.tone];
      if (input.type === "checkbox") input.checked = value;
      else {
        input.value = String(value);
        input.style.setProperty("--share", `${(100 * (input.value - input.min)) / (input.max - input.min)}%`);
      }
    }
    this.box.querySelector("[data-tones-name]").textContent = isNeutral(this.tones)
      ? gettext("Picture")
      : gettext("Picture, changed");
  }

  remembered() {
    try {
      const kept = JSON.parse(localStorage.getItem(KEPT)) ?? {};
      const fits = Object.entries(NEUTRAL).every(([name, value]) => typeof kept[name] === typeof value);
      return fits ? { ...NEUTRAL, ...kept } : { ...NEUTRAL };
    } catch {
      return { ...NEUTRAL };
    }
  }
}
