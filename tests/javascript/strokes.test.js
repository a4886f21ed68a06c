// Filling what is joined and looks alike; tracing strokes into a context.

import assert from "node:assert/strict";
import { test } from "node:test";
import { drawStroke, floodRuns } from "../../static/segmentation/strokes.js";

/** A grey picture of rows of digits, ten levels apart. */
function makePixels(rows) {
  const [height, width] = [rows.length, rows[0].length];
  const data = new Uint8ClampedArray(4 * width * height);
  rows.join("").split("").forEach((digit, at) => {
    data.set([10 * digit, 10 * digit, 10 * digit, 255], 4 * at);
  });
  return { width, height, data };
}

/** The filled places of runs, as "row,column" of the small copy. */
function placesOf(runs, factor = 1) {
  const places = new Set();
  for (let k = 0; k < runs.length; k += 3) {
    for (let column = runs[k + 1]; column <= runs[k + 2]; column += factor) {
      const place = `${runs[k] / factor},${column / factor}`;
      assert.ok(!places.has(place), `${place} twice`);
      places.add(place);
    }
  }
  return places;
}

/** The same by a search over single pixels, to compare with. */
function joined(rows, row, column, tolerance) {
  const wanted = 10 * rows[row][column];
  const found = new Set();
  const stack = [[row, column]];
  while (stack.length > 0) {
    const [r, c] = stack.pop();
    const level = rows[r]?.[c];
    if (level === undefined || found.has(`${r},${c}`)) continue;
    if (Math.abs(10 * level - wanted) > tolerance) continue;
    found.add(`${r},${c}`);
    stack.push([r + 1, c], [r - 1, c], [r, c + 1], [r, c - 1]);
  }
  return found;
}

test("a fill takes what is joined, round corners and holes, and nothing across a diagonal", () => {
  const rows = ["0000", "0990", "0900", "9000"];
  for (let row = 0; row < 4; row += 1) {
    for (let column = 0; column < 4; column += 1) {
      const runs = floodRuns(makePixels(rows), column, row, 5, 1);
      assert.deepEqual(placesOf(runs), joined(rows, row, column, 5));
    }
  }
});

test("a fill of any picture is what a search over single pixels finds", () => {
  let seed = 1;
  const draw = (most) => (seed = (seed * 16807) % 2147483647) % most;
  for (let k = 0; k < 200; k += 1) {
    const [height, width] = [1 + draw(9), 1 + draw(9)];
    const rows = Array.from({ length: height }, () =>
      Array.from({ length: width }, () => draw(4)).join(""),
    );
    const [row, column, tolerance] = [draw(height), draw(width), 10 * draw(3)];
    const runs = floodRuns(makePixels(rows), 3 * column + 1, 3 * row + 2, tolerance, 3);
    assert.deepEqual(placesOf(runs, 3), joined(rows, row, column, tolerance));
  }
});

test("outside the picture nothing is filled", () => {
  const pixels = makePixels(["00", "00"]);
  for (const [x, y] of [[-1, 0], [0, -1], [2, 0], [0, 2]]) {
    assert.deepEqual(floodRuns(pixels, x, y, 5, 1), []);
  }
});

/** A canvas context that records its calls. */
function makeContext() {
  const calls = [];
  const note = (name) => (...values) => calls.push([name, ...values]);
  return {
    calls,
    fillRect: note("fillRect"),
    beginPath: note("beginPath"),
    moveTo: note("moveTo"),
    lineTo: note("lineTo"),
    closePath: note("closePath"),
    fill: note("fill"),
    stroke() {
      calls.push(["stroke", this.lineWidth]);
    },
  };
}

test("a filled run covers its last pixel", () => {
  const context = makeContext();
  drawStroke(context, { tool: "fill", points: [4, 2, 6], step: 2 }, "red");
  assert.deepEqual(context.calls, [["fillRect", 2, 4, 6, 2]]);
});

test("a single dot is drawn, as wide as its pen", () => {
  const context = makeContext();
  drawStroke(context, { tool: "brush", points: [5, 5], radii: [], radius: 3 }, "red", 1);
  assert.deepEqual(context.calls.at(-1), ["stroke", 8]);
});

test("pressure makes each piece as wide as its two ends on average", () => {
  const context = makeContext();
  const stroke = { tool: "brush", points: [0, 0, 5, 0, 9, 0], radii: [1, 2, 4], radius: 9 };
  drawStroke(context, stroke, "red");
  const widths = context.calls.filter(([name]) => name === "stroke").map(([, width]) => width);
  assert.deepEqual(widths, [3, 6]);
});

test("a polygon is filled, and its border widened on both sides", () => {
  const context = makeContext();
  drawStroke(context, { tool: "polygon", points: [0, 0, 9, 0, 9, 9] }, "red", 2);
  assert.deepEqual(context.calls.slice(-3), [["closePath"], ["fill"], ["stroke", 4]]);
});
