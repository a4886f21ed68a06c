/* The rail on a phone: a panel behind the menu button. */
export function startRail() {
  const rail = document.getElementById("rail");
  const button = document.querySelector("[data-rail-toggle]");
  if (!rail || !button) return;
  const backdrop = document.createElement("button");
  backdrop.className = "rail-backdrop";
  backdrop.setAttribute("aria-label", "Close the menu");
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
