// What the viewer says: controls, labels, scale, and the value of a pixel, in pixels and in words.

import { filled, gettext } from "../js/words.js";
import { drawColourBar, entropyBits } from "./colour.js";

const TITLES = {
  outline: gettext("Outline"),
  probability: gettext("Probability"),
  entropy: gettext("Entropy"),
  errors: gettext("Errors"),
  image: gettext("Image"),
};
const NARROW = window.matchMedia("(max-width: 767px)");

/** Shows the viewer's state in the controls around the picture. */
export class Panel {
  constructor(viewer) {
    this.viewer = viewer;
  }

  /** Show the whole state. */
  show() {
    const { state, viewport, layers } = this.viewer;
    for (const button of this.viewer.all("[data-mode]")) {
      button.setAttribute("aria-pressed", String(button.dataset.mode === state.mode));
    }
    for (const row of this.viewer.all("[data-layer]")) this.showLayerRow(row);
    this.viewer.find("[data-zoom-value]").textContent =
      `${Math.round((100 * viewport.scale) / layers.factor)} %`;
    this.showOpacity();
    this.showLabels();
    this.showBar();
    this.showHandle();
    this.showTip();
  }

  showLayerRow(row) {
    const name = row.dataset.layer;
    const shown = this.viewer.state.shown[name];
    row.classList.toggle("is-selected", this.viewer.state.selected === name);
    row.classList.toggle("is-hidden", !shown);
    row.querySelector("[data-eye]").setAttribute("aria-pressed", String(shown));
    const select = row.querySelector("[data-select]");
    select.setAttribute("aria-pressed", String(this.viewer.state.selected === name));
    row.querySelector("[data-layer-value]").textContent = shown
      ? `${this.viewer.state.opacity[name]} %`
      : gettext("off");
  }

  showOpacity() {
    const name = this.viewer.state.selected;
    const value = this.viewer.state.shown[name] ? this.viewer.state.opacity[name] : 0;
    const slider = this.viewer.find("[data-opacity]");
    slider.value = String(value);
    slider.style.setProperty("--share", `${value}%`);
    const label = filled(gettext("%(layer)s opacity"), { layer: TITLES[name] });
    slider.setAttribute("aria-label", label);
    slider.setAttribute("aria-valuetext", `${value} %`);
    this.viewer.find("[data-opacity-label]").textContent = label;
    this.viewer.find("[data-opacity-value]").textContent = `${value} %`;
  }

  /** The names of what each side shows, in the corners. */
  showLabels() {
    const { state } = this.viewer;
    const [left, right] = [this.viewer.find("[data-label=left]"), this.viewer.find("[data-label=right]")];
    const above = ["errors", "probability", "entropy"].filter((name) => state.shown[name]);
    const named = above.map((name) => `${TITLES[name]}, ${state.opacity[name]} %`);
    left.hidden = state.mode === "overlay";
    left.textContent = TITLES.image;
    right.hidden = named.length === 0;
    right.textContent = named.join(" + ");
    const [, top] = this.viewer.stage.panes.at(-1);
    right.style.marginTop = `${top}px`;
    left.style.maxWidth = state.mode === "swipe" ? `${Math.max(state.swipe, 12)}%` : "";
  }

  showBar() {
    const { state } = this.viewer;
    const isEntropy = state.shown.entropy && (state.selected === "entropy" || !state.shown.probability);
    const kind = isEntropy ? "entropy" : "probability";
    const isIdle = !state.shown.probability && !state.shown.entropy;
    this.viewer.find("[data-scale]").classList.toggle("is-idle", isIdle);
    const lies = NARROW.matches;
    if (this.barKind === `${kind} ${lies}`) return;
    this.barKind = `${kind} ${lies}`;
    drawColourBar(this.viewer.find("[data-bar-canvas]"), kind, lies);
    this.viewer.find("[data-bar-label]").textContent =
      kind === "entropy"
        ? gettext("Entropy (bits)")
        : filled(gettext("Probability of %(foreground)s"), { foreground: this.viewer.foreground });
  }

  showHandle() {
    const handle = this.viewer.find("[data-handle]");
    handle.hidden = this.viewer.state.mode !== "swipe";
    handle.style.left = `${this.viewer.state.swipe}%`;
    handle.setAttribute("aria-valuenow", String(Math.round(this.viewer.state.swipe)));
  }

  /** Words on the pixel under the pointer or the keyboard's crosshair. */
  describe([x, y]) {
    const { layers } = this.viewer;
    const probability = layers.probability(x, y);
    const known = layers.truth(x, y);
    const name = (inside) => (inside ? this.viewer.foreground : gettext("background"));
    return {
      value: probability.toFixed(2),
      place: `x ${x * layers.factor}, y ${y * layers.factor}`,
      entropy: filled(gettext("%(entropy)s bits"), { entropy: entropyBits(probability).toFixed(2) }),
      mask: name(layers.mask[y * layers.width + x] === 1),
      known: known === null ? "" : name(known),
    };
  }

  showTip() {
    const tip = this.viewer.find("[data-tip]");
    const pixel = this.viewer.hover || this.viewer.state.at;
    tip.hidden = !pixel;
    if (!pixel) return;
    const words = this.describe(pixel);
    tip.querySelector("[data-tip-value]").textContent = words.value;
    tip.querySelector("[data-tip-place]").textContent = words.place;
    tip.querySelector("[data-tip-more]").textContent = words.known
      ? filled(gettext("%(entropy)s, known: %(known)s"), words)
      : words.entropy;
    const [x, y] = this.viewer.viewport.toPane(pixel[0] + 0.5, pixel[1] + 0.5);
    const [paneLeft, paneTop] = (this.viewer.hover && this.viewer.hoverPane) || [0, 0];
    const box = tip.getBoundingClientRect();
    const [width, height] = this.viewer.stage.size;
    const [middle, top] = [paneLeft + x, Math.min(paneTop + y + 16, height - box.height - 8)];
    const left = middle + 18 + box.width > width ? middle - 18 - box.width : middle + 18;
    tip.style.transform = `translate(${Math.max(4, left)}px, ${Math.max(4, top)}px)`;
  }

  /** Read the crosshair's pixel out to those who do not see it. */
  announce() {
    const words = this.describe(this.viewer.state.at);
    const sentence = words.known
      ? gettext("%(place)s: probability %(value)s, %(entropy)s, mask: %(mask)s, known mask: %(known)s.")
      : gettext("%(place)s: probability %(value)s, %(entropy)s, mask: %(mask)s.");
    this.viewer.find("[data-readout]").textContent = filled(sentence, words);
  }
}
