// Uploads: one request per file, two at a time, a result per file as it is settled.
//
// The server answers with a line of JSON per file; a ZIP brings many lines while it is unpacked.
// When all are settled, #set-files hears "uploads-over" and reads itself again.

import { filled, gettext } from "../js/words.js";

const AT_ONCE = 2;
// What belongs to another picture, which has to be there first.
const ABOUT_ANOTHER =
  /\.(json|geojson|roi|xml|ilp|csv)$|rois?\w*\.zip$|mask|label|seg|scribble|truth|annot|instance|[._-]prob|[._-]gt[._-]/i;
const PICTURE = /\.(jpe?g|jpe|jfif|png|webp|avif|hei[cf]|hif|jp2|j2k|jpf|jpx|bmp|tiff?|gif|p[pgbn]m|nd2|czi|lif)$/i;
const WORDS = {
  added: gettext("Saved"),
  replaced: gettext("Replaced"),
  same: gettext("Already here"),
  "left out": gettext("Left out"),
};

class Uploads {
  constructor(form) {
    this.form = form;
    this.panel = document.querySelector("[data-uploads]");
    this.list = this.panel.querySelector("[data-uploads-list]");
    this.waiting = [];
    this.running = new Set();
    this.early = []; // refused because their pictures were not there yet
    this.counts = { taken: 0, refused: 0 };
    this.bytes = { total: 0, sent: 0 };
    this.listen();
  }

  part(name) {
    return this.panel.querySelector(`[data-uploads-${name}]`);
  }

  listen() {
    const input = this.form.querySelector("input[type=file]");
    const zone = this.form.querySelector(".drop-zone");
    input.addEventListener("change", () => {
      const { replacing } = this;
      this.replacing = null;
      this.add([...input.files], replacing);
      input.value = "";
    });
    zone.addEventListener("drop", async (event) => {
      event.preventDefault();
      zone.classList.remove("drop-zone--over");
      this.add(await droppedFiles(event.dataTransfer));
    });
    document.addEventListener("click", (event) => {
      const button = event.target.closest("[data-replace]");
      if (!button) return;
      this.replacing = button.dataset.replace;
      input.click();
    });
    this.part("stop").addEventListener("click", () => this.stop());
    this.part("close").addEventListener("click", () => this.close());
    window.addEventListener("beforeunload", (event) => {
      if (this.running.size > 0) event.preventDefault();
    });
  }

  /** Queue files; `name` gives a single file the name of the one it replaces. */
  add(files, name = null) {
    if (files.length === 0) return;
    this.panel.hidden = false;
    this.part("title").textContent = gettext("Uploading");
    this.part("close").hidden = true;
    this.part("stop").hidden = false;
    const names = namesApart(files);
    const byTurn = files.map((file, k) => ({ file, name: names[k], isAbout: ABOUT_ANOTHER.test(file.name) }));
    byTurn.sort((first, second) => first.isAbout - second.isAbout);
    const pictures = byTurn.filter(({ file, isAbout }) => !isAbout && PICTURE.test(file.name));
    const beside = pictures.length === 1 ? pictures[0].file.name : null;
    for (const one of byTurn) {
      const replaced = name && files.length === 1 ? name : one.name;
      this.enqueue({ file: one.file, isAbout: one.isAbout, name: replaced, beside, row: this.row(one.file.name) });
    }
    this.panel.scrollIntoView({ block: "nearest" });
    this.next();
  }

  enqueue(upload) {
    this.bytes.total += upload.file.size;
    this.waiting.push(upload);
  }

  /** Send again what came before its picture, once, after all the others. */
  sendEarly() {
    const again = this.early.splice(0);
    for (const { upload, rows } of again) {
      const [first, ...others] = rows;
      for (const row of others) row.remove();
      this.counts.refused -= rows.length;
      this.list.append(first);
      first.querySelector(".uploads__sentence").textContent = gettext("Waiting for its picture");
      delete first.dataset.outcome;
      this.enqueue({ ...upload, isAbout: true, isAgain: true, settled: false, last: null, row: first });
    }
    return again.length > 0;
  }

  row(name) {
    const row = document.createElement("li");
    row.className = "uploads__row";
    row.append(element("span", "uploads__picture"), element("span", "uploads__name", name));
    row.append(element("span", "uploads__sentence muted", gettext("Waiting")));
    const bar = document.createElement("progress");
    bar.className = "progress progress--thin";
    bar.max = 1;
    bar.value = 0;
    bar.setAttribute("aria-label", filled(gettext("Upload of %(name)s"), { name }));
    row.append(bar);
    this.list.append(row);
    return row;
  }

