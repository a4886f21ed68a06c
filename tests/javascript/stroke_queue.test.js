// Strokes reach the server in their order, once, whatever the network and the browser do.

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { webcrypto } from "node:crypto";
import { StrokeQueue } from "../../static/segmentation/stroke_queue.js";

globalThis.crypto ??= webcrypto;
globalThis.reportError ??= (error) => {
  throw error;
};

/** A storage as browsers have it: its keys are the only enumerable properties. */
function makeStorage(mostLetters = Infinity) {
  const storage = Object.create({
    setItem(key, text) {
      if (text.length > mostLetters) throw new Error("QuotaExceededError");
      this[key] = String(text);
    },
    getItem(key) {
      return Object.hasOwn(this, key) ? this[key] : null;
    },
    removeItem(key) {
      delete this[key];
    },
  });
  return storage;
}

class HttpError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** A server that keeps each stroke once; `failures` are thrown first, `late` after it kept them. */
function makeServer({ failures = [], late = [] } = {}) {
  const server = { kept: [], requests: [] };
  server.send = async (url, { strokes }, options) => {
    const sent = JSON.parse(JSON.stringify(strokes));
    server.requests.push({ url, ids: sent.map(({ id }) => id), options });
    if (failures.length > 0) throw failures.shift();
    for (const stroke of sent) {
      if (!server.kept.some(({ id }) => id === stroke.id)) server.kept.push(stroke);
    }
    if (late.length > 0) throw late.shift();
    return { json: async () => ({ strokes: sent.map(({ id }, k) => ({ id, number: k })) }) };
  };
  return server;
}

function makeQueue(server, more = {}) {
  const seen = { kept: [], refused: [], delays: [] };
  const queue = new StrokeQueue({
    person: "7",
    url: "/images/a/strokes/",
    send: server.send,
    onKept: (stroke) => seen.kept.push(stroke.name),
    onRefused: (stroke, sentence) => seen.refused.push([stroke.name, sentence]),
    onDelay: (sentence) => seen.delays.push(sentence),
    ...more,
  });
  return { queue, seen };
}

const settled = (queue) => new Promise((resume) => queue.then(resume));
const setTimer = globalThis.setTimeout;

beforeEach(() => {
  globalThis.localStorage = makeStorage();
  globalThis.setTimeout = (act) => setTimer(act, 0); // pauses of seconds take none
});

test("strokes arrive in the order in which they were painted", async () => {
  const server = makeServer();
  const { queue, seen } = makeQueue(server);
  for (let k = 0; k < 450; k += 1) queue.add({ name: k });
  await settled(queue);
  assert.deepEqual(server.kept.map(({ name }) => name), [...Array(450).keys()]);
  assert.deepEqual(seen.kept, [...Array(450).keys()]);
  assert.ok(server.requests.every(({ ids }) => ids.length <= 200));
  assert.deepEqual(Object.keys(localStorage), []);
});

test("a stroke whose answer was lost is sent again and kept once", async () => {
  const server = makeServer({ late: [new TypeError("Failed to fetch"), new HttpError(502, "Away")] });
  const { queue, seen } = makeQueue(server);
  queue.add({ name: "a" });
  queue.add({ name: "b" });
  await settled(queue);
  assert.deepEqual(server.kept.map(({ name }) => name), ["a", "b"]);
  assert.deepEqual(seen.kept, ["a", "b"]);
  assert.deepEqual(seen.delays, ["Failed to fetch", "Away"]);
});

test("a refused stroke is reported and does not stop those behind it", async () => {
  const server = makeServer({ failures: [new HttpError(422, "This class was removed.")] });
  const { queue, seen } = makeQueue(server);
  queue.add({ name: "a" });
  await settled(queue);
  queue.add({ name: "b" });
  await settled(queue);
  assert.deepEqual(seen.refused, [["a", "This class was removed."]]);
  assert.deepEqual(seen.kept, ["b"]);
  assert.deepEqual(Object.keys(localStorage), []);
});

test("an ended session keeps the strokes until the person is back", async () => {
  const away = Array.from({ length: 3 }, () => new HttpError(403, "Sign in again."));
  const server = makeServer({ failures: away });
  const { queue, seen } = makeQueue(server);
  queue.add({ name: "a" });
  await settled(queue);
  assert.deepEqual(seen.delays, Array(3).fill("Sign in again."));
  assert.deepEqual(seen.kept, ["a"]);
});

test("the next page sends what the last one could not, each picture to its address", async () => {
  const silent = { send: () => new Promise(() => {}) };
  const first = makeQueue(silent);
  first.queue.add({ name: "a" });
  first.queue.add({ name: "b" });
  const other = makeQueue(silent, { url: "/images/b/strokes/" });
  other.queue.add({ name: "c" });
  const stranger = makeQueue(silent, { person: "8" });
  stranger.queue.add({ name: "stroke of another person" });

  const server = makeServer();
  const { queue, seen } = makeQueue(server);
  const known = new Set([first.queue.strokes[0].id]); // the server has shown it already
  const { strokes, isAny } = queue.takeLeft(known);
  assert.deepEqual(strokes.map(({ name }) => name), ["b"]);
  assert.ok(isAny);
  await settled(queue);
  assert.deepEqual(seen.kept, ["a", "b"]);
  const urls = server.requests.map(({ url }) => url);
  assert.deepEqual(new Set(urls), new Set(["/images/a/strokes/", "/images/b/strokes/"]));
  assert.deepEqual(server.kept.map(({ name }) => name).sort(), ["a", "b", "c"]);
  assert.deepEqual(Object.keys(localStorage).map((key) => key.startsWith("stroke:8:")), [true]);
});

test("a full or forbidden storage stops nothing", async () => {
  globalThis.localStorage = makeStorage(10);
  const server = makeServer();
  const { queue, seen } = makeQueue(server);
  queue.add({ name: "a" });
  await settled(queue);
  Object.defineProperty(globalThis, "localStorage", {
    configurable: true,
    get() {
      throw new Error("SecurityError");
    },
  });
  try {
    queue.add({ name: "b" });
    assert.deepEqual(queue.takeLeft(new Set()), { strokes: [], isAny: false });
    await settled(queue);
  } finally {
    Object.defineProperty(globalThis, "localStorage", { writable: true, value: makeStorage() });
  }
  assert.deepEqual(seen.kept, ["a", "b"]);
});

test("a page that is left sends what fits into one request that outlives it", () => {
  const server = makeServer();
  const { queue } = makeQueue(server);
  for (let k = 0; k < 10; k += 1) queue.strokes.push({ id: String(k), points: Array(2_000).fill(1) });
  queue.sendLeaving();
  const [{ ids, options }] = server.requests;
  assert.deepEqual(options, { keepalive: true });
  assert.ok(ids.length > 0 && ids.length < 10);
  queue.strokes = [{ id: "long", points: Array(20_000).fill(1) }];
  queue.sendLeaving();
  assert.equal(server.requests.length, 1); // browsers refuse more than 64 KB: the storage keeps it
});

test("one stroke longer than a request may be goes alone", async () => {
  const server = makeServer();
  const { queue, seen } = makeQueue(server);
  queue.add({ name: "long", points: Array(600_000).fill(1) });
  queue.add({ name: "short" });
  await settled(queue);
  assert.deepEqual(seen.kept, ["long", "short"]);
  assert.deepEqual(server.requests.map(({ ids }) => ids.length), [1, 1]);
});
