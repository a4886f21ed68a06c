/* The page of pairs: the drawer, marks, and where the focus goes after a decision. */
import { isFollowing } from "./rows.js";
import { filled, ngettext } from "./words.js";

const FLOWING = ["accept", "lock", "reject", "never"];
const drawer = () => document.getElementById("drawer");

function addressWith(changes) {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value) query.set(name, value);
    else query.delete(name);
  }
  const text = query.toString();
  return location.pathname + (text ? `?${text}` : "");
}

function selectRow(id) {
  for (const row of document.querySelectorAll("tr.pair")) {
    row.toggleAttribute("data-selected", row.id === `pair-${id}`);
  }
}

function closeDrawer() {
  const open = drawer().querySelector("[data-drawer]")?.dataset.drawer;
  drawer().replaceChildren();
  history.replaceState(null, "", addressWith({ pair: "" }));
  document.querySelector(`#pair-${open} [data-open]`)?.focus({ preventScroll: true });
}

/* With a card open, a decision goes on with the card of the row that follows: the answer holds it. */
function onConfig(event) {
  const { parameters, verb } = event.detail;
  const open = drawer().querySelector("[data-drawer]")?.dataset.drawer;
  if (verb !== "post" || !open || !FLOWING.includes(parameters.decision)) return;
  const decided = String(parameters.pair ?? "").split(":")[0];
  const rows = [...document.querySelectorAll("tr.pair")];
  const index = rows.findIndex((row) => row.id === `pair-${decided}`);
  if (index < 0) return;
  const next = rows[index + 1] ?? rows[index - 1];
  const query = new URLSearchParams(location.search);
  if (next) query.set("pair", next.id.slice(5));
  else query.delete("pair");
  parameters.back = query.toString();
}

/* A decision takes the row out of its tab: remember its place, and go on with the row that follows. */
let place = -1;
function onBeforeRequest(event) {
  const row = event.target.closest?.("tr.pair");
  const rows = [...document.querySelectorAll("tr.pair")];
  const open = drawer().querySelector("[data-drawer]")?.dataset.drawer;
  const inDrawer = drawer().contains(event.target);
  if (event.detail.requestConfig.verb !== "post") place = -1;
  else if (row) place = rows.indexOf(row);
  else if (inDrawer) place = rows.findIndex((other) => other.id === `pair-${open}`);
  for (const field of event.detail.elt?.querySelectorAll?.("input[data-back]") ?? []) {
    field.value = location.search.slice(1);
  }
}

function onSettle(event) {
  if (event.target.id === "drawer" || drawer().contains(event.target)) {
    const open = drawer().querySelector("[data-drawer]")?.dataset.drawer;
    if (open) {
      selectRow(open);
      if (!document.querySelector("dialog[open]") && !isFollowing()) drawer().querySelector("[data-drawer-title]").focus({ preventScroll: true });
    }
    return;
  }
  if (event.target.id !== "pairs") return;
  document.getElementById("swap-dialog")?.close();
  showMarks();
  showTab();
  if (place < 0) return;
  const rows = [...document.querySelectorAll("tr.pair")];
  const next = rows[Math.min(place, rows.length - 1)];
  place = -1;
  if (!next) return;
  const open = drawer().querySelector("[data-drawer]")?.dataset.drawer;
  if (open) history.replaceState(null, "", addressWith({ pair: open }));
  const current = document.getElementById(`pair-${open}`) ?? next;
  selectRow(current.id.slice(5));
  current.focus({ preventScroll: true });
  current.scrollIntoView({ block: "nearest" });
}

/* On a phone the tabs are wider than the screen: bring the current one into sight. */
function showTab() {
  const tabs = document.querySelector(".pair-panel .tabs");
  const current = tabs?.querySelector("[aria-current]");
  if (current) tabs.scrollLeft += current.getBoundingClientRect().left - tabs.getBoundingClientRect().left;
}

function showMarks() {
  const count = document.querySelectorAll("[data-check]:checked").length;
  const label = document.querySelector("[data-bulk-count]");
  if (label) label.textContent = filled(ngettext("%(count)s pair marked", "%(count)s pairs marked", count), { count });
}

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-drawer-close]")) {
    event.preventDefault();
    closeDrawer();
  }
});
document.addEventListener("change", (event) => {
  if (event.target.matches("[data-check], [data-check-all]")) showMarks();
});
document.body.addEventListener("htmx:configRequest", onConfig);
document.body.addEventListener("htmx:beforeRequest", onBeforeRequest);
document.body.addEventListener("htmx:afterSettle", onSettle);
window.addEventListener("popstate", () => location.reload());
showTab();
