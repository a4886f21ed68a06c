/* The page of a placement: arrows move over the grid of rooms; the drawer takes the focus. */
import { currentRow } from "./rows.js";

const cards = () => [...document.querySelectorAll(".room-card")];

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

document.addEventListener("keydown", moveOver);
document.body.addEventListener("htmx:afterSettle", (event) => {
  if (event.target.id !== "placement" && event.detail?.target?.id !== "placement") return;
  const selected = document.querySelector(".room-card[data-selected]");
  if (document.querySelector("[data-drawer-title]")) {
    document.querySelector("[data-drawer-title]").focus({ preventScroll: true });
  } else (selected ?? currentRow())?.focus({ preventScroll: true });
});
