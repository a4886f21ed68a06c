// Uploads: one request per file, two at a time, a result per file as it is settled.
//
// The server answers with a line of JSON per file; a ZIP brings many lines while it is unpacked.
// When all are settled, #set-files hears "uploads-over" and reads itself again.

const AT_ONCE = 2;
// What belongs to another picture, which has to be there first.
const ABOUT_ANOTHER = /\.(json|geojson|roi)$|mask|label|seg|scribble|truth|annot|instance|[._-]prob|[._-]gt[._-]/i;
const WORDS = { added: "Saved", replaced: "Replaced", same: "Already here", refused: "Not saved" };

class Uploads {
  constructor(form) {
    this.form = form;
    this.panel = document.querySelector("[data-uploads]");
    this.list = this.panel.querySelector("[data-uploads-list]");
    this.waiting = [];
    this.running = new Set();
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
    this.part("title").textContent = "Uploading";
    this.part("close").hidden = true;
    this.part("stop").hidden = false;
    const byTurn = files.map((file) => ({ file, isAbout: ABOUT_ANOTHER.test(file.name) }));
    byTurn.sort((first, second) => first.isAbout - second.isAbout);
    for (const { file, isAbout } of byTurn) {
      this.bytes.total += file.size;
      this.waiting.push({ file, isAbout, name: name && files.length === 1 ? name : null, row: this.row(file.name) });
    }
    this.panel.scrollIntoView({ block: "nearest" });
    this.next();
  }

  row(name) {
    const row = document.createElement("li");
    row.className = "uploads__row";
    row.append(element("span", "uploads__picture"), element("span", "uploads__name", name));
    row.append(element("span", "uploads__sentence muted", "Waiting"));
    const bar = document.createElement("progress");
    bar.className = "progress progress--thin";
    bar.max = 1;
    bar.value = 0;
    bar.setAttribute("aria-label", `Upload of ${name}`);
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
    if (this.running.size === 0 && this.waiting.length === 0) this.finish();
  }

  send(upload) {
    const { file, name, row } = upload;
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
    body.append("file", file, file.name);
    row.querySelector(".uploads__sentence").textContent = "Uploading";
    request.send(body);
  }

  onSent(upload, event) {
    const share = event.total ? event.loaded / event.total : 0;
    this.bytes.sent += share * upload.file.size - upload.sent;
    upload.sent = share * upload.file.size;
    upload.row.querySelector("progress").value = share;
    if (share === 1) upload.row.querySelector(".uploads__sentence").textContent = "Checking";
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
    if (upload.settled) {
      row = this.row(result.name);
      this.list.insertBefore(row, upload.last.nextSibling);
    }
    upload.settled = true;
    if (taken) upload.last = row;
    else this.list.prepend(row); // what needs a look stands first
    upload.last ??= row;
    this.counts[taken ? "taken" : "refused"] += 1;
    row.dataset.outcome = result.outcome;
    row.querySelector("progress")?.remove();
    row.querySelector(".uploads__name").textContent = result.name;
    const sentence = row.querySelector(".uploads__sentence");
    sentence.textContent = taken ? `${WORDS[result.outcome]}. ${result.sentence}` : result.sentence;
    if (result.thumbnail) {
      const picture = document.createElement("img");
      picture.src = result.thumbnail;
      picture.alt = "";
      row.querySelector(".uploads__picture").append(picture);
    }
    this.showTotal();
  }

  onEnd(upload) {
    this.onLines(upload);
    const { request } = upload;
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
        sentence: "Stopped before it was sent.",
      });
    }
    for (const upload of this.running) upload.request.abort();
  }

  showTotal() {
    const { taken, refused } = this.counts;
    this.part("progress").value = this.bytes.total ? this.bytes.sent / this.bytes.total : 0;
    const open = this.waiting.length + this.running.size;
    this.part("note").textContent = `${taken} saved${refused ? `, ${refused} not saved` : ""}${
      open ? `, ${open} to go` : ""
    }`;
  }

  finish() {
    const { taken, refused } = this.counts;
    this.part("title").textContent = refused ? "Uploaded, with problems" : "Uploaded";
    const focusWouldBeLost = document.activeElement === this.part("stop");
    this.part("close").hidden = false;
    if (focusWouldBeLost) this.part("close").focus();
    this.part("stop").hidden = true;
    this.part("live").textContent = `Upload over: ${taken} saved, ${refused} not saved.`;
    if (taken === 0) return;
    this.form.querySelector(".drop-zone").classList.add("drop-zone--slim");
    document.querySelector("#set-files").dispatchEvent(new Event("uploads-over"));
  }

  close() {
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
    if (request.status === 413) return "This file is too large. Nothing of it was saved.";
    if (request.status === 403) return "You may not upload here, or you were signed out. Sign in again.";
    return "The upload stopped before its end. Nothing of this file was saved.";
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

async function filesIn(entry) {
  if (entry.isFile) return [await new Promise((resolve, reject) => entry.file(resolve, reject))];
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
