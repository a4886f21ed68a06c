// The keyboard of the page for painting: classes, brush, layers, and a cursor instead of a mouse.

const SHIFT_STEP = 10;

export class PaintKeys {
  constructor(paint) {
    this.paint = paint;
    this.state = paint.state;
  }

  listen() {
    document.addEventListener("keydown", (event) => this.onKey(event, true), true);
    document.addEventListener("keyup", (event) => this.onKey(event, false), true);
  }

  onKey(event, isDown) {
    const typing = event.target.matches?.("input:not([type=range], [type=checkbox]), textarea, select");
    if (typing || document.querySelector("dialog[open]")) return;
    if (this.onUndoKey(event, isDown) || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === " " && !event.target.closest("button, a, summary")) {
      this.paint.pointers.isSpace = isDown;
      this.paint.pointers.showRing();
    } else if (event.key.toLowerCase() === "d" && !event.repeat) {
      if (isDown) this.before = this.state.show;
      this.paint.setShow(isDown ? "doubt" : (this.before ?? "classes"));
    } else if (!isDown) return;
    else if (/^[1-9]$/.test(event.key)) {
      const chosen = this.state.classes[Number(event.key) - 1];
      if (!chosen) return;
      this.paint.pick(chosen.value);
    } else if (event.key === "+" || event.key === "-") {
      const by = Math.max(1, Math.round(0.15 * this.state.size));
      this.paint.setSize(this.state.size + (event.key === "+" ? by : -by));
    } else if (event.target === this.paint.stageBox && this.onStageKey(event)) {
      // taken
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Ctrl+Z undoes; with Shift, or Ctrl+Y, it is done again. */
  onUndoKey(event, isDown) {
    const key = event.key.toLowerCase();
    if (!(event.ctrlKey || event.metaKey) || event.altKey || !["z", "y"].includes(key) || this.paint.isLooking) return false;
    if (isDown) this.paint.undo(key === "y" || event.shiftKey);
    event.preventDefault();
    event.stopPropagation();
    return true;
  }

  onStageKey(event) {
    const by = event.shiftKey ? SHIFT_STEP : 1;
    const step = { ArrowLeft: [-by, 0], ArrowRight: [by, 0], ArrowUp: [0, -by], ArrowDown: [0, by] }[event.key];
    const { cursor } = this.state;
    if (step) {
      const [x, y] = cursor ?? this.paint.viewport.centre;
      const { width, height } = this.paint.given;
      this.state.cursor = [
        Math.min(width - 0.5, Math.max(0.5, x + step[0])),
        Math.min(height - 0.5, Math.max(0.5, y + step[1])),
      ];
      this.paint.viewport.reveal(...this.state.cursor);
    } else if (event.key === "Enter" && this.state.current?.tool === "polygon") this.paint.endPolygon();
    else if (event.key === "Enter" && cursor && !this.paint.isLooking) {
      if (this.state.tool === "fill") this.paint.fill(cursor);
      else this.paint.keep(this.paint.newStroke([...cursor]));
    } else if (event.key === "Escape") {
      this.paint.endPolygon(false);
      this.state.cursor = null;
    } else return false;
    this.paint.refresh();
    return true;
  }
}
