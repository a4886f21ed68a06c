// The objects of one image: live splits, rows that highlight, and corrections by hand.

import { showToast } from "../js/toasts.js";
import { filled, gettext, ngettext } from "../js/words.js";
import { ObjectsPointers } from "./objects_pointers.js";
import { ObjectsStage, unpackNumbers } from "./objects_stage.js";
import { PictureTones } from "./picture_tones.js";
import { newKey } from "./stroke_queue.js";
import { Viewport } from "./viewport.js";

const WAIT = 200; // milliseconds after the last change before the server is asked
const POLL = 6000; // milliseconds between two looks for corrections of others
const FAILED = gettext("The objects could not be counted. Check the choices above, then try again.");

const words = (count) =>
  filled(ngettext("%(count)s object", "%(count)s objects", count), { count: count.toLocaleString("en") });
const shown = (value, digits) =>
  value === null || value === undefined
    ? ""
    : value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });

const middleOf = (points) => [0, 1].map((k) => points.reduce((sum, point) => sum + point[k], 0) / points.length);

class ObjectsPage {
  constructor(root) {
    this.root = root;
    this.given = JSON.parse(document.getElementById("objects-state").textContent);
    this.find = (selector) => document.querySelector(selector);
    this.form = this.find("[data-objects-form]");
    this.stageBox = this.find("[data-stage]");
    this.state = { tool: "select", selected: new Set(), pointed: 0, points: [], cursor: null, isDragging: false, numbers: true };
    this.viewport = new Viewport(this.given.width, this.given.height);
    this.stage = new ObjectsStage(this.find("[data-objects-canvas]"), this.viewport);
    this.pointers = new ObjectsPointers(this);
    this.asked = 0;
  }

  async start() {
    this.root.style.setProperty("--ratio", String(this.given.width / this.given.height));
    this.showState();
    const picture = await fetch(this.given.urls.picture, { credentials: "same-origin" });
    const image = await createImageBitmap(await picture.blob());
    const tones = new PictureTones(image, () => {
      this.stage.picture = tones.picture;
      this.refresh();
    });
    this.stage.picture = tones.picture;
    await this.ask("");
    this.listen();
    new ResizeObserver(() => this.resize()).observe(this.stageBox);
    this.resize();
    this.root.dataset.ready = "true";
    if (this.given.mayEdit) window.setInterval(() => this.poll(), POLL);
  }

  listen() {
    for (const input of this.form.querySelectorAll("[data-objects-option]")) {
      input.addEventListener("input", () => this.askSoon());
    }
    this.find("[data-objects-reset]").addEventListener("click", () => {
      this.form.reset();
      this.ask("");
    });
    this.find("[data-objects-numbers]").addEventListener("change", (event) => {
      this.state.numbers = event.target.checked;
      this.refresh();
    });
    for (const button of document.querySelectorAll("[data-zoom]")) {
      button.addEventListener("click", () => this.zoom(button.dataset.zoom));
    }
    this.pointers.listen();
    if (this.given.mayEdit) this.listenToTools();
  }

  listenToTools() {
    for (const button of document.querySelectorAll("[data-tool]")) {
      button.addEventListener("click", () => this.setTool(button.dataset.tool));
    }
    for (const button of document.querySelectorAll("[data-act]")) {
      if (button.dataset.act !== "number") button.addEventListener("click", () => this.act(button.dataset.act));
    }
    for (const button of document.querySelectorAll("[data-number-all]")) {
      button.addEventListener("click", () => this.send({ kind: "number all", order: button.dataset.numberAll }));
    }
    this.find("[data-number-form]").addEventListener("submit", () => {
      this.act("number", { number: Number(this.find("#object-number").value) });
    });
    this.find("[data-objects-class]")?.addEventListener("change", (event) => {
      if (this.state.selected.size > 0) this.act("class", { value: Number(event.target.value) });
    });
    this.find("[data-undo]").addEventListener("click", () => this.undo(false));
    this.find("[data-redo]").addEventListener("click", () => this.undo(true));
  }

  resize() {
    this.stage.resize();
    this.refresh();
  }

