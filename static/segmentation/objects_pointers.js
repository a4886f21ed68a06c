// Mouse, pen, fingers and keys on the picture of objects.

const NEAR = 8; // CSS pixels around a corner within which a second click ends the line
const LEAST_STEP = 2; // CSS pixels between two points of a line drawn freely
const SHIFT_STEP = 10;

export class ObjectsPointers {
  constructor(page) {
    this.page = page;
    this.state = page.state;
    this.down = new Map();
  }

  listen() {
    const box = this.page.stageBox;
    box.addEventListener("contextmenu", (event) => event.preventDefault());
    box.addEventListener("pointerdown", (event) => this.onDown(event));
    box.addEventListener("pointermove", (event) => this.onMove(event));
    for (const name of ["pointerup", "pointercancel"]) box.addEventListener(name, (event) => this.onUp(event));
    box.addEventListener("pointerleave", () => this.page.point(0));
    box.addEventListener("dblclick", () => this.page.endLine());
    box.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        const factor = Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0016));
        this.page.viewport.zoomAt(factor, ...this.position(event));
        this.page.refresh();
      },
      { passive: false },
    );
    document.addEventListener("keydown", (event) => this.onKey(event), true);
    document.addEventListener("keyup", (event) => event.key === " " && (this.isSpace = false));
  }

  position(event) {
    const box = this.page.stage.canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  place(event) {
    return this.page.viewport.toLayer(...this.position(event)).map((value) => Math.round(100 * value) / 100);
  }

  get isDrawing() {
    return ["split", "border"].includes(this.state.tool) && !this.isSpace;
  }

  onDown(event) {
    if (event.target.closest("[data-overlay]")) return;
    this.down.set(event.pointerId, [event.clientX, event.clientY]);
    this.page.stageBox.setPointerCapture(event.pointerId);
    this.state.cursor = null;
    this.moved = 0;
    if (this.down.size === 2) {
      this.dragging = "picture"; // a second finger moves and zooms; the line that began is dropped
      if (this.state.isDragging) this.page.dropLine();
    } else if (event.button !== 0 || this.state.tool === "move" || this.isSpace) this.dragging = "picture";
    else if (this.isDrawing) {
      this.dragging = "line";
      this.begun = this.place(event);
    } else this.dragging = "select";
    this.page.refresh();
  }

  onMove(event) {
    const before = this.down.get(event.pointerId);
    const place = this.place(event);
    if (!before) {
      this.page.point(this.page.stage.answer ? this.page.stage.numberAt(...place) : 0);
      return;
    }
    const now = [event.clientX, event.clientY];
    this.moved += Math.hypot(now[0] - before[0], now[1] - before[1]);
    if (this.down.size === 2) this.pinch(event.pointerId, before, now);
    else if (this.dragging === "picture") this.page.viewport.pan(now[0] - before[0], now[1] - before[1]);
    else if (this.dragging === "line" && this.moved > NEAR) this.drawOn(place);
    this.down.set(event.pointerId, now);
    this.page.refresh();
  }

  /** Draw a line freely while the pointer is down. */
  drawOn(place) {
    const { points } = this.state;
    if (!this.state.isDragging) {
      this.state.isDragging = true;
      if (points.length === 0) points.push(this.begun);
    }
    const [x, y] = points.at(-1);
    if (Math.hypot(place[0] - x, place[1] - y) * this.page.viewport.scale >= LEAST_STEP) points.push(place);
  }

  pinch(id, before, now) {
    const [other] = [...this.down].filter(([key]) => key !== id).map(([, place]) => place);
    const box = this.page.stage.canvas.getBoundingClientRect();
    this.page.viewport.pinch(before, now, other, [box.left, box.top]);
  }

  onUp(event) {
    if (!this.down.delete(event.pointerId)) return;
    const place = this.place(event);
    const wasClick = event.type === "pointerup" && this.moved <= NEAR;
    if (event.type === "pointercancel") this.page.dropLine();
    else if (this.state.isDragging) {
      this.state.isDragging = false;
      this.page.endLine();
    } else if (wasClick && this.dragging === "line") this.addCorner(place);
    else if (wasClick && this.dragging === "select") {
      const adds = event.shiftKey || event.ctrlKey || event.metaKey || event.pointerType === "touch";
      this.page.select(this.page.stage.numberAt(...place), adds);
    }
    if (this.down.size === 0) this.dragging = null;
    this.page.refresh();
  }

  /** Add a corner; at the first or the last one the line ends. */
  addCorner(place) {
    const { points } = this.state;
    const isNear = (other) => other && Math.hypot(place[0] - other[0], place[1] - other[1]) * this.page.viewport.scale < NEAR;
    if (points.length > 1 && (isNear(points[0]) || isNear(points.at(-1)))) this.page.endLine();
    else points.push(place);
  }

  onKey(event) {
    const typing = event.target.matches?.("input:not([type=range], [type=checkbox]), textarea, select");
    if (typing || document.querySelector("dialog[open]")) return;
    const key = event.key.toLowerCase();
    if ((event.ctrlKey || event.metaKey) && !event.altKey && (key === "z" || key === "y")) {
      this.page.undo(key === "y" || event.shiftKey);
    } else if (event.ctrlKey || event.metaKey || event.altKey) return;
    else if ((event.key === "Delete" || event.key === "Backspace") && this.state.selected.size > 0) this.page.act("delete");
    else if (event.key === "Escape" && !document.querySelector("details.menu[open]")) this.page.escape();
    else if (event.key === " " && !event.target.closest("button, a, summary, input")) this.isSpace = true;
    else if (event.target !== this.page.stageBox || !this.onStageKey(event)) return;
    event.preventDefault();
    event.stopPropagation();
  }

  onStageKey(event) {
    const by = event.shiftKey ? SHIFT_STEP : 1;
    const step = { ArrowLeft: [-by, 0], ArrowRight: [by, 0], ArrowUp: [0, -by], ArrowDown: [0, by] }[event.key];
    const { viewport, stage } = this.page;
    const { cursor } = this.state;
    if (step) {
      const [x, y] = cursor ?? viewport.centre;
      this.state.cursor = [
        Math.min(viewport.width - 0.5, Math.max(0.5, x + step[0])),
        Math.min(viewport.height - 0.5, Math.max(0.5, y + step[1])),
      ];
      viewport.reveal(...this.state.cursor);
      this.page.point(stage.numberAt(...this.state.cursor));
    } else if (event.key === "Enter" && cursor) {
      if (this.isDrawing) this.addCorner(cursor);
      else this.page.select(stage.numberAt(...cursor), true);
    } else if (event.key === "+" || event.key === "-") viewport.zoomStep(event.key === "+" ? 1 : -1);
    else return false;
    this.page.refresh();
    return true;
  }
}
