// The viewer of one predicted image: controls, keyboard, pointer, address.

import { filled, gettext } from "../js/words.js";
import { unpackLayers } from "./layers.js";
import { Painter } from "./painter.js";
import { Panel } from "./panel.js";
import { PictureTones } from "./picture_tones.js";
import { Stage } from "./stage.js";
import { readState, writeState } from "./view_state.js";
import { Viewport } from "./viewport.js";

const OPACITY_STEP = 5; // per cent
const SHIFT_STEP = 10; // pixels that the pointer moves with Shift

async function fetched(url, read) {
  const response = await fetch(url, { credentials: "same-origin" });
  if (!response.ok) throw new Error(gettext("This image could not be loaded. Reload the page to try again."));
  return read(response);
}

/** Those of the named parameters that the address has; they belong to the page, not to the view. */
function kept(...names) {
  const values = new URLSearchParams(window.location.search);
  return names.filter((name) => values.has(name)).map((name) => `${name}=${encodeURIComponent(values.get(name))}`);
}

class Viewer {
  constructor(root) {
    this.root = root;
    // Layers and links stand beside the viewer's own panel.
    this.find = (selector) => document.querySelector(selector);
    this.all = (selector) => [...document.querySelectorAll(selector)];
    this.state = readState(window.location.search);
    this.foreground = root.dataset.foreground;
    this.stageBox = this.find("[data-stage]");
    this.pointers = new Map();
    this.threshold = 0.5;
    this.panel = new Panel(this);
  }

  async start() {
    const [image, buffer] = await Promise.all([
      fetched(this.root.dataset.imageUrl, (response) => response.blob()).then(createImageBitmap),
      fetched(this.root.dataset.layersUrl, (response) => response.arrayBuffer()),
    ]);
    this.layers = unpackLayers(buffer);
    this.root.style.setProperty("--ratio", String(this.layers.width / this.layers.height));
    this.viewport = new Viewport(this.layers.width, this.layers.height);
    this.stage = new Stage(this.find("[data-canvas]"), image, this.layers, this.viewport);
    const tones = new PictureTones(image, () => {
      this.stage.image = tones.picture;
      this.refresh(false);
    });
    this.stage.image = tones.picture;
    this.restorePosition();
    this.painter = this.find("[data-painter]") && new Painter(this);
    this.listen();
    new ResizeObserver(() => this.refresh(false)).observe(this.stageBox);
    this.refresh(false);
    this.root.dataset.ready = "true";
  }

  restorePosition() {
    const { state, viewport, layers } = this;
    if (state.zoom !== null && state.centre !== null) {
      viewport.zoom = state.zoom * layers.factor;
      viewport.centre = state.centre.map((value) => value / layers.factor);
      viewport.keepInside();
    }
    if (state.at !== null) {
      const [x, y] = state.at.map((value) => Math.floor(value / layers.factor));
      const inside = x >= 0 && y >= 0 && x < layers.width && y < layers.height;
      state.at = inside ? [x, y] : null;
    }
  }

  // -- Showing -----------------------------------------------------------------------------------

  /** Draw soon; several changes within one frame cost one drawing. */
  refresh(remember = true) {
    if (remember) this.remember();
    if (this.frame) return;
    this.frame = window.requestAnimationFrame(() => {
      this.frame = null;
      this.root.style.setProperty("--panes", this.state.mode === "side" ? "2" : "1");
      this.stage.resize(this.state.mode);
      this.stage.draw(this.state);
      this.panel.show();
    });
  }

  /** Put the state into the address, and into the links to other images. */
  remember() {
    const { state, viewport, layers } = this;
    state.zoom = viewport.isFitted ? null : viewport.scale / layers.factor;
    state.centre = viewport.centre.map((value) => value * layers.factor);
    window.clearTimeout(this.later);
    this.later = window.setTimeout(() => this.writeAddress(), 150);
  }

  writeAddress() {
    const { state, layers } = this;
    const at = state.at === null ? null : state.at.map((value) => value * layers.factor);
    const full = [...kept("order", "correct"), writeState({ ...state, at })].filter(Boolean).join("&");
    window.history.replaceState(null, "", full ? `?${full}` : window.location.pathname);
    const shown = [...kept("order"), writeState(state, false)].filter(Boolean).join("&");
    for (const link of document.querySelectorAll("a[data-keep-view]")) {
      const url = new URL(link.href);
      url.search = shown;
      link.href = url.href;
    }
  }

  // -- Doing -------------------------------------------------------------------------------------

  setMode(mode) {
    this.state.mode = mode;
    this.refresh();
  }

  select(name) {
    this.state.selected = name;
    this.refresh();
  }

