/* Drags a question to another place. Move up, Move down and Section do the same by keyboard. */
const list = document.querySelector("[data-survey-list]");
let dragged = null;

function itemAt(event) {
  const item = event.target.closest("[data-question-key]");
  return item && item !== dragged ? item : null;
}

/** Where an item stands: its section, and its place among the questions of that section. */
function placeOf(item) {
  let section = -1, place = 0;
  for (const row of list.children) {
    if (row.matches(".survey-list__section")) { section += 1; place = 0; continue; }
    if (row === item) break;
    if (row.dataset.questionKey) place += 1;
  }
  return { section: sections[section], place };
}

// Sections without a question have no line in the list: their numbers come from the page.
const sections = [...list?.querySelectorAll(".survey-list__section") ?? []].map((row) => row.dataset.section);

list?.addEventListener("dragstart", (event) => {
  dragged = event.target.closest("[data-question-key]");
  event.dataTransfer.effectAllowed = "move";
});
list?.addEventListener("dragover", (event) => {
  const item = itemAt(event);
  if (!dragged || !item) return;
  event.preventDefault();
  const box = item.getBoundingClientRect();
  item[event.clientY < box.top + box.height / 2 ? "before" : "after"](dragged);
});
list?.addEventListener("dragend", async () => {
  if (!dragged) return;
  const { section, place } = placeOf(dragged);
  const form = new FormData();
  form.set("section", section);
  form.set("place", place);
  form.set("version", list.dataset.version);
  form.set("csrfmiddlewaretoken", document.querySelector("[name=csrfmiddlewaretoken]").value);
  const { placeUrl } = dragged.dataset;
  dragged = null;
  await fetch(placeUrl, { method: "POST", body: form, redirect: "manual" });
  location.reload();
});
