// Colours of probability and entropy, as canvas pixels hold them.

import assert from "node:assert/strict";
import { test } from "node:test";
import { drawColourBar, entropyBits, entropyColours, packed, probabilityColours }
  from "../../static/segmentation/colour.js";

const channels = (colour) => [...new Uint8Array(Uint32Array.of(colour).buffer)];

test("a packed colour lies in memory as red, green, blue and alpha", () => {
  assert.deepEqual(channels(packed(1, 2, 3, 4)), [1, 2, 3, 4]);
  assert.deepEqual(channels(packed(255, 255, 255)), [255, 255, 255, 255]);
});

test("probability runs from dark blue to yellow and never gets darker", () => {
  const colours = [...probabilityColours()].map(channels);
  assert.deepEqual(colours[0], [0x00, 0x22, 0x4e, 255]);
  assert.deepEqual(colours[255], [0xfe, 0xe8, 0x38, 255]);
  const light = colours.map(([red, green, blue]) => 0.2126 * red + 0.7152 * green + 0.0722 * blue);
  for (let k = 1; k < 256; k += 1) assert.ok(light[k] >= light[k - 1] - 0.5, `entry ${k}`);
});

test("entropy is one bit at a half, none at certainty, and the same for either label", () => {
  assert.equal(entropyBits(0.5), 1);
  for (const certain of [0, 1, -0.1, 1.1]) assert.equal(entropyBits(certain), 0);
  const greys = [...entropyColours()].map(channels);
  for (let k = 0; k < 256; k += 1) assert.deepEqual(greys[k], greys[255 - k]);
  assert.deepEqual(greys[0], [0, 0, 0, 255]);
});

test("the bar has 1 at its top, or at its right when it lies", () => {
  for (const lies of [false, true]) {
    const canvas = {
      getContext: () => ({
        createImageData: (width, height) => ({ data: new Uint8ClampedArray(4 * width * height) }),
        putImageData: (pixels) => Object.assign(canvas, { pixels }),
      }),
    };
    drawColourBar(canvas, "probability", lies);
    const words = new Uint32Array(canvas.pixels.data.buffer);
    assert.equal(words[lies ? 255 : 0], probabilityColours()[255]);
    assert.equal(words[lies ? 0 : 255], probabilityColours()[0]);
  }
});
