// One zoom and one centre place the picture: positions on the screen and in the picture agree.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Viewport } from "../../static/segmentation/viewport.js";

function makeViewport(width = 400, height = 300, pane = [824, 624]) {
  const viewport = new Viewport(width, height);
  viewport.setPane(...pane);
  return viewport;
}

function isNear(found, wanted) {
  found.forEach((value, k) => assert.ok(Math.abs(value - wanted[k]) < 1e-9, `${found} ${wanted}`));
}

test("a fitted picture fills its pane but for the margin", () => {
  const viewport = makeViewport();
  assert.equal(viewport.scale, 2);
  assert.ok(viewport.isFitted);
  isNear(viewport.toPane(0, 0), [12, 12]);
  isNear(viewport.toPane(400, 300), [812, 612]);
});

test("places on the screen and in the picture are each other's inverse", () => {
  const viewport = makeViewport();
  for (const zoom of [null, 0.5, 1, 7.3, 40]) {
    viewport.zoom = zoom;
    for (const place of [[0, 0], [13.7, 299], [400, 300]]) {
      isNear(viewport.toLayer(...viewport.toPane(...place)), place);
    }
  }
});

test("what lies under the pointer stays there while zooming", () => {
  const viewport = makeViewport();
  const place = viewport.toLayer(500, 200);
  for (let k = 0; k < 5; k += 1) {
    viewport.zoomAt(1.25, 500, 200);
    isNear(viewport.toPane(...place), [500, 200]);
  }
});

test("zoom and position stay within limits, however often one turns the wheel", () => {
  const viewport = makeViewport();
  for (let k = 0; k < 60; k += 1) viewport.zoomStep(1);
  assert.equal(viewport.scale, 40);
  for (let k = 0; k < 90; k += 1) viewport.zoomStep(-1);
  assert.ok(viewport.scale >= 0.02);
  viewport.pan(1e9, -1e9);
  assert.deepEqual(viewport.centre, [0, 300]);
  viewport.fit();
  assert.equal(viewport.scale, 2);
});

test("a pixel is found inside the picture only", () => {
  const viewport = makeViewport();
  assert.deepEqual(viewport.pixelAt(...viewport.toPane(0.5, 0.5)), [0, 0]);
  assert.deepEqual(viewport.pixelAt(...viewport.toPane(399.5, 299.5)), [399, 299]);
  assert.equal(viewport.pixelAt(...viewport.toPane(400.5, 1)), null);
  assert.equal(viewport.pixelAt(...viewport.toPane(-0.5, 1)), null);
});

test("a place that is shown or revealed is in sight", () => {
  const viewport = makeViewport(4000, 3000);
  for (const place of [[0, 0], [4000, 3000], [2000, 10]]) {
    viewport.show(...place, 4);
    const [x, y] = viewport.toPane(...place);
    assert.ok(x >= 0 && x <= 824 && y >= 0 && y <= 624);
    viewport.reveal(...place);
    isNear(viewport.toPane(...place), viewport.toPane(...place));
  }
});

test("a pane of no size does not break it", () => {
  const viewport = makeViewport(400, 300, [0, 0]);
  assert.ok(viewport.scale > 0);
  assert.ok(viewport.toLayer(0, 0).every(Number.isFinite));
});

test("two fingers that part keep the picture between them", () => {
  const viewport = new Viewport(1000, 800);
  viewport.setPane(500, 400);
  viewport.zoom = 1;
  const before = viewport.toLayer(200, 100);
  viewport.pinch([150, 100], [100, 100], [250, 100], [0, 0]);
  assert.ok(Math.abs(viewport.scale - 1.5) < 1e-9);
  const after = viewport.toLayer(175, 100);
  assert.ok(Math.abs(after[0] - before[0]) < 20 && Math.abs(after[1] - before[1]) < 1);
});