  next() {
    while (this.running.size < AT_ONCE && this.waiting.length > 0) {
      const isEarly = this.waiting[0].isAbout && [...this.running].some((upload) => !upload.isAbout);
      if (isEarly) break;
      this.send(this.waiting.shift());
    }
    this.showTotal();
    if (this.running.size > 0 || this.waiting.length > 0) return;
    if (this.counts.taken > 0 && this.sendEarly()) this.next();
    else this.finish();
  }

  send(upload) {
    const { file, name, row } = upload;
    upload.earlyRows = [];
    const request = new XMLHttpRequest();
    upload.request = request;
    upload.read = 0;
    upload.sent = 0;
    this.running.add(upload);
    request.open("POST", this.form.action);
    request.setRequestHeader("Accept", "application/x-ndjson");
    request.upload.addEventListener("progress", (event) => this.onSent(upload, event));
    request.addEventListener("progress", () => this.onLines(upload));
    request.addEventListener("loadend", () => this.onEnd(upload));
    const body = new FormData();
    const token = this.form.querySelector("[name=csrfmiddlewaretoken]").value;
    body.append("csrfmiddlewaretoken", token);
    body.append("bytes", String(file.size));
    if (name) body.append("name", name);
    if (upload.beside && upload.beside !== file.name) body.append("beside", upload.beside);
    if (upload.encoding) body.append("encoding", upload.encoding);
    body.append("file", file, file.name);
    row.querySelector(".uploads__sentence").textContent = gettext("Uploading");
    request.send(body);
  }

  onSent(upload, event) {
    const share = event.total ? event.loaded / event.total : 0;
    this.bytes.sent += share * upload.file.size - upload.sent;
    upload.sent = share * upload.file.size;
    const bar = upload.row.querySelector("progress"); // a row that is sent again has none
    if (bar) bar.value = share;
    if (share === 1) upload.row.querySelector(".uploads__sentence").textContent = gettext("Checking");
    this.showTotal();
  }

  /** Show the complete lines that have come so far. */
  onLines(upload) {
    if (upload.request.status !== 200) return;
    const text = upload.request.responseText;
    const end = text.lastIndexOf("\n");
    if (end < upload.read) return;
    const lines = text.slice(upload.read, end).split("\n");
    upload.read = end + 1;
    for (const line of lines) if (line) this.settle(upload, JSON.parse(line));
  }

  settle(upload, result) {
    let { row } = upload;
    const taken = result.outcome !== "refused";
    const isSaved = taken && result.outcome !== "left out";
    if (upload.settled) {
      row = this.row(result.name);
      this.list.insertBefore(row, upload.last.nextSibling);
    }
    upload.settled = true;
    if (taken) upload.last = row;
    else this.list.prepend(row); // what needs a look stands first
    upload.last ??= row;
    if (isSaved) this.counts.taken += 1;
    if (!taken) this.counts.refused += 1;
    if (result.early) upload.earlyRows.push(row);
    row.dataset.outcome = result.outcome;
    row.querySelector("progress")?.remove();
    row.querySelector(".uploads__name").textContent = result.name;
    const sentence = row.querySelector(".uploads__sentence");
    sentence.textContent = taken ? `${WORDS[result.outcome]}. ${result.sentence}` : result.sentence;
    if (result.encodings?.length) row.append(this.encodingChoice(upload, row, result.encodings));
    if (result.thumbnail) {
      const picture = document.createElement("img");
      picture.src = result.thumbnail;
      picture.alt = "";
      row.querySelector(".uploads__picture").append(picture);
    }
    this.showTotal();
  }

  /** Ask in which encoding the names of a ZIP are, each with what they would be; then send it again. */
  encodingChoice(upload, row, encodings) {
    const choice = element("span", "cluster uploads__choice");
    const select = document.createElement("select");
    select.className = "select select--row";
    select.setAttribute("aria-label", filled(gettext("Encoding of the names in %(name)s"), upload.file));
    for (const { key, label, sample } of encodings) {
      const option = element("option", "", `${sample} (${label})`);
      option.value = key;
      select.append(option);
    }
    const button = element("button", "button button--row", gettext("Read with these names"));
    button.type = "button";
    button.addEventListener("click", () => {
      this.counts.refused -= 1;
      choice.remove();
      delete row.dataset.outcome;
      this.enqueue({ ...upload, encoding: select.value, settled: false, last: null, row });
      this.next();
    });
    choice.append(select, button);
    return choice;
  }