  refresh() {
    if (this.frame) return;
    this.frame = window.requestAnimationFrame(() => {
      this.frame = null;
      this.stage.draw(this.state);
      this.find("[data-zoom-value]").textContent = `${Math.round(100 * this.viewport.scale)} %`;
    });
  }

  zoom(how) {
    if (how === "fit") this.viewport.fit();
    else this.viewport.zoomStep(how === "in" ? 1 : -1);
    this.refresh();
  }

  // -- Numbers of objects ------------------------------------------------------------------------

  askSoon() {
    window.clearTimeout(this.later);
    this.later = window.setTimeout(() => {
      const query = new URLSearchParams(new FormData(this.form));
      query.delete("csrfmiddlewaretoken");
      this.ask(`?${query}`);
    }, WAIT);
  }

  /** Ask for the numbers by the choices in the query; of several answers only the last counts. */
  async ask(query) {
    this.asked += 1;
    const turn = this.asked;
    const response = await fetch(this.given.urls.split + query, { credentials: "same-origin" }).catch(() => null);
    if (turn !== this.asked) return;
    if (!response?.ok) {
      this.say(FAILED);
      return;
    }
    const answer = unpackNumbers(await response.arrayBuffer());
    if (turn !== this.asked) return;
    this.isStored = query === "";
    this.stage.take(answer);
    this.say(this.isStored ? "" : this.triedWords(answer));
    this.find("[data-objects-reset]").hidden = this.isStored;
    this.find("[data-objects-count]").textContent = words(answer.count);
    this.state.pointed = 0;
    this.dropLine();
    this.setSelected(this.isStored && this.reselect ? this.reselect() : []);
    this.reselect = null;
    this.refresh();
  }

  triedWords({ step }) {
    const sentences = [
      gettext("Shown by the choices above, not stored."),
      filled(gettext("The table has the stored %(objects)s."), { objects: words(this.given.count) }),
    ];
    if (step > 1) {
      const about = gettext("Tried at 1/%(step)s of the size: the count for all pixels may differ a little.");
      sentences.push(filled(about, { step }));
    }
    return sentences.join(" ");
  }

  say(sentence) {
    const message = this.find("[data-objects-message]");
    message.hidden = sentence === "";
    message.textContent = sentence;
  }

  // -- Selecting ---------------------------------------------------------------------------------

  point(number) {
    if (number === this.state.pointed) return;
    this.state.pointed = number;
    this.showRows(false);
    this.refresh();
  }

  select(number, adds) {
    const chosen = new Set(adds ? this.state.selected : []);
    if (number === 0) chosen.clear();
    else if (adds && chosen.has(number)) chosen.delete(number);
    else chosen.add(number);
    this.setSelected(chosen);
    this.showRows(true);
  }

  setSelected(numbers) {
    this.state.selected = new Set([...numbers].filter((number) => number > 0));
    const { size } = this.state.selected;
    const names = [...this.state.selected].sort((a, b) => a - b);
    const text = names.length > 6 ? gettext("Selected: %(names)s and more") : gettext("Selected: %(names)s");
    const few = filled(text, { names: names.slice(0, 6).join(", ") });
    this.find("[data-objects-chosen]").textContent = size > 0 ? few : "";
    for (const button of document.querySelectorAll("[data-act]")) {
      const least = { merge: 2 }[button.dataset.act] ?? 1;
      const most = button.dataset.act === "number" ? 1 : Infinity;
      button.disabled = !this.isStored || size < least || size > most;
    }
    if (size === 1 && this.find("#object-number")) this.find("#object-number").value = String(names[0]);
    const own = this.given.rows.find((row) => row.number === names[0]);
    if (own && this.find("[data-objects-class]")) this.find("[data-objects-class]").value = String(own.value);
    this.refresh();
  }

  showRows(scrolls) {
    let first = null;
    for (const row of document.querySelectorAll("[data-number]")) {
      const number = Number(row.dataset.number);
      const isChosen = this.state.selected.has(number);
      const isShown = this.isStored && (isChosen || number === this.state.pointed);
      row.classList.toggle("is-shown", isShown);
      if (isShown && isChosen) first ??= row;
    }
    const table = this.find("[data-objects-table]");
    if (scrolls && first && table) table.scrollTop = first.offsetTop - table.clientHeight / 2;
  }

