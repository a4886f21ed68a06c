/* Tables by keyboard: J and K move over [data-row], Enter opens the row's [data-open].
 *
 * While a drawer is open it follows the row: what keys act on and what is looked at are the same. */
const FOLLOW_MS = 120; // a row that is passed at once is not loaded
let timer = 0;
let following = 0;

const rows = () => [...document.querySelectorAll("[data-row]")].filter((row) => row.offsetParent !== null);

/** The row that shortcuts act on: the selected one, or the one that has the focus. */
export function currentRow() {
  return document.activeElement?.closest?.("[data-row]") ?? document.querySelector("[data-row][data-selected]");
}

export function moveRow(step) {
  const all = rows();
  if (all.length === 0) return;
  const index = all.indexOf(currentRow());
  const next = all[Math.min(Math.max(index < 0 ? 0 : index + step, 0), all.length - 1)];
  all.forEach((row) => row.removeAttribute("data-selected"));
  next.setAttribute("data-selected", "");
  if (!next.hasAttribute("tabindex")) next.tabIndex = -1;
  next.focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
  follow(next);
}

/** Load the row's card where one is open; the focus stays with the row. */
function follow(row) {
  if (!document.querySelector("#drawer [data-drawer]")) return;
  clearTimeout(timer);
  timer = setTimeout(() => {
    following = Date.now();
    row.querySelector("[data-open]")?.click();
  }, FOLLOW_MS);
}

/** Whether the card that was loaded just now followed the keyboard, so that the row keeps the focus. */
export function isFollowing() {
  return document.activeElement?.closest?.("[data-row]") !== null && Date.now() - following < 5000;
}

export function openRow() {
  following = 0;
  currentRow()?.querySelector("[data-open]")?.click();
}

export function startRows() {
  document.addEventListener("click", (event) => {
    const row = event.target.closest("[data-row]");
    if (!row || event.target.closest("a, button, input, select, label, summary")) return;
    if (window.getSelection().toString()) return;
    row.querySelector("[data-open]")?.click();
  });
  document.addEventListener("change", (event) => {
    const all = event.target.closest("[data-check-all]");
    if (!all) return;
    const scope = all.closest("form, table");
    scope.querySelectorAll("input[type=checkbox][data-check]").forEach((box) => {
      box.checked = all.checked;
      box.dispatchEvent(new Event("change", { bubbles: true }));
    });
  });
}
