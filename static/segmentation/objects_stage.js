// Draws objects on their picture: outlines, numbers, selected and pointed-at objects, a line drawn.

const MOST_NUMBERS = 2000; // more numbers than that would cover the picture
const LEAST_PIXELS_FOR_NUMBER = 200; // CSS pixels of an object on the page
const OUTLINE = [255, 214, 10, 255];
const POINTED = [255, 255, 255, 70];
const SELECTED = [255, 59, 48, 120];

/** Numbers of objects at every pixel of the page's picture, unpacked from the server's answer. */
export function unpackNumbers(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  return { ...header, numbers: new Uint32Array(buffer, 4 + length, header.width * header.height) };
}

/** Pixels, and sums of their columns and rows, by number; and the first place of each. */
export function centres({ numbers, width, most }) {
  const sums = new Float64Array(3 * (most + 1));
  const firsts = new Map();
  for (let at = 0; at < numbers.length; at += 1) {
    const own = numbers[at];
    if (own > 0 && !firsts.has(own)) firsts.set(own, at);
    sums[3 * own] += 1;
    sums[3 * own + 1] += at % width;
    sums[3 * own + 2] += Math.floor(at / width);
  }
  return { sums, firsts };
}

/** The canvas of the page, in pixels of the image. One pixel of an answer covers `factor` of them. */
export class ObjectsStage {
  constructor(canvas, viewport) {
    this.canvas = canvas;
    this.viewport = viewport;
    this.context = canvas.getContext("2d");
    this.picture = null;
    this.answer = null;
  }

  resize() {
    const box = this.canvas.getBoundingClientRect();
    this.ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(box.width * this.ratio);
    this.canvas.height = Math.round(box.height * this.ratio);
    this.viewport.setPane(box.width, box.height);
  }

  take(answer) {
    this.answer = answer;
    Object.assign(this, centres(answer));
    this.outlines = this.paint((at) => this.isBorder(at) && OUTLINE);
  }

  isBorder(at) {
    const { numbers, width, height } = this.answer;
    const own = numbers[at];
    if (own === 0) return false;
    const [x, y] = [at % width, Math.floor(at / width)];
    return (
      (x > 0 && numbers[at - 1] !== own) ||
      (x < width - 1 && numbers[at + 1] !== own) ||
      (y > 0 && numbers[at - width] !== own) ||
      (y < height - 1 && numbers[at + width] !== own)
    );
  }

  paint(colourAt) {
    const canvas = document.createElement("canvas");
    canvas.width = this.answer.width;
    canvas.height = this.answer.height;
    const context = canvas.getContext("2d");
    const pixels = context.createImageData(canvas.width, canvas.height);
    for (let at = 0; at < this.answer.numbers.length; at += 1) {
      const colour = colourAt(at);
      if (colour) pixels.data.set(colour, 4 * at);
    }
    context.putImageData(pixels, 0, 0);
    return canvas;
  }

  /** The number of the object at a place of the image, 0 for none. */
  numberAt(x, y) {
    const { width, height, factor, numbers } = this.answer;
    const [column, row] = [Math.floor(x / factor), Math.floor(y / factor)];
    return column >= 0 && row >= 0 && column < width && row < height ? numbers[row * width + column] : 0;
  }

  /** A place of the image within an object. */
  placeIn(number) {
    const { width, factor } = this.answer;
    const at = this.firsts.get(number);
    const middle = Math.floor(factor / 2) + 0.5;
    return [(at % width) * factor + middle, Math.floor(at / width) * factor + middle];
  }

  draw(state) {
    const { context, viewport } = this;
    if (!this.answer || !this.ratio) return;
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.clearRect(0, 0, ...viewport.pane);
    context.save();
    const [left, top] = viewport.toPane(0, 0);
    context.translate(left, top);
    context.scale(viewport.scale, viewport.scale);
    context.imageSmoothingEnabled = viewport.scale < 2;
    context.drawImage(this.picture, 0, 0, viewport.width, viewport.height);
    const { width, height, factor } = this.answer;
    const covers = (canvas) => context.drawImage(canvas, 0, 0, width * factor, height * factor);
    covers(this.outlines);
    const { selected, pointed } = state;
    if (selected.size > 0 || pointed > 0) covers(this.highlight(selected, pointed));
    context.restore();
    if (state.numbers) this.drawNumbers();
    this.drawLine(state);
    if (state.cursor) this.drawCursor(state.cursor);
  }

  /** Colours of selected and pointed-at objects, kept until these change. */
  highlight(selected, pointed) {
    const key = `${[...selected].join()}|${pointed}`;
    if (this.highlighted?.key !== key || this.highlighted.answer !== this.answer) {
      const { numbers } = this.answer;
      const canvas = this.paint((at) => {
        const own = numbers[at];
        if (own === 0) return null;
        return selected.has(own) ? SELECTED : own === pointed && POINTED;
      });
      this.highlighted = { key, answer: this.answer, canvas };
    }
    return this.highlighted.canvas;
  }

  drawNumbers() {
    const { context, viewport, answer, sums } = this;
    if (answer.count > MOST_NUMBERS) return;
    context.font = "600 12px Inter, sans-serif";
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.lineWidth = 3;
    context.strokeStyle = "rgb(0 0 0 / 75%)";
    context.fillStyle = "#fff";
    const scale = viewport.scale * answer.factor;
    for (const number of this.firsts.keys()) {
      const [pixels, x, y] = sums.subarray(3 * number, 3 * number + 3);
      if (pixels * scale * scale < LEAST_PIXELS_FOR_NUMBER) continue;
      const place = viewport.toPane((x / pixels + 0.5) * answer.factor, (y / pixels + 0.5) * answer.factor);
      context.strokeText(String(number), ...place);
      context.fillText(String(number), ...place);
    }
  }

  drawLine({ points, tool, cursor, isDragging }) {
    if (points.length === 0) return;
    const { context, viewport } = this;
    const shown = cursor && !isDragging ? [...points, cursor] : points;
    context.beginPath();
    for (const point of shown) context.lineTo(...viewport.toPane(...point));
    if (tool === "border" && shown.length > 2) context.closePath();
    for (const [width, colour] of [[4, "rgb(0 0 0 / 70%)"], [2, "#fff"]]) {
      context.lineWidth = width;
      context.strokeStyle = colour;
      context.stroke();
    }
  }

  drawCursor(place) {
    const { context } = this;
    const [x, y] = this.viewport.toPane(...place);
    for (const [width, colour] of [[4, "rgb(0 0 0 / 70%)"], [2, "#fff"]]) {
      context.lineWidth = width;
      context.strokeStyle = colour;
      context.beginPath();
      context.moveTo(x - 9, y);
      context.lineTo(x + 9, y);
      context.moveTo(x, y - 9);
      context.lineTo(x, y + 9);
      context.stroke();
    }
  }
}
