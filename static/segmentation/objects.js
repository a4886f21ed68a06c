// The objects of one image: outlines and numbers on the picture, live splits, rows that highlight.

const WAIT = 200; // milliseconds after the last change before the server is asked
const MOST_NUMBERS = 2000; // more numbers than that would cover the picture
const LEAST_PIXELS_FOR_NUMBER = 60; // of an object on the page
const OUTLINE = [255, 214, 10, 255];
const SHOWN = [255, 59, 48, 110];

const words = (count) => `${count.toLocaleString("en")} object${count === 1 ? "" : "s"}`;
const shown = (value, digits) =>
  value === null || value === undefined
    ? ""
    : value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });

/** Numbers of objects at every pixel of the page's picture, unpacked from the server's answer. */
export function unpackNumbers(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  return { ...header, numbers: new Uint32Array(buffer, 4 + length, header.width * header.height) };
}

/** Pixels, and sums of their columns and rows, of every number. */
export function centres({ numbers, width, count }) {
  const sums = new Float64Array(3 * (count + 1));
  for (let at = 0; at < numbers.length; at += 1) {
    const place = 3 * numbers[at];
    sums[place] += 1;
    sums[place + 1] += at % width;
    sums[place + 2] += Math.floor(at / width);
  }
  return sums;
}

class ObjectsPage {
  constructor(root) {
    this.root = root;
    this.state = JSON.parse(document.getElementById("objects-state").textContent);
    this.find = (selector) => document.querySelector(selector);
    this.canvas = this.find("[data-objects-canvas]");
    this.form = this.find("[data-objects-form]");
    this.shownNumber = 0;
    this.asked = 0;
  }

  async start() {
    this.fillTable();
    const picture = await fetch(this.state.urls.picture, { credentials: "same-origin" });
    this.picture = await createImageBitmap(await picture.blob());
    await this.ask("");
    for (const input of this.form.querySelectorAll("[data-objects-option]")) {
      input.addEventListener("input", () => this.askSoon());
    }
    this.find("[data-objects-numbers]").addEventListener("change", () => this.draw());
    this.canvas.addEventListener("pointermove", (event) => this.point(event, false));
    this.canvas.addEventListener("click", (event) => this.point(event, true));
    this.canvas.addEventListener("pointerleave", () => this.show(0, false));
    this.root.dataset.ready = "true";
  }

  askSoon() {
    window.clearTimeout(this.later);
    this.later = window.setTimeout(() => {
      const query = new URLSearchParams(new FormData(this.form));
      query.delete("csrfmiddlewaretoken");
      this.ask(`?${query}`);
    }, WAIT);
  }

  /** Ask for the numbers by the choices in the query; of several answers only the last counts. */
  async ask(query) {
    this.asked += 1;
    const turn = this.asked;
    const response = await fetch(this.state.urls.split + query, { credentials: "same-origin" }).catch(() => null);
    if (turn !== this.asked) return;
    const message = this.find("[data-objects-message]");
    if (!response?.ok) {
      message.hidden = false;
      const isLarge = response?.status === 422;
      message.textContent = isLarge
        ? (await response.json()).sentence
        : "The objects could not be counted. Check the choices above, then try again.";
      return;
    }
    this.answer = unpackNumbers(await response.arrayBuffer());
    this.isStored = query === "";
    message.hidden = this.isStored;
    if (!this.isStored) {
      message.textContent = `Shown by the choices above, not stored. The table has the stored ${words(this.state.count)}.`;
    }
    this.find("[data-objects-count]").textContent = words(this.answer.count);
    this.sums = centres(this.answer);
    this.shownNumber = 0;
    this.outlines = this.outlineCanvas();
    this.draw();
  }

