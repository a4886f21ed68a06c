// Mouse, pen and fingers on the picture: strokes, corners, moving, zooming, the ring and the tip.

export class PaintPointers {
  constructor(paint) {
    this.paint = paint;
    this.state = paint.state;
    this.down = new Map();
    this.ring = paint.find("[data-brush]");
    this.tip = paint.find("[data-tip]");
  }

  listen() {
    const box = this.paint.stageBox;
    box.addEventListener("contextmenu", (event) => event.preventDefault());
    box.addEventListener("pointerdown", (event) => this.onDown(event));
    box.addEventListener("pointermove", (event) => this.onMove(event));
    for (const name of ["pointerup", "pointercancel"]) box.addEventListener(name, (event) => this.onUp(event));
    box.addEventListener("dblclick", () => this.paint.endPolygon());
    box.addEventListener("pointerleave", () => {
      this.ring.hidden = true;
      this.tip.hidden = true;
    });
    box.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        const [x, y] = this.position(event);
        this.paint.viewport.zoomAt(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0016)), x, y);
        this.paint.refresh();
      },
      { passive: false },
    );
  }

  position(event) {
    const box = this.paint.find("[data-canvas]").getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  place(event) {
    return this.paint.viewport.toLayer(...this.position(event)).map((value) => Math.round(10 * value) / 10);
  }

  /** Whether the picture moves instead of being painted. */
  get isMoving() {
    return this.state.tool === "move" || this.isSpace;
  }

  onDown(event) {
    if (event.target.closest("[data-overlay]")) return;
    this.down.set(event.pointerId, [event.clientX, event.clientY]);
    this.paint.stageBox.setPointerCapture(event.pointerId);
    if (this.down.size === 2) {
      this.state.current = null; // a second finger moves and zooms; the stroke that began is dropped
      this.dragging = "picture";
      return;
    }
    this.state.cursor = null;
    const place = this.place(event);
    if (event.button !== 0 || this.isMoving) this.dragging = "picture";
    else if (this.state.tool === "fill") this.paint.fill(place);
    else if (this.state.tool === "polygon") this.addCorner(place);
    else {
      this.dragging = "stroke";
      this.state.current = this.paint.newStroke([...place]);
      this.press(event);
    }
    this.paint.refresh();
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
      this.state.current = this.paint.newStroke([...place, ...place], "polygon");
      return;
    }
    const [x, y] = current.points;
    const near = Math.hypot(place[0] - x, place[1] - y) * this.paint.viewport.scale < 10;
    if (near && current.points.length >= 8) this.paint.endPolygon();
    else current.points.splice(-2, 2, ...place, ...place);
  }

  onMove(event) {
    if (event.target.closest("[data-overlay]")) {
      this.ring.hidden = true;
      this.tip.hidden = true;
      return;
    }
    const before = this.down.get(event.pointerId);
    const place = this.place(event);
    this.lastPosition = this.position(event);
    this.showRing();
    this.showTip(place);
    const { current } = this.state;
    if (current?.tool === "polygon") current.points.splice(-2, 2, ...place);
    if (!before) {
      if (current) this.paint.refresh();
      return;
    }
    const now = [event.clientX, event.clientY];
    if (this.down.size === 2) this.pinch(event.pointerId, before, now);
    else if (this.dragging === "picture") this.paint.viewport.pan(now[0] - before[0], now[1] - before[1]);
    else if (this.dragging === "stroke" && current) this.carryOn(event, place);
    this.down.set(event.pointerId, now);
    this.paint.refresh();
  }

  carryOn(event, place) {
    const { current } = this.state;
    if (this.state.tool === "line") {
      current.tool = "line";
      current.points.splice(2, 2, ...place);
      return;
    }
    const [x, y] = current.points.slice(-2);
    if (Math.hypot(place[0] - x, place[1] - y) * this.paint.viewport.scale < 1.5) return;
    current.points.push(...place);
    this.press(event);
  }

  pinch(id, before, now) {
    const [other] = [...this.down].filter(([key]) => key !== id).map(([, place]) => place);
    const box = this.paint.find("[data-canvas]").getBoundingClientRect();
    this.paint.viewport.pinch(before, now, other, [box.left, box.top]);
  }

  onUp(event) {
    this.down.delete(event.pointerId);
    if (event.type === "pointerup") this.endStroke();
    else if (this.dragging === "stroke") this.state.current = null;
    if (this.down.size === 0) this.dragging = null;
    this.paint.refresh();
  }

  endStroke() {
    const { current } = this.state;
    if (this.dragging !== "stroke" || !current) return;
    this.state.current = null;
    if (current.radii.length !== current.points.length / 2) current.radii = [];
    this.paint.keep(current);
  }

  showRing() {
    const isBrush = ["brush", "line", "eraser"].includes(this.state.tool) && !this.isMoving;
    this.ring.hidden = !isBrush || !this.lastPosition;
    if (this.ring.hidden) return;
    const width = Math.max(4, this.state.size * this.paint.viewport.scale);
    const [x, y] = this.lastPosition;
    this.ring.style.width = `${width}px`;
    this.ring.style.height = `${width}px`;
    this.ring.style.transform = `translate(${x - width / 2}px, ${y - width / 2}px)`;
  }

  showTip([x, y]) {
    const { answer } = this.paint;
    const [column, row] = answer ? [x, y].map((value) => Math.floor(value / answer.factor)) : [-1, -1];
    const inside = answer && column >= 0 && row >= 0 && column < answer.width && row < answer.height;
    this.tip.hidden = !inside || this.dragging === "stroke";
    if (this.tip.hidden) return;
    this.paint.panel.fillTip(answer, row * answer.width + column, x, y);
    const [left, top] = this.lastPosition;
    const flip = left > this.paint.stage.size[0] - 230 ? -this.tip.offsetWidth - 18 : 18;
    const drop = top > this.paint.stage.size[1] - 80 ? -this.tip.offsetHeight - 12 : 14;
    this.tip.style.transform = `translate(${left + flip}px, ${top + drop}px)`;
  }
}
