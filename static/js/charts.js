/* Chart or table: the toggle of a .chart-box. The choice holds for the box while htmx replaces it. */
const chosen = new Map();

function apply(box, view) {
  box.dataset.view = view;
  box.querySelectorAll("[data-chart-view]").forEach((button) => {
    button.setAttribute("aria-pressed", String(button.dataset.chartView === view));
  });
}

export function startCharts() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-chart-view]");
    if (!button) return;
    const box = button.closest(".chart-box");
    chosen.set(box.id, button.dataset.chartView);
    apply(box, button.dataset.chartView);
  });
  document.body.addEventListener("htmx:afterSwap", () => {
    document.querySelectorAll(".chart-box[id]").forEach((box) => {
      if (chosen.has(box.id)) apply(box, chosen.get(box.id));
    });
  });
}
