/* Decisions that load their page again: the focus goes back to where somebody decided.
 *
 * data-keep-place  on a section with an id: after a form of it was sent, the [data-row] that took the
 *                  place of the settled one has the focus; the next section's first when it was the last. */
const KEY = "decided at";
const OLD_MS = 60_000; // a page that is opened later begins at its top

const rowsOf = (section) => [...section.querySelectorAll("[data-row]")];
const sections = () => [...document.querySelectorAll("[data-keep-place]")];
let latest = null;

function remember(event) {
  const section = event.target.closest("[data-keep-place]");
  const row = event.target.closest("[data-row]");
  if (section) {
    latest = { section: section.id, later: sections().indexOf(section), row: row ? rowsOf(section).indexOf(row) : 0 };
  } else if (!event.target.closest(".toast")) return; // Undo goes back to the decision
  if (latest) sessionStorage.setItem(KEY, JSON.stringify({ ...latest, path: location.pathname, at: Date.now() }));
}

function goBack() {
  const text = sessionStorage.getItem(KEY);
  sessionStorage.removeItem(KEY);
  const kept = text ? JSON.parse(text) : null;
  if (!kept || kept.path !== location.pathname || Date.now() - kept.at > OLD_MS) return;
  latest = kept;
  const section = document.getElementById(kept.section);
  const same = section ? rowsOf(section) : [];
  const next = sections()[kept.later];
  const target = same[Math.min(kept.row, same.length - 1)] ?? (next && rowsOf(next)[0]) ?? document.getElementById("main");
  target?.focus({ preventScroll: true });
  target?.scrollIntoView({ block: "center" });
}

document.addEventListener("submit", remember);
goBack();
