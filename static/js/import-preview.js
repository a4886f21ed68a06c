/* The import preview: mark columns (with ranges), find one, move answers with Alt and the arrows. */
import { filled, gettext } from "./words.js";

const body = () => document.getElementById("draft");

function shownMarks() {
  return [...document.querySelectorAll("[data-mark]")].filter((box) => !box.closest("tr").hidden);
}

function showCount() {
  const count = document.querySelectorAll("[data-mark]:checked").length;
  const label = document.querySelector("[data-marked-count]");
  if (label) label.textContent = filled(gettext("%(count)s marked"), { count });
  document.getElementById("bulk")?.classList.toggle("bulk-bar--plain", count === 0);
}

let lastMark = null;
function onClick(event) {
  const box = event.target.closest?.("[data-mark]");
  if (box) {
    const shown = shownMarks();
    if (event.shiftKey && lastMark && shown.includes(lastMark)) {
      const [from, to] = [shown.indexOf(lastMark), shown.indexOf(box)].sort((a, b) => a - b);
      shown.slice(from, to + 1).forEach((other) => { other.checked = box.checked; });
    }
    lastMark = box;
    showCount();
  }
  const all = event.target.closest?.("[data-check-all-columns]");
  if (all) {
    shownMarks().forEach((other) => { other.checked = all.checked; });
    showCount();
  }
}

function onFilter(event) {
  if (event.target.id !== "column-filter") return;
  const wanted = event.target.value.trim().toLowerCase();
  for (const row of document.querySelectorAll("tr[data-name]")) {
    row.hidden = wanted !== "" && !row.dataset.name.includes(wanted);
  }
}

let focusLevel = null;
function onKey(event) {
  const level = event.target.closest?.(".level");
  if (!level || !event.altKey || !["ArrowUp", "ArrowDown"].includes(event.key)) return;
  event.preventDefault();
  const step = event.key === "ArrowUp" ? "up" : "down";
  const button = level.querySelector(`[data-move="${step}"]`);
  if (!button || button.disabled) return;
  const [, column, position] = level.id.split("-").map(Number);
  focusLevel = `level-${column}-${position + (step === "up" ? -1 : 1)}`;
  button.click();
}

document.addEventListener("click", onClick);
document.addEventListener("input", onFilter);
document.addEventListener("keydown", onKey);
let scrollTop = 0;
document.body.addEventListener("htmx:beforeSwap", () => { scrollTop = window.scrollY; });
document.body.addEventListener("htmx:afterSettle", () => {
  showCount();
  window.scrollTo(0, scrollTop);
  if (focusLevel) document.getElementById(focusLevel)?.focus({ preventScroll: true });
  focusLevel = null;
  const opened = body()?.querySelector(".column-editor");
  const box = opened?.getBoundingClientRect();
  if (box && (box.top > window.innerHeight - 120 || box.bottom < 60)) opened.scrollIntoView({ block: "center" });
});
