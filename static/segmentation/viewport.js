// Where the picture stands in a pane: one zoom and one centre, shared by all layers and panes.

const STEP = 1.25;
const NARROWEST = 0.02;
const WIDEST = 40;

/** Screen position of layer pixels; `zoom` is CSS pixels per layer pixel. */
export class Viewport {
  constructor(width, height) {
    this.width = width;
    this.height = height;
    this.zoom = null;
    this.centre = [width / 2, height / 2];
    this.pane = [1, 1];
  }

  /** Tell the size of a pane in CSS pixels. */
  setPane(width, height) {
    this.pane = [Math.max(width, 1), Math.max(height, 1)];
  }

  get fitZoom() {
    return Math.min((this.pane[0] - 24) / this.width, (this.pane[1] - 24) / this.height);
  }

  get scale() {
    return this.zoom === null ? Math.max(this.fitZoom, 0.001) : this.zoom;
  }

  get isFitted() {
    return this.zoom === null;
  }

  fit() {
    this.zoom = null;
    this.centre = [this.width / 2, this.height / 2];
  }

  /** Multiply the zoom, keeping the layer point under the pane position where it is. */
  zoomAt(factor, x, y) {
    const fixed = this.toLayer(x, y);
    const low = Math.min(NARROWEST, this.fitZoom);
    this.zoom = Math.min(WIDEST, Math.max(low, this.scale * factor));
    this.centre = [
      fixed[0] - (x - this.pane[0] / 2) / this.zoom,
      fixed[1] - (y - this.pane[1] / 2) / this.zoom,
    ];
    this.keepInside();
  }

  zoomStep(direction) {
    this.zoomAt(direction > 0 ? STEP : 1 / STEP, this.pane[0] / 2, this.pane[1] / 2);
  }

  /** Move by CSS pixels. */
  pan(dx, dy) {
    this.zoom = this.scale;
    this.centre = [this.centre[0] - dx / this.zoom, this.centre[1] - dy / this.zoom];
    this.keepInside();
  }

  /** Move and zoom as a finger moves while another one rests; places are those of the window. */
  pinch(before, now, other, [left, top]) {
    const apart = (place) => Math.max(1, Math.hypot(place[0] - other[0], place[1] - other[1]));
    const [x, y] = [(now[0] + other[0]) / 2 - left, (now[1] + other[1]) / 2 - top];
    this.zoomAt(apart(now) / apart(before), x, y);
    this.pan((now[0] - before[0]) / 2, (now[1] - before[1]) / 2);
  }

  /** Bring a layer point near the middle, as far as the picture still fills the pane. */
  show(x, y, zoom) {
    this.zoom = zoom;
    this.centre = [
      [x, this.width, this.pane[0]],
      [y, this.height, this.pane[1]],
    ].map(([at, size, pane]) => {
      const half = Math.min(size, pane / zoom) / 2;
      return Math.min(size - half, Math.max(half, at));
    });
    this.reveal(x, y); // at the very edge, with a margin
  }

  /** Bring a layer point into sight if it is not. */
  reveal(x, y) {
    const [px, py] = this.toPane(x, y);
    const dx = Math.min(0, this.pane[0] - 24 - px) + Math.max(0, 24 - px);
    const dy = Math.min(0, this.pane[1] - 24 - py) + Math.max(0, 24 - py);
    if (dx !== 0 || dy !== 0) this.pan(dx, dy);
  }

  keepInside() {
    this.centre = [
      Math.min(this.width, Math.max(0, this.centre[0])),
      Math.min(this.height, Math.max(0, this.centre[1])),
    ];
  }

  toPane(x, y) {
    return [
      (x - this.centre[0]) * this.scale + this.pane[0] / 2,
      (y - this.centre[1]) * this.scale + this.pane[1] / 2,
    ];
  }

  toLayer(x, y) {
    return [
      (x - this.pane[0] / 2) / this.scale + this.centre[0],
      (y - this.pane[1] / 2) / this.scale + this.centre[1],
    ];
  }

  /** The layer pixel under a pane position, or null outside the picture. */
  pixelAt(x, y) {
    const [column, row] = this.toLayer(x, y).map(Math.floor);
    const inside = column >= 0 && row >= 0 && column < this.width && row < this.height;
    return inside ? [column, row] : null;
  }
}
