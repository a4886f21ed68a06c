/* Native dialogs and menus.
 *
 * data-dialog-open="ID"   opens <dialog id="ID">; focus returns to the opener when it closes
 * data-dialog-close       closes the dialog around it
 * data-confirm-text="X"   on an input: its form's submit button works once the input reads X
 * details.menu            closes on Escape, on a click outside, and after a choice
 */
export function openDialog(dialog) {
  const menu = document.activeElement?.closest("details.menu");
  const opener = menu?.querySelector("summary") ?? document.activeElement;
  if (menu) menu.open = false;
  dialog.showModal();
  dialog.addEventListener("close", () => opener?.focus?.(), { once: true });
}

function onClick(event) {
  const opener = event.target.closest("[data-dialog-open]");
  if (opener) {
    event.preventDefault();
    openDialog(document.getElementById(opener.dataset.dialogOpen));
    return;
  }
  const closer = event.target.closest("[data-dialog-close]");
  const dialog = closer?.closest("dialog");
  if (dialog) {
    event.preventDefault(); // a link leads back where the same words stand on a page of their own
    dialog.close();
    return;
  }
  if (event.target instanceof HTMLDialogElement) {
    const box = event.target.getBoundingClientRect();
    const inside =
      event.clientX >= box.left && event.clientX <= box.right &&
      event.clientY >= box.top && event.clientY <= box.bottom;
    if (!inside) event.target.close();
  }
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (menu.contains(event.target) && !event.target.closest(".menu__items a, .menu__items button")) continue;
    // After the click: htmx forgets which button was pressed when the focus leaves it before.
    setTimeout(() => {
      if (menu.contains(document.activeElement)) menu.querySelector("summary").focus();
      menu.open = false;
    });
  }
}

function onKey(event) {
  if (event.key !== "Escape") return;
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    menu.open = false;
    menu.querySelector("summary").focus();
  }
}

function checkConfirmation(input) {
  const button = input.form.querySelector("[type=submit]");
  button.disabled = input.value.trim() !== input.dataset.confirmText;
}

export function startDialogs() {
  document.addEventListener("click", onClick);
  document.addEventListener("keydown", onKey);
  document.addEventListener("input", (event) => {
    if (event.target.matches?.("[data-confirm-text]")) checkConfirmation(event.target);
  });
  document.querySelectorAll("[data-confirm-text]").forEach(checkConfirmation);
  document.querySelectorAll("dialog[data-open]").forEach(openDialog);
  // A fragment that htmx brought may be a dialog that wants to be open.
  document.body.addEventListener("htmx:afterSettle", (event) => {
    const dialog = event.target.closest?.("dialog") ?? event.target.querySelector?.("dialog[data-open]");
    if (dialog?.matches("[data-open]") && !dialog.open) openDialog(dialog);
    event.target.querySelectorAll?.("[data-confirm-text]").forEach(checkConfirmation);
  });
}