  // -- Corrections -------------------------------------------------------------------------------

  setTool(tool) {
    this.dropLine();
    this.state.tool = tool;
    this.stageBox.dataset.tool = tool;
    for (const button of document.querySelectorAll("[data-tool]")) {
      if (button !== this.stageBox) button.setAttribute("aria-pressed", String(button.dataset.tool === tool));
    }
    this.refresh();
  }

  dropLine() {
    this.state.points = [];
    this.state.isDragging = false;
    this.refresh();
  }

  escape() {
    if (this.state.points.length > 0) this.dropLine();
    else {
      this.state.cursor = null;
      this.setSelected([]);
      this.showRows(false);
    }
  }

  endLine() {
    const { points, tool, selected } = this.state;
    this.dropLine();
    const needed = { split: 2, border: 3 }[tool];
    if (!needed || points.length < needed) return;
    const places = selected.size === 1 ? [...selected].map((number) => this.stage.placeIn(number)) : [];
    if (tool === "split") this.send({ kind: "split", points, places });
    else this.send({ kind: "border", points, places, value: this.chosenClass() });
  }

  chosenClass() {
    return Number(this.find("[data-objects-class]")?.value ?? this.given.classes[0].value);
  }

  /** Act on the selected objects. */
  act(kind, besides = {}) {
    const places = [...this.state.selected].map((number) => this.stage.placeIn(number));
    if (places.length > 0) this.send({ kind, places, ...besides });
  }

  async send(act) {
    if (!this.isStored) {
      this.say(gettext("Correct the stored objects: choose “Back to the stored objects” or “Use for all images” first."));
      return;
    }
    const places = act.kind === "delete" ? [] : (act.places?.slice(0, 1) ?? []);
    if (act.kind === "border" && places.length === 0) places.push(middleOf(act.points));
    await this.post(this.given.urls["objects-correct"], { id: newKey(), ...act }, places);
  }

  undo(redo, id = null) {
    const isAny = id !== null || (redo ? this.given.canRedo : this.given.canUndo);
    if (!this.given.mayEdit || !this.isStored || !isAny) return;
    this.post(this.given.urls["objects-undo"], { redo, id }, []);
  }

  /** Post an act, one after the other; then select the objects that lie at some places. */
  post(url, content, places) {
    this.last = (this.last ?? Promise.resolve()).then(async () => {
      this.root.setAttribute("aria-busy", "true");
      try {
        const response = await fetch(url, {
          method: "POST",
          credentials: "same-origin",
          redirect: "manual", // to the page where one signs in
          headers: { "X-CSRFToken": this.root.dataset.csrf, "Content-Type": "application/json" },
          body: JSON.stringify(content),
        });
        if (response.type === "opaqueredirect") throw new Error(gettext("You are signed out. Sign in and load the page again."));
        const answer = await response.json().catch(() => ({}));
        if (!response.ok) throw new Error(answer.sentence ?? gettext("The server could not do this. Load the page again."));
        this.reselect = () => places.map((place) => this.stage.numberAt(...place));
        await this.take(answer);
        if (answer.lost?.length > 0) {
          const lost = gettext("Without it, this is no longer applied.");
          showToast([lost, ...answer.lost].join(" "), { error: true });
        }
      } catch (error) {
        const isAway = error instanceof TypeError;
        showToast(isAway ? gettext("The server does not answer. Nothing was changed.") : error.message, { error: true });
      } finally {
        this.root.removeAttribute("aria-busy");
      }
    });
    return this.last;
  }

  async poll() {
    if (document.hidden || !this.isStored || this.state.points.length > 0 || this.root.hasAttribute("aria-busy")) return;
    const url = `${this.given.urls.corrections}?key=${this.given.key}`;
    const answer = await fetch(url, { credentials: "same-origin" }).then((response) => response.json()).catch(() => null);
    if (!answer?.rows || answer.key === this.given.key || this.root.hasAttribute("aria-busy")) return;
    const kept = [...this.state.selected].map((number) => this.stage.placeIn(number));
    this.reselect = () => kept.map((place) => this.stage.numberAt(...place));
    await this.take(answer);
    showToast(gettext("These objects were changed on another page. The picture shows them now."));
  }

