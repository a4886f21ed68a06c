/* Keys. Off while typing, off altogether by a setting, listed under "?".
 *
 * data-shortcut="a"  on a button or link: pressing A clicks it. Inside a [data-row] it acts on the
 *                    current row only; elsewhere on the page. data-shortcut-label says what it does
 *                    in the list of keys (default: its accessible name).
 */
import { openDialog } from "./dialogs.js";
import { currentRow, moveRow, openRow } from "./rows.js";

const isTyping = (target) =>
  target.isContentEditable ||
  target.matches?.("textarea, select, input:not([type=checkbox], [type=radio], [type=button], [type=submit], [type=range])");

function findTarget(key) {
  const selector = `[data-shortcut="${CSS.escape(key)}"]`;
  const dialog = document.querySelector("dialog[open]");
  if (dialog) return dialog.querySelector(selector);
  const inRow = currentRow()?.querySelector(selector);
  if (inRow) return inRow;
  return [...document.querySelectorAll(selector)].filter((el) => !el.closest("[data-row]")).at(-1);
}

function showHelp() {
  const dialog = document.getElementById("shortcuts");
  const list = dialog.querySelector("[data-page-shortcuts]");
  list.replaceChildren();
  const seen = new Set();
  for (const element of document.querySelectorAll("[data-shortcut]")) {
    const key = element.dataset.shortcut;
    if (seen.has(key) || element.closest(".toast")) continue;
    seen.add(key);
    const row = document.createElement("div");
    const name = document.createElement("dt");
    const keys = document.createElement("dd");
    const cap = document.createElement("kbd");
    name.textContent = element.dataset.shortcutLabel ?? element.getAttribute("aria-label") ?? element.textContent.trim();
    cap.textContent = key.length === 1 ? key.toUpperCase() : key;
    keys.append(cap);
    row.append(name, keys);
    list.append(row);
  }
  openDialog(dialog);
}

function onKey(event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (isTyping(event.target)) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const inDialog = document.querySelector("dialog[open]") !== null;
  const target = findTarget(event.key.toLowerCase()) ?? findTarget(event.key);
  if (target) {
    event.preventDefault();
    // A key may be quicker than htmx, which takes up what it brought a moment after it shows.
    window.htmx?.process(target.closest("form") ?? target);
    target.click();
  } else if (inDialog) {
    return;
  } else if (event.key === "/") {
    event.preventDefault();
    document.getElementById("search-input")?.focus();
  } else if (event.key === "?") {
    event.preventDefault();
    showHelp();
  } else if (event.key === "j" || event.key === "k") {
    event.preventDefault();
    moveRow(event.key === "j" ? 1 : -1);
  } else if (event.key === "Enter" && event.target.matches("[data-row]")) {
    event.preventDefault();
    openRow();
  }
}

export function startShortcuts() {
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-show-shortcuts]")) showHelp();
  });
  if (document.documentElement.dataset.shortcuts !== "off") document.addEventListener("keydown", onKey);
}