  toggle(name) {
    if (name === "errors" && !this.layers.hasTruth) return;
    const { state } = this;
    state.shown[name] = !state.shown[name];
    if (state.shown[name] && state.opacity[name] === 0) state.opacity[name] = 100;
    if (state.shown[name]) state.selected = name;
    this.refresh();
  }

  setOpacity(value) {
    const { state } = this;
    state.opacity[state.selected] = Math.min(100, Math.max(0, Math.round(value)));
    state.shown[state.selected] = true;
    this.refresh();
  }

  /** Show the outline of another threshold; null shows the mask that was predicted. */
  setThreshold(value) {
    this.threshold = value ?? 0.5;
    const slider = this.find("[data-threshold]");
    slider.value = String(Math.round(100 * this.threshold));
    slider.style.setProperty("--share", `${slider.value}%`);
    this.find("[data-threshold-value]").textContent = value === null ? gettext("as predicted") : this.threshold.toFixed(2);
    this.find("[data-threshold-reset]").hidden = value === null;
    if (!this.painter?.open) {
      const mask = value === null ? this.layers.mask : this.layers.above(value);
      this.stage.setMask(mask);
      const marked = mask.reduce((sum, one) => sum + one, 0) / mask.length;
      const words = filled(gettext("marks %(share)s %"), { share: (100 * marked).toFixed(1) });
      this.find("[data-threshold-marked]").textContent = value === null ? "" : words;
    }
    this.refresh();
  }

  /** One step of the brush's size while correcting, else of the layer's opacity. */
  nudge(direction) {
    if (this.painter?.open) this.painter.nudge(direction);
    else {
      const { selected, shown, opacity } = this.state;
      this.setOpacity((shown[selected] ? opacity[selected] : 0) + OPACITY_STEP * direction);
    }
  }

  moveSwipe(percent) {
    this.state.swipe = Math.min(100, Math.max(0, percent));
    this.refresh();
  }

  zoom(action) {
    if (action === "fit") this.viewport.fit();
    else if (action === "full") this.toggleFullScreen();
    else this.viewport.zoomStep(action === "in" ? 1 : -1);
    this.refresh();
  }

  toggleFullScreen() {
    if (document.fullscreenElement) document.exitFullscreen();
    else this.root.requestFullscreen?.();
  }

  movePointer(dx, dy) {
    const { state, layers } = this;
    const middle = [Math.floor(layers.width / 2), Math.floor(layers.height / 2)];
    const [x, y] = state.at || middle;
    const moved = state.at === null ? [x, y] : [x + dx, y + dy];
    state.at = [
      Math.min(layers.width - 1, Math.max(0, moved[0])),
      Math.min(layers.height - 1, Math.max(0, moved[1])),
    ];
    this.hover = null;
    this.viewport.reveal(...state.at);
    this.panel.announce();
    this.refresh();
  }

  // -- Listening ---------------------------------------------------------------------------------

  listen() {
    for (const button of this.all("[data-mode]")) {
      button.addEventListener("click", () => this.setMode(button.dataset.mode));
    }
    for (const button of this.all("[data-zoom]")) {
      button.addEventListener("click", () => this.zoom(button.dataset.zoom));
    }
    for (const row of this.all("[data-layer]")) {
      const name = row.dataset.layer;
      row.querySelector("[data-eye]").addEventListener("click", () => this.toggle(name));
      row.querySelector("[data-select]").addEventListener("click", () => this.select(name));
    }
    const slider = this.find("[data-opacity]");
    slider.addEventListener("input", () => this.setOpacity(Number(slider.value)));
    const threshold = this.find("[data-threshold]");
    threshold.addEventListener("input", () => this.setThreshold(Number(threshold.value) / 100));
    this.find("[data-threshold-reset]").addEventListener("click", () => this.setThreshold(null));
    for (const button of this.all("[data-nudge]")) {
      button.addEventListener("click", () => this.nudge(Number(button.dataset.nudge)));
    }
    this.listenToStage();
    document.addEventListener("keydown", (event) => this.onKey(event), true);
    document.addEventListener("fullscreenchange", () => this.refresh(false));
  }