  async take(answer) {
    Object.assign(this.given, answer);
    this.showState();
    await this.ask("");
    this.root.dataset.acts = String(Number(this.root.dataset.acts ?? 0) + 1);
  }

  // -- Table and history -------------------------------------------------------------------------

  showState() {
    this.fillTable();
    const { count, corrections } = this.given;
    const byHand = ngettext(", %(count)s correction by hand", ", %(count)s corrections by hand", corrections);
    const besides = corrections > 0 ? filled(byHand, { count: corrections }) : "";
    this.find("[data-objects-facts]").textContent = words(count);
    this.find("[data-objects-corrected]").textContent = besides;
    this.find("[data-objects-table]").hidden = this.given.count === 0;
    this.find("[data-objects-none]").hidden = this.given.count > 0;
    if (this.find("[data-undo]")) {
      this.find("[data-undo]").disabled = !this.given.canUndo;
      this.find("[data-redo]").disabled = !this.given.canRedo;
    }
    this.find("[data-history]").hidden = this.given.history.length === 0;
    this.find("[data-history-list]").replaceChildren(...this.given.history.map((one) => this.historyLine(one)));
  }

  historyLine(one) {
    const line = document.createElement("li");
    line.className = "objects__act";
    const text = document.createElement("span");
    text.className = "grow";
    const what = document.createElement("span");
    what.textContent = one.sentence;
    what.classList.toggle("is-undone", one.undone);
    const about = document.createElement("span");
    about.className = "caption muted";
    const facts = [one.who, one.when];
    if (one.source) facts.push(filled(gettext("taken over from %(source)s"), { source: one.source }));
    if (one.undone) facts.push(gettext("undone"));
    about.textContent = ` ${facts.filter(Boolean).join(", ")}`;
    text.append(what, about);
    if (one.problem && !one.undone) {
      const problem = document.createElement("span");
      problem.className = "objects__problem caption";
      problem.textContent = filled(gettext("Not applied: %(problem)s"), { problem: one.problem });
      text.append(problem);
    }
    line.append(text);
    if (this.given.mayEdit) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "button button--quiet button--row";
      button.textContent = one.undone ? gettext("Redo") : gettext("Undo");
      button.setAttribute("aria-label", `${button.textContent}: ${one.sentence}`);
      button.addEventListener("click", () => this.undo(one.undone, one.id));
      line.append(button);
    }
    return line;
  }

  fillTable() {
    const body = this.find("[data-objects-rows]");
    const names = new Map(this.given.classes.map((one) => [one.value, one.name]));
    const hasClasses = document.querySelectorAll("[name=background]").length > 0;
    const lines = this.given.rows.map((row) => {
      const line = document.createElement("tr");
      line.dataset.number = String(row.number);
      line.tabIndex = 0;
      const cells = [
        shown(row.number, 0),
        ...(hasClasses ? [names.get(row.value) ?? ""] : []),
        shown(row.area, 1),
        shown(row.diameter, 2),
        shown(row.feret, 2),
        shown(row.perimeter, 2),
        shown(row.eccentricity, 3),
        shown(row.solidity, 3),
        shown(row.mean, 1),
        shown(row.sureness, 2),
      ];
      cells.forEach((text, place) => {
        const cell = document.createElement("td");
        if (!(hasClasses && place === 1)) cell.className = "num";
        cell.textContent = text;
        line.append(cell);
      });
      for (const event of ["pointerenter", "focus"]) {
        line.addEventListener(event, () => this.isStored && this.point(row.number));
      }
      line.addEventListener("click", (event) => this.choose(row.number, event));
      line.addEventListener("keydown", (event) => event.key === "Enter" && this.choose(row.number, event));
      return line;
    });
    body.replaceChildren(...lines);
  }

  /** Select the object of a row, and bring it into sight. */
  choose(number, event) {
    if (!this.isStored) return;
    this.select(number, event.shiftKey || event.ctrlKey || event.metaKey);
    this.viewport.reveal(...this.stage.placeIn(number));
  }
}

const root = document.querySelector("[data-objects-page]");
if (root) {
  const page = new ObjectsPage(root);
  page.start().catch(() => page.say(gettext("This image could not be loaded. Reload the page to try again.")));
}
