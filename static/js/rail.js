/* The rail: on a phone a panel behind the menu button; its counts follow what the page learns. */
import { gettext } from "./words.js";

const REST_MS = 10_000; // seldom: what is counted changes when jobs end, and pages ask every second

/** Count again after parts of the page have changed, the last change included. */
function followChanges(rail) {
  let timer = 0;
  const count = async () => {
    timer = 0;
    const response = await fetch(rail.dataset.counts, { credentials: "same-origin" }).catch(() => null);
    const isCounts = response?.ok && response.headers.get("Content-Type").startsWith("application/json");
    if (!isCounts) return; // signed out meanwhile, or the server is away
    const counts = await response.json();
    for (const link of rail.querySelectorAll(".rail__link")) {
      const place = link.querySelector(".rail__count");
      place.textContent = counts[link.getAttribute("href")] ?? "";
      place.hidden = place.textContent === "";
    }
  };
  document.body.addEventListener("htmx:afterSwap", () => {
    timer ||= setTimeout(count, REST_MS);
  });
}

export function startRail() {
  const rail = document.getElementById("rail");
  if (rail) followChanges(rail);
  const button = document.querySelector("[data-rail-toggle]");
  if (!rail || !button) return;
  const backdrop = document.createElement("button");
  backdrop.className = "rail-backdrop";
  backdrop.setAttribute("aria-label", gettext("Close the menu"));
  const set = (open) => {
    rail.toggleAttribute("data-open", open);
    button.setAttribute("aria-expanded", String(open));
    if (open) {
      rail.after(backdrop);
      rail.querySelector("a").focus();
    } else {
      backdrop.remove();
      button.focus();
    }
  };
  button.addEventListener("click", () => set(!rail.hasAttribute("data-open")));
  backdrop.addEventListener("click", () => set(false));
  rail.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && rail.hasAttribute("data-open")) set(false);
  });
}