  onEnd(upload) {
    this.onLines(upload);
    const { request } = upload;
    if (upload.earlyRows.length > 0 && !upload.isAgain) this.early.push({ upload, rows: upload.earlyRows });
    this.running.delete(upload);
    this.bytes.sent += upload.file.size - upload.sent;
    upload.sent = upload.file.size;
    if (request.status !== 200 || !upload.settled) {
      this.settle(upload, { name: upload.file.name, outcome: "refused", sentence: failure(request) });
    }
    this.next();
  }

  stop() {
    const left = this.waiting.splice(0);
    for (const upload of left) {
      upload.request = { status: 0 };
      this.settle(upload, {
        name: upload.file.name,
        outcome: "refused",
        sentence: gettext("Stopped before it was sent."),
      });
    }
    for (const upload of this.running) upload.request.abort();
  }

  showTotal() {
    const { taken, refused } = this.counts;
    this.part("progress").value = this.bytes.total ? this.bytes.sent / this.bytes.total : 0;
    const open = this.waiting.length + this.running.size;
    const facts = [filled(gettext("%(taken)s saved"), { taken })];
    if (refused) facts.push(filled(gettext("%(refused)s not saved"), { refused }));
    if (open) facts.push(filled(gettext("%(open)s to go"), { open }));
    this.part("note").textContent = facts.join(", ");
  }

  finish() {
    const { taken, refused } = this.counts;
    this.part("title").textContent = refused ? gettext("Uploaded, with problems") : gettext("Uploaded");
    const focusWouldBeLost = document.activeElement === this.part("stop");
    this.part("close").hidden = false;
    if (focusWouldBeLost) this.part("close").focus();
    this.part("stop").hidden = true;
    this.part("live").textContent = filled(
      gettext("Upload over: %(taken)s saved, %(refused)s not saved."),
      { taken, refused },
    );
    if (taken === 0) return;
    this.form.querySelector(".drop-zone").classList.add("drop-zone--slim");
    document.querySelector("#set-files").dispatchEvent(new Event("uploads-over"));
  }

  close() {
    this.early = [];
    this.list.replaceChildren();
    this.counts = { taken: 0, refused: 0 };
    this.bytes = { total: 0, sent: 0 };
    this.panel.hidden = true;
    this.form.querySelector("input[type=file]").focus();
  }
}

function failure(request) {
  try {
    return JSON.parse(request.responseText).sentence;
  } catch {
    if (request.status === 413) return gettext("This file is too large. Nothing of it was saved.");
    if (request.status === 403) return gettext("You may not upload here, or you were signed out. Sign in again.");
    return gettext("The upload stopped before its end. Nothing of this file was saved.");
  }
}

function element(tag, className, text = "") {
  const made = document.createElement(tag);
  made.className = className;
  made.textContent = text;
  return made;
}

/** Files of a drop, those inside dropped folders as well. */
async function droppedFiles(transfer) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (entries.length === 0) return [...transfer.files];
  const found = await Promise.all(entries.map(filesIn));
  return found.flat();
}

/** Names of files that were dropped together: those of one name are told apart by their folders. */
function namesApart(files) {
  const counts = new Map();
  for (const { name } of files) counts.set(name, (counts.get(name) ?? 0) + 1);
  return files.map((file) => {
    const folders = (PATHS.get(file) || file.webkitRelativePath || "").split("/").filter(Boolean).slice(0, -1);
    return counts.get(file.name) > 1 && folders.length > 0 ? [...folders, file.name].join("_") : null;
  });
}

/** Where files of a dropped folder lie in it. */
const PATHS = new WeakMap();

async function filesIn(entry) {
  if (entry.isFile) {
    const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
    PATHS.set(file, entry.fullPath);
    return [file];
  }
  const reader = entry.createReader();
  const inside = [];
  for (;;) {
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (some.length === 0) break;
    inside.push(...some);
  }
  return (await Promise.all(inside.map(filesIn))).flat();
}

const form = document.querySelector("[data-upload]");
if (form) new Uploads(form);
