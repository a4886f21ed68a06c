// Tones of the picture: tables, channels, and what counts as unchanged.

import assert from "node:assert/strict";
import { test } from "node:test";

import { changeTones, isNeutral, toneTable } from "../../static/segmentation/picture_tones.js";

const NEUTRAL = { brightness: 0, contrast: 1, gamma: 1, red: true, green: true, blue: true };

test("neutral tones change nothing", () => {
  assert.deepEqual([...toneTable(NEUTRAL)], Array.from({ length: 256 }, (_, value) => value));
  assert.ok(isNeutral(NEUTRAL));
  assert.ok(!isNeutral({ ...NEUTRAL, blue: false }));
});

test("contrast turns about the middle, gamma lifts the dark, values stay in range", () => {
  const steep = toneTable({ ...NEUTRAL, contrast: 2 });
  assert.equal(steep[0], 0);
  assert.equal(steep[255], 255);
  assert.ok(steep[64] < 64 && steep[192] > 192);
  const lifted = toneTable({ ...NEUTRAL, gamma: 2 });
  assert.equal(lifted[0], 0);
  assert.ok(lifted[64] > 120);
  assert.equal(toneTable({ ...NEUTRAL, brightness: 0.5 })[255], 255);
});

test("channels vanish, and a single one is grey", () => {
  const pixel = new Uint8ClampedArray([10, 20, 30, 255]);
  changeTones(pixel, { ...NEUTRAL, green: false });
  assert.deepEqual([...pixel], [10, 0, 30, 255]);
  const grey = new Uint8ClampedArray([10, 20, 30, 255]);
  changeTones(grey, { ...NEUTRAL, red: false, blue: false });
  assert.deepEqual([...grey], [20, 20, 20, 255]);
});
