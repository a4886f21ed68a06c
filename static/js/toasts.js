/* Toasts: what happened, with Undo. They stay 10 seconds, longer while hovered or focused.
 * Only the latest is shown, with how many came in a row: one Undo belongs to one decision. */
import { filled, gettext } from "./words.js";

const STAY_MS = 10_000;

function arm(toast) {
  let timer = 0;
  const start = () => {
    clearTimeout(timer);
    timer = setTimeout(() => toast.remove(), STAY_MS);
  };
  const hold = () => clearTimeout(timer);
  toast.addEventListener("mouseenter", hold);
  toast.addEventListener("focusin", hold);
  toast.addEventListener("mouseleave", start);
  toast.addEventListener("focusout", start);
  start();
}

/** Take away what the newest toast replaces, and say on it how many came one upon the other. */
function keepLatest(region, added) {
  const latest = added.at(-1);
  if (!latest?.isConnected || region.id !== "toasts") return;
  let count = added.length;
  for (const old of [...region.querySelectorAll(".toast")]) {
    if (old === latest) continue;
    if (!added.includes(old)) count += Number(old.dataset.count ?? 1);
    old.remove();
  }
  latest.dataset.count = count;
  if (count < 2) return;
  const mark = document.createElement("span");
  mark.className = "toast__count";
  mark.textContent = filled(gettext("%(count)s in a row"), { count });
  latest.querySelector("span")?.after(mark);
}

/** Show a toast made in the browser, once at a time: what polls fails every second. */
export function showToast(text, { error = false } = {}) {
  const region = document.getElementById(error ? "toasts-assertive" : "toasts");
  if ([...region.children].some((shown) => shown.textContent === text)) return;
  const toast = document.createElement("div");
  toast.className = error ? "toast toast--error" : "toast";
  const sentence = document.createElement("span");
  sentence.textContent = text;
  toast.append(sentence);
  region.append(toast);
  arm(toast);
}

export function startToasts() {
  const regions = document.querySelectorAll(".toasts > div");
  const armNew = (nodes) => nodes.forEach((node) => node.classList?.contains("toast") && arm(node));
  for (const region of regions) {
    armNew([...region.children]);
    new MutationObserver((changes) => {
      const added = changes.flatMap((change) => [...change.addedNodes]);
      armNew(added);
      keepLatest(region, added.filter((node) => node.classList?.contains("toast")));
    })
      .observe(region, { childList: true });
  }
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-toast-close]");
    if (button) button.closest(".toast").remove();
  });
  document.body.addEventListener("htmx:responseError", (event) => {
    const status = event.detail.xhr.status;
    showToast(
      status === 403 ? gettext("This is not open to your role. Nothing was changed.")
        : status === 404 ? gettext("This is no longer there. Load the page again.")
        : gettext("The server could not do this. Nothing was changed."),
      { error: true },
    );
  });
  document.body.addEventListener("htmx:sendError", () => {
    showToast(gettext("The server does not answer. Nothing was changed; try again in a moment."), { error: true });
  });
}
