/* Saves an answer as it is given, and says so only once the server has it. Without it, Next saves.
   An answer that is not saved yet stays on this phone, and is sent again until the server has it. */
const form = document.querySelector("[data-question]");
const word = document.querySelector(".saved");
const error = document.getElementById("error");
const note = document.querySelector("[data-note]");
const own = `answer:${form.dataset.person}:`;
const key = own + form.dataset.question;
const LATER = new Set([408, 425, 429, 500, 502, 503, 504, 507]); // another try may help
const FIRST_PAUSE = 2000, LONGEST_PAUSE = 30000, TYPING = 1200;

let timer = 0, pause = FIRST_PAUSE, version = 0, saved = 0, running = false, wanted = "";

function store(name, value) { // a phone without room for it still sends
  try { value === null ? localStorage.removeItem(name) : localStorage.setItem(name, JSON.stringify(value)); } catch { /* sent all the same */ }
}

function fields() {
  return [...new FormData(form)].filter(([name, value]) => typeof value === "string" && name !== "csrfmiddlewaretoken");
}

function say(state, sentence = "") {
  word.textContent = { saved: `✓ ${word.dataset.saved}`, waiting: word.dataset.waiting, lost: word.dataset.lost }[state];
  word.dataset.state = state;
  error.textContent = sentence;
  error.hidden = !sentence;
  if (note && sentence) note.textContent = ""; // it is about the answer before
}

function changed() {
  version += 1;
  store(key, fields());
  word.textContent = "";
}

async function send(body) {
  const answer = await fetch(location.href, {
    method: "POST", body, headers: { "X-Requested-With": "fetch" }, redirect: "manual", cache: "no-store",
  });
  const isJson = (answer.headers.get("Content-Type") ?? "").includes("json");
  return { status: answer.status, answer, data: isJson ? await answer.json() : null };
}

function later(answer) {
  const asked = Number(answer?.headers.get("Retry-After")) * 1000;
  say("waiting");
  clearTimeout(timer);
  timer = setTimeout(save, Math.max(asked || 0, pause));
  pause = Math.min(2 * pause, LONGEST_PAUSE);
}

/** Send what is in the form; go on to where the server leads if a button asked for it. */
async function save() {
  clearTimeout(timer);
  if (running) return;
  running = true;
  const mine = version, action = wanted;
  let waits = false; // for another try, which sends all that was given meanwhile
  try {
    const body = new FormData(form);
    body.set("action", action || "next");
    if (!action) body.set("stays", "1");
    const { status, answer, data } = await send(body);
    if (status === 200 && data?.next) {
      saved = mine;
      pause = FIRST_PAUSE;
      if (note) note.textContent = data.note;
      for (const file of form.querySelectorAll("[type=file]")) if (version === mine) file.value = ""; // sent once
      if (version === mine) { store(key, null); say("saved"); }
      if (action) { location.assign(data.next); return; }
    } else if (LATER.has(status)) {
      waits = true;
      later(answer);
    } else {
      wanted = "";
      say("lost", data?.error ?? word.dataset.failed);
    }
  } catch {
    waits = true;
    later();
  } finally {
    running = false;
  }
  if (!waits && (version !== mine || wanted !== action && wanted)) save(); // given, or pressed, meanwhile
}

/** Send answers to other questions that were not saved before this page was opened. */
async function sendLeft() {
  for (const name of Object.keys(localStorage).filter((one) => one.startsWith(own) && one !== key)) {
    const body = new FormData();
    for (const [field, value] of JSON.parse(localStorage.getItem(name))) body.append(field, value);
    body.set("csrfmiddlewaretoken", form.elements.csrfmiddlewaretoken?.value ?? "");
    body.set("stays", "1");
    const { status } = await send(body);
    if (status === 200) store(name, null);
  }
}

/** Put back what was typed here and never reached the server. */
function restore() {
  const kept = JSON.parse(localStorage.getItem(key));
  if (!kept) return;
  const given = kept.filter(([name]) => name === "answer").map(([, value]) => value);
  for (const input of form.querySelectorAll("[name=answer]")) {
    if (/^(radio|checkbox)$/.test(input.type)) input.checked = given.includes(input.value);
    else input.value = given[0] ?? "";
  }
  version += 1;
  save();
}

form.addEventListener("change", () => { changed(); save(); });
form.addEventListener("input", (event) => {
  if (!event.target.matches("textarea, input:not([type=radio], [type=checkbox], [type=file])")) return;
  changed();
  clearTimeout(timer);
  timer = setTimeout(save, TYPING);
});
form.addEventListener("submit", (event) => { // a page that cannot be loaded would take the answer along
  event.preventDefault();
  wanted = event.submitter?.value ?? "next";
  if (wanted !== "skip") store(key, fields());
  say("waiting");
  word.textContent = "";
  save();
});
window.addEventListener("online", () => { if (version !== saved || wanted) save(); });
document.addEventListener("keydown", (event) => {
  if (event.target.matches("input:not([type=radio], [type=checkbox]), textarea") || event.altKey || event.ctrlKey || event.metaKey) return;
  const option = form.querySelectorAll(".option input")[Number(event.key) - 1];
  if (option && /^[1-9]$/.test(event.key)) option.click();
});

// What was chosen before this file had arrived, and what earlier pages could not send.
try { restore(); sendLeft().catch(() => {}); } catch { /* a phone that keeps nothing */ }
if (!version && [...form.querySelectorAll(".option input")].some((input) => input.checked !== input.defaultChecked)) { changed(); save(); }
