// Sentences of scripts: English without a catalogue, and the language of the page with one.

import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { filled, gettext, ngettext } from "../../static/js/words.js";

afterEach(() => {
  delete globalThis.django;
});

test("without a catalogue the texts are English, with their plural", () => {
  assert.equal(gettext("Uploading"), "Uploading");
  const words = [0, 1, 2].map((count) => filled(ngettext("%(count)s object", "%(count)s objects", count), { count }));
  assert.deepEqual(words, ["0 objects", "1 object", "2 objects"]);
});

test("a catalogue gives the words and the plural of its language", () => {
  globalThis.django = {
    gettext: (text) => ({ Uploading: "Uploaden" })[text] ?? text,
    ngettext: (one, many, count) => (count < 2 ? "%(count)s objet" : "%(count)s objets"),
  };
  assert.equal(gettext("Uploading"), "Uploaden");
  assert.equal(filled(ngettext("%(count)s object", "%(count)s objects", 0), { count: 0 }), "0 objet");
});

test("a name without a value stays, and values are not read as names", () => {
  assert.equal(filled("%(one)s of %(all)s", { one: "%(all)s" }), "%(all)s of %(all)s");
});
