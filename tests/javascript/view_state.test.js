// A view is kept in its address: what is written is read back, and nonsense becomes the default.

import assert from "node:assert/strict";
import { test } from "node:test";
import { LAYERS, MODES, readState, writeState } from "../../static/segmentation/view_state.js";

test("the default view has an empty address", () => {
  assert.equal(writeState(readState("")), "");
});

test("every view is read back as it was written", () => {
  for (const mode of MODES) {
    for (const selected of LAYERS) {
      for (const opacity of [0, 1, 72, 100]) {
        const state = readState("");
        Object.assign(state, { mode, selected, zoom: 2.5, centre: [10.5, 20], at: [3, 4] });
        state.swipe = mode === "swipe" ? 12.5 : state.swipe; // kept only where it is seen
        state.opacity[selected] = opacity;
        state.shown[selected] = true;
        state.shown.image = selected === "image";
        assert.deepEqual(readState(writeState(state)), state);
      }
    }
  }
});

test("a link to a view leaves out where the pointer was", () => {
  const state = readState("zoom=2&centre=1,2&at=3,4&mode=side");
  assert.equal(writeState(state, false), "mode=side");
});

test("nonsense in an address becomes the default or the nearest limit", () => {
  const state = readState(
    "mode=explode&swipe=NaN&layer=__proto__&probability=900&entropy=-5&zoom=1e99&centre=1,x&at=1,2,3",
  );
  const usual = readState("");
  assert.equal(state.mode, usual.mode);
  assert.equal(state.swipe, usual.swipe);
  assert.equal(state.selected, usual.selected);
  assert.equal(state.opacity.probability, 100);
  assert.deepEqual([state.shown.entropy, state.opacity.entropy], [true, 0]);
  assert.equal(state.zoom, 64);
  assert.deepEqual([state.centre, state.at], [null, null]);
});

test("two readers of an address share nothing", () => {
  readState("").shown.image = false;
  assert.equal(readState("").shown.image, true);
});
