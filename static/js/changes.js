/* The price of a move: the slider sets the field, and the list follows when it rests. */
const REST_MS = 300;
const slider = document.querySelector("[data-price-slider]");
let timer = 0;

slider?.addEventListener("input", () => {
  const prices = slider.dataset.priceSlider.split(" ");
  const field = document.querySelector("[data-price]");
  field.value = prices[Number(slider.value)];
  clearTimeout(timer);
  timer = setTimeout(() => field.form.requestSubmit(), REST_MS);
});