  listenToStage() {
    const box = this.stageBox;
    box.addEventListener("contextmenu", (event) => {
      if (this.painter?.open) event.preventDefault();
    });
    box.addEventListener("pointerdown", (event) => this.onPointerDown(event));
    box.addEventListener("pointermove", (event) => this.onPointerMove(event));
    for (const name of ["pointerup", "pointercancel"]) {
      box.addEventListener(name, (event) => this.onPointerUp(event));
    }
    box.addEventListener("pointerleave", () => {
      this.hover = null;
      this.refresh(false);
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

  /** Position of an event within its pane, in CSS pixels. */
  position(event) {
    const box = this.find("[data-canvas]").getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    this.hoverPane = this.stage.paneAt(x, y);
    return [x - this.hoverPane[0], y - this.hoverPane[1]];
  }

  onPointerDown(event) {
    if (event.target.closest("[data-handle]")) {
      this.dragging = "handle";
    } else if (this.painter?.begins(event)) {
      this.dragging = "brush";
    } else {
      this.dragging = "picture";
    }
    this.pointers.set(event.pointerId, [event.clientX, event.clientY]);
    this.moved = 0;
    this.stageBox.setPointerCapture(event.pointerId);
    if (this.dragging !== "brush") return;
    event.preventDefault();
    this.painter.stroke(this.viewport.toLayer(...this.position(event)));
  }

  onPointerMove(event) {
    const before = this.pointers.get(event.pointerId);
    const position = this.position(event);
    this.hover = this.viewport.pixelAt(...position);
    if (!before) {
      this.painter?.hoverAt(this.viewport.toLayer(...position));
      this.refresh(false);
      return;
    }
    const now = [event.clientX, event.clientY];
    this.moved += Math.hypot(now[0] - before[0], now[1] - before[1]);
    if (this.pointers.size === 2) this.pinch(event.pointerId, before, now);
    else if (this.dragging === "brush") this.painter.stroke(this.viewport.toLayer(...position));
    else if (this.dragging === "handle") this.dragHandle(event);
    else if (this.moved > 3) this.viewport.pan(now[0] - before[0], now[1] - before[1]);
    this.pointers.set(event.pointerId, now);
    this.refresh();
  }

  pinch(id, before, now) {
    const [other] = [...this.pointers].filter(([key]) => key !== id).map(([, place]) => place);
    const box = this.find("[data-canvas]").getBoundingClientRect();
    const apart = (place) => Math.max(1, Math.hypot(place[0] - other[0], place[1] - other[1]));
    const [x, y] = [(now[0] + other[0]) / 2 - box.left, (now[1] + other[1]) / 2 - box.top];
    const [left, top] = this.stage.paneAt(x, y);
    this.viewport.zoomAt(apart(now) / apart(before), x - left, y - top);
    this.viewport.pan((now[0] - before[0]) / 2, (now[1] - before[1]) / 2);
  }

  dragHandle(event) {
    const box = this.find("[data-canvas]").getBoundingClientRect();
    this.moveSwipe((100 * (event.clientX - box.left)) / box.width);
  }

  onPointerUp(event) {
    if (this.dragging === "brush") this.painter.ends();
    else if (this.dragging === "picture" && this.moved <= 3 && event.type === "pointerup") {
      this.pin(event);
    }
    this.pointers.delete(event.pointerId);
    this.dragging = null;
  }

  /** A click keeps the pixel in sight and in the address; a click on the kept pixel frees it. */
  pin(event) {
    const pixel = this.viewport.pixelAt(...this.position(event));
    const { at } = this.state;
    const near = at !== null && pixel !== null && Math.hypot(at[0] - pixel[0], at[1] - pixel[1]);
    this.state.at = near !== false && near * this.viewport.scale < 8 ? null : pixel;
    if (this.state.at !== null) this.panel.announce();
    this.refresh();
  }

  /** Arrows and the brush's keys; all other keys click buttons and links (data-shortcut). */
  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { target } = event;
    const taken =
      (target.closest("[data-handle]") && this.onHandleKey(event)) ||
      (target === this.stageBox && this.onStageKey(event));
    if (taken) event.preventDefault();
  }

  onHandleKey(event) {
    const step = { ArrowLeft: -2, ArrowRight: 2, ArrowDown: -2, ArrowUp: 2 }[event.key];
    const place = { Home: 0, End: 100 }[event.key];
    if (step === undefined && place === undefined) return false;
    this.moveSwipe(place ?? this.state.swipe + step);
    return true;
  }

  onStageKey(event) {
    const by = event.shiftKey ? SHIFT_STEP : 1;
    const move = {
      ArrowLeft: [-by, 0],
      ArrowRight: [by, 0],
      ArrowUp: [0, -by],
      ArrowDown: [0, by],
    }[event.key];
    if (move) this.movePointer(...move);
    else if (event.key === "Escape" && this.state.at !== null) {
      this.state.at = null;
      this.refresh();
    } else if (event.key === " " || event.key === "Enter") {
      return this.painter?.stampAt(this.state.at) ?? false;
    } else return false;
    return true;
  }
}

function showFailure(root, error) {
  const place = root.querySelector("[data-failure]");
  place.hidden = false;
  place.textContent = error.message;
  root.dataset.ready = "failed";
}

const root = document.querySelector("[data-viewer]");
if (root) {
  const viewer = new Viewer(root);
  viewer.start().catch((error) => showFailure(root, error));
}