  /** A canvas of the pixels at which the number changes. */
  outlineCanvas() {
    const { numbers, width, height } = this.answer;
    return this.paint((at) => {
      const own = numbers[at];
      if (own === 0) return null;
      const [x, y] = [at % width, Math.floor(at / width)];
      const isBorder =
        (x > 0 && numbers[at - 1] !== own) ||
        (x < width - 1 && numbers[at + 1] !== own) ||
        (y > 0 && numbers[at - width] !== own) ||
        (y < height - 1 && numbers[at + width] !== own);
      return isBorder ? OUTLINE : null;
    });
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

  draw() {
    const { width, height } = this.answer;
    const scale = Math.max(1, Math.min(3, Math.round(1200 / width)));
    this.canvas.width = width * scale;
    this.canvas.height = height * scale;
    const context = this.canvas.getContext("2d");
    context.drawImage(this.picture, 0, 0, this.canvas.width, this.canvas.height);
    context.imageSmoothingEnabled = false;
    context.drawImage(this.outlines, 0, 0, this.canvas.width, this.canvas.height);
    if (this.shownNumber > 0) {
      const own = this.paint((at) => (this.answer.numbers[at] === this.shownNumber ? SHOWN : null));
      context.drawImage(own, 0, 0, this.canvas.width, this.canvas.height);
    }
    if (this.find("[data-objects-numbers]").checked) this.drawNumbers(context, scale);
  }

  drawNumbers(context, scale) {
    if (this.answer.count > MOST_NUMBERS) return;
    context.font = `600 ${Math.round(4 * scale) + 4}px Inter, sans-serif`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.lineWidth = 3;
    context.strokeStyle = "rgb(0 0 0 / 75%)";
    context.fillStyle = "#fff";
    for (let number = 1; number <= this.answer.count; number += 1) {
      const [pixels, x, y] = this.sums.subarray(3 * number, 3 * number + 3);
      if (pixels * scale * scale < LEAST_PIXELS_FOR_NUMBER) continue;
      const place = [((x / pixels) + 0.5) * scale, ((y / pixels) + 0.5) * scale];
      context.strokeText(String(number), ...place);
      context.fillText(String(number), ...place);
    }
  }

  /** Highlight the object under the pointer, and bring its row into view after a click. */
  point(event, scrolls) {
    const box = this.canvas.getBoundingClientRect();
    const x = Math.floor(((event.clientX - box.left) / box.width) * this.answer.width);
    const y = Math.floor(((event.clientY - box.top) / box.height) * this.answer.height);
    this.show(this.answer.numbers[y * this.answer.width + x] ?? 0, scrolls);
  }

  show(number, scrolls) {
    if (number !== this.shownNumber) {
      this.shownNumber = number;
      this.draw();
    }
    for (const row of document.querySelectorAll("[data-number]")) {
      const isShown = this.isStored && number > 0 && Number(row.dataset.number) === number;
      row.classList.toggle("is-shown", isShown);
      if (isShown && scrolls) row.scrollIntoView({ block: "center" });
    }
  }

  fillTable() {
    const body = this.find("[data-objects-rows]");
    const names = new Map(this.state.classes.map((one) => [one.value, one.name]));
    const hasClasses = document.querySelectorAll("[name=background]").length > 0;
    for (const row of body ? this.state.rows : []) {
      const line = document.createElement("tr");
      line.dataset.number = String(row.number);
      line.tabIndex = 0;
      const cells = [
        shown(row.number, 0),
        ...(hasClasses ? [names.get(row.value) ?? ""] : []),
        shown(row.area, 1),
        shown(row.diameter, 2),
        shown(row.feret, 2),
        shown(row.perimeter, 2),
        shown(row.eccentricity, 3),
        shown(row.solidity, 3),
        shown(row.mean, 1),
        shown(row.sureness, 2),
      ];
      cells.forEach((text, place) => {
        const cell = document.createElement("td");
        if (!(hasClasses && place === 1)) cell.className = "num";
        cell.textContent = text;
        line.append(cell);
      });
      for (const event of ["pointerenter", "focus"]) {
        line.addEventListener(event, () => this.isStored && this.show(row.number, false));
      }
      body.append(line);
    }
  }
}

const root = document.querySelector("[data-objects-page]");
if (root) {
  const page = new ObjectsPage(root);
  page.start().catch(() => {
    const message = document.querySelector("[data-objects-message]");
    message.hidden = false;
    message.textContent = "This image could not be loaded. Reload the page to try again.";
  });
}
