/* A drop zone is a panel with a real file input; dropping a file fills the input.
 *
 * .drop-zone[data-autosubmit]  sends its form as soon as files are chosen
 */
import { filled, gettext } from "./words.js";

function show(zone, files) {
  const list = zone.querySelector(".drop-zone__files");
  if (!list) return;
  list.replaceChildren(
    ...[...files].slice(0, 20).map((file) => {
      const item = document.createElement("li");
      const size = document.createElement("span");
      item.textContent = file.name;
      size.className = "muted push";
      size.textContent = file.size < 1e6 ? `${Math.ceil(file.size / 1e3)} kB` : `${(file.size / 1e6).toFixed(1)} MB`;
      item.append(size);
      return item;
    }),
  );
  if (files.length > 20) {
    const more = document.createElement("li");
    more.textContent = filled(gettext("and %(count)s more"), { count: files.length - 20 });
    list.append(more);
  }
}

function zoneOf(event) {
  return event.target.closest?.(".drop-zone");
}

export function startDropZones() {
  document.addEventListener("dragover", (event) => {
    const zone = zoneOf(event);
    if (!zone) return;
    event.preventDefault();
    zone.classList.add("drop-zone--over");
  });
  document.addEventListener("dragleave", (event) => {
    const zone = zoneOf(event);
    if (zone && !zone.contains(event.relatedTarget)) zone.classList.remove("drop-zone--over");
  });
  document.addEventListener("drop", (event) => {
    const zone = zoneOf(event);
    if (!zone || zone.hasAttribute("data-own-drop")) return;
    event.preventDefault();
    zone.classList.remove("drop-zone--over");
    const input = zone.querySelector("input[type=file]");
    input.files = event.dataTransfer.files;
    input.dispatchEvent(new Event("change", { bubbles: true }));
  });
  document.addEventListener("change", (event) => {
    if (!event.target.matches?.(".drop-zone input[type=file]")) return;
    const zone = zoneOf(event);
    show(zone, event.target.files);
    if (zone.hasAttribute("data-autosubmit") && event.target.files.length > 0) {
      event.target.form.requestSubmit();
    }
  });
}
