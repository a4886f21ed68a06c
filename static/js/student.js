/* Saves an answer as it is chosen, and again while the phone is offline. Without it, Next saves. */
const form = document.querySelector("[data-question]");
const word = document.querySelector(".saved");
let timer = 0;

async function save() {
  clearTimeout(timer);
  try {
    const answer = await fetch(location.pathname, {
      method: "POST", body: new FormData(form), headers: { "X-Requested-With": "fetch" },
    });
    if (answer.status !== 204) return; // Next will say what is wrong
    word.textContent = `✓ ${word.dataset.saved}`;
  } catch {
    word.textContent = word.dataset.waiting;
    timer = setTimeout(save, 4000);
  }
}

form.addEventListener("change", save);
window.addEventListener("online", save);
form.addEventListener("submit", (event) => { // a page that cannot be loaded would take the answer along
  if (navigator.onLine) return;
  event.preventDefault();
  save();
});
document.addEventListener("keydown", (event) => {
  if (event.target.matches("input:not([type=radio], [type=checkbox]), textarea") || event.altKey || event.ctrlKey || event.metaKey) return;
  const option = form.querySelectorAll(".option input")[Number(event.key) - 1];
  if (option && /^[1-9]$/.test(event.key)) option.click();
});

// What was chosen before this file had arrived.
if ([...form.querySelectorAll(".option input")].some((input) => input.checked !== input.defaultChecked)) save();
