/* The page of a placement: arrows move over the grid of rooms, the drawer follows the current room,
 * and after accepting, locking or keeping a room the drawer goes on with the one that follows. */
import { currentRow, isFollowing } from "./rows.js";

const FLOWING = ["accept", "lock", "keep"];
const cards = () => [...document.querySelectorAll("[data-room]")].filter((row) => row.offsetParent !== null);
const drawer = () => document.getElementById("drawer");
const openRoom = () => drawer()?.querySelector("[data-drawer]")?.dataset.drawer;

function moveOver(event) {
  const card = document.activeElement?.closest?.(".room-card");
  if (!card || !["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"].includes(event.key)) return;
  event.preventDefault();
  const all = cards();
  const index = all.indexOf(card);
  const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns(all, card), ArrowDown: columns(all, card) };
  const next = all[Math.min(Math.max(index + step[event.key], 0), all.length - 1)];
  next.focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
}

/** How many cards stand beside each other where this one does. */
function columns(all, card) {
  const top = card.getBoundingClientRect().top;
  const beside = all.filter((other) => Math.abs(other.getBoundingClientRect().top - top) < 4);
  return Math.max(beside.length, 1);
}

function addressWith(room) {
  const query = new URLSearchParams(location.search);
  query.delete("pair");
  if (room) query.set("room", room);
  else query.delete("room");
  const text = query.toString();
  return location.pathname + (text ? `?${text}` : "");
}

function select(room) {
  for (const card of cards()) card.toggleAttribute("data-selected", card.dataset.room === room);
}

function closeDrawer() {
  const room = openRoom();
  drawer().replaceChildren();
  history.replaceState(null, "", addressWith(""));
  document.querySelector(`[data-room="${room}"]`)?.focus({ preventScroll: true });
}

/* Which room a key acts on, and which one comes after it: said before the decision is sent. */
let focusAfter = "";
function onConfig(event) {
  const form = event.target.closest?.("[data-room-acts], [data-row-acts]");
  if (!form) return;
  const parameters = event.detail.parameters;
  const row = currentRow()?.dataset.room ? currentRow() : cards().find((card) => card.dataset.room === openRoom());
  if (form.matches("[data-row-acts]")) {
    if (!row) {
      event.preventDefault();
      return;
    }
    parameters.room = row.dataset.room;
  }
  const all = cards();
  const index = all.findIndex((card) => card.dataset.room === parameters.room);
  const next = all[index + 1];
  focusAfter = row?.dataset.room ?? "";
  if (!FLOWING.includes(parameters.act) || !next) return;
  focusAfter = next.dataset.room;
  if (openRoom()) parameters.then = next.dataset.room;
}

function onSettle(event) {
  if (event.detail?.target?.id !== "drawer" && event.target.id !== "drawer") return;
  const room = openRoom();
  if (room) {
    select(room);
    history.replaceState(null, "", addressWith(room));
  }
  const row = document.querySelector(`[data-room="${focusAfter}"]`);
  if (focusAfter && row) {
    select(focusAfter);
    row.focus({ preventScroll: true });
    row.scrollIntoView({ block: "nearest" });
  } else if (room && !isFollowing() && !document.querySelector("dialog[open]")) {
    drawer().querySelector("[data-drawer-title]").focus({ preventScroll: true });
  }
  focusAfter = "";
}

document.addEventListener("keydown", moveOver);
document.addEventListener("click", (event) => {
  if (!event.target.closest("[data-drawer-close]")) return;
  event.preventDefault();
  closeDrawer();
});
document.body.addEventListener("htmx:configRequest", onConfig);
document.body.addEventListener("htmx:afterSettle", onSettle);
