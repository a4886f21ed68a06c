/* Small help for forms.
 *
 * form[data-autosubmit]     sends itself when a control changes (filters); text after a pause
 * form[data-submit-once]    a second click does not send it twice
 * button[data-print]        opens the browser's own print dialog
 */
const PAUSE_MS = 400;

export function startForms() {
  let timer = 0;
  document.addEventListener("change", (event) => {
    const form = event.target.form;
    if (form?.hasAttribute("data-autosubmit") && !event.target.matches("input[type=text], input[type=search]")) {
      form.requestSubmit();
    }
  });
  document.addEventListener("input", (event) => {
    const form = event.target.form;
    if (!form?.hasAttribute("data-autosubmit") || !event.target.matches("input[type=text], input[type=search]")) return;
    clearTimeout(timer);
    timer = setTimeout(() => form.requestSubmit(), PAUSE_MS);
  });
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (!form.hasAttribute("data-submit-once")) return;
    if (form.dataset.sent) {
      event.preventDefault();
      return;
    }
    form.dataset.sent = "1";
    form.querySelectorAll("[type=submit]").forEach((button) => button.setAttribute("aria-disabled", "true"));
  });
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-print]")) window.print();
  });
  window.addEventListener("pageshow", () => {
    document.querySelectorAll("form[data-sent]").forEach((form) => {
      delete form.dataset.sent;
      form.querySelectorAll("[type=submit]").forEach((button) => button.removeAttribute("aria-disabled"));
    });
  });
}
