// Strokes that the server has not confirmed yet, in the order in which they were painted.
//
// They lie in the browser's storage too until they are confirmed: a page that goes away, a server
// that does not answer or a session that ended loses none, the next page of painting sends them.
// Each has a key of its own from the beginning, so one that arrives twice is kept once.

import { gettext } from "../js/words.js";

const PREFIX = "stroke";
const MOST_KEPT_ALIVE = 30_000; // letters; browsers allow 64 KB in all while a page is left
const MOST_LETTERS = 1_000_000; // of one request
const MOST_AT_ONCE = 200; // strokes; the server takes no more
const PAUSES = [500, 1_000, 2_000, 5_000, 10_000]; // milliseconds before it is tried again
const FINAL = new Set([400, 404, 413, 422]); // trying again would be answered alike

/** @typedef {{ id?: string, [part: string]: any }} Stroke */

export class StrokeQueue {
  /**
   * @param {object} options
   * @param {string} options.person whose strokes they are
   * @param {string} options.url where strokes on this picture are posted
   * @param {(url: string, content: object, options: object) => Promise<Response>} options.send
   * @param {(stroke: Stroke) => void} options.onKept called when the server keeps it
   * @param {(stroke: Stroke, sentence: string) => void} options.onRefused
   * @param {(sentence: string) => void} options.onDelay called when it is sent again later
   */
  constructor({ person, url, send, onKept, onRefused, onDelay }) {
    this.url = url;
    this.send = send;
    this.onKept = onKept;
    this.onRefused = onRefused;
    this.onDelay = onDelay;
    this.prefix = `${PREFIX}:${person}:`;
    /** @type {Stroke[]} */
    this.strokes = []; // of this picture, not confirmed
    this.last = Promise.resolve();
  }

  /** Add a stroke, which gets its key here; it is sent when those before it are confirmed. */
  add(stroke) {
    stroke.id = newKey();
    this.strokes.push(stroke);
    this.remember(stroke);
    this.then(() => {});
  }

  /** Do something when all strokes added up to now are confirmed, and before any is sent again. */
  then(act) {
    this.last = this.last.then(() => this.sendStrokes()).then(act).catch(reportError);
  }

  /** What earlier pages could not have confirmed: returns the strokes of this picture. */
  takeLeft(known) {
    const left = this.left();
    const here = left.filter((one) => one.url === this.url).map(({ stroke }) => stroke);
    this.strokes.push(...here);
    const elsewhere = new Set(left.map(({ url }) => url).filter((url) => url !== this.url));
    this.last = this.last.then(() => this.sendElsewhere(left, elsewhere));
    this.then(() => {});
    return { strokes: here.filter(({ id }) => !known.has(id)), isAny: left.length > 0 };
  }

  /** Send what fits while the page is left, in one request: several might overtake each other. */
  sendLeaving() {
    const batch = firstOf(this.strokes, MOST_KEPT_ALIVE);
    if (batch.length > 0) this.send(this.url, { strokes: batch }, { keepalive: true }).catch(() => {});
  }

  // -- Sending -----------------------------------------------------------------------------------

  async sendStrokes() {
    for (let tries = 0; this.strokes.length > 0; ) {
      const batch = firstOf(this.strokes, MOST_LETTERS);
      try {
        this.settle(await this.deliver(this.url, batch), batch);
        tries = 0;
      } catch (error) {
        this.onDelay(error.message);
        await new Promise((resume) => setTimeout(resume, PAUSES[Math.min(tries, PAUSES.length - 1)]));
        tries += 1;
      }
    }
  }

  /** Send strokes on other pictures; what fails now waits for the next page. */
  async sendElsewhere(left, urls) {
    for (const url of urls) {
      const waiting = left.filter((one) => one.url === url).map(({ stroke }) => stroke);
      try {
        while (waiting.length > 0) {
          const batch = waiting.splice(0, firstOf(waiting, MOST_LETTERS).length);
          await this.deliver(url, batch);
          for (const { id } of batch) this.forget(id);
        }
      } catch (error) {
        this.onDelay(error.message);
      }
    }
  }

  /** Post strokes; returns what became of each, by its key. Throws if trying again may help. */
  async deliver(url, batch) {
    const keepalive = JSON.stringify(batch).length < MOST_KEPT_ALIVE;
    try {
      const response = await this.send(url, { strokes: batch }, { keepalive });
      const { strokes } = await response.json();
      return new Map(strokes.map((one) => [one.id, one]));
    } catch (error) {
      if (!FINAL.has(error.status)) throw error;
      return new Map(batch.map(({ id }) => [id, { sentence: error.message }]));
    }
  }

  settle(answers, batch) {
    for (const stroke of batch) {
      const { sentence, ...kept } = answers.get(stroke.id) ?? { sentence: gettext("The server does not know it.") };
      this.forget(stroke.id);
      this.strokes = this.strokes.filter((other) => other !== stroke);
      if (sentence) this.onRefused(stroke, sentence);
      else this.onKept(Object.assign(stroke, kept));
    }
  }

  // -- The browser's storage, which may be full or forbidden -------------------------------------

  remember(stroke) {
    try {
      const entry = { url: this.url, at: Date.now(), place: this.strokes.length, stroke };
      localStorage.setItem(this.prefix + stroke.id, JSON.stringify(entry));
    } catch {
      // It is sent all the same.
    }
  }

  forget(id) {
    try {
      localStorage.removeItem(this.prefix + id);
    } catch {
      // It arrives once more, and is kept once.
    }
  }

  left() {
    try {
      const keys = Object.keys(localStorage).filter((key) => key.startsWith(this.prefix));
      const found = keys.map((key) => JSON.parse(localStorage.getItem(key)));
      return found.filter(Boolean).sort((a, b) => a.at - b.at || a.place - b.place);
    } catch {
      return [];
    }
  }
}

/** The first strokes whose text is short enough together; a long one goes alone, unless kept alive. */
function firstOf(strokes, most) {
  let length = 0;
  const few = strokes.slice(0, MOST_AT_ONCE);
  const end = few.findIndex((stroke) => (length += JSON.stringify(stroke).length) > most);
  if (end < 0) return few;
  return few.slice(0, most === MOST_KEPT_ALIVE ? end : Math.max(1, end));
}

/** A random key; crypto.randomUUID is absent where the page came over plain HTTP. */
export function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const text = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return text.replace(/(.{8})(.{4})(.{4})(.{4})(.{12})/, "$1-$2-$3-$4-$5");
}
