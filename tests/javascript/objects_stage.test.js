// Numbers of objects from the server: unpacked, their middles, and a place in each.

import assert from "node:assert/strict";
import { test } from "node:test";

import { ObjectsStage, centres, unpackNumbers } from "../../static/segmentation/objects_stage.js";

function packed(header, numbers) {
  const text = JSON.stringify(header);
  const head = new TextEncoder().encode(text.padEnd(Math.ceil(text.length / 4) * 4));
  const buffer = new ArrayBuffer(4 + head.length + 4 * numbers.length);
  new DataView(buffer).setUint32(0, head.length, true);
  new Uint8Array(buffer, 4, head.length).set(head);
  new Uint32Array(buffer, 4 + head.length).set(numbers);
  return buffer;
}

const HEADER = { width: 3, height: 2, factor: 4, count: 2, most: 9 };
const NUMBERS = [0, 9, 9, 2, 0, 9];

test("numbers come with their header", () => {
  const answer = unpackNumbers(packed(HEADER, NUMBERS));
  assert.equal(answer.factor, 4);
  assert.deepEqual([...answer.numbers], NUMBERS);
});

test("middles and places of objects with gaps between the numbers", () => {
  const answer = unpackNumbers(packed(HEADER, NUMBERS));
  const { sums, firsts } = centres(answer);
  assert.deepEqual([...sums.subarray(27, 30)], [3, 5, 1]);
  assert.deepEqual([...firsts], [[9, 1], [2, 3]]);
  const stage = Object.create(ObjectsStage.prototype);
  Object.assign(stage, { answer, firsts });
  for (const number of [2, 9]) assert.equal(stage.numberAt(...stage.placeIn(number)), number);
  assert.equal(stage.numberAt(-1, 0), 0);
  assert.equal(stage.numberAt(13, 0), 0);
});
