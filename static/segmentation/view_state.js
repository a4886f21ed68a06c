// What the viewer shows, kept in the address so that a view can be linked and comes back.

export const LAYERS = ["outline", "probability", "entropy", "errors", "image"];
export const MODES = ["overlay", "swipe", "side"];

const DEFAULTS = {
  mode: "overlay",
  swipe: 50,
  selected: "probability",
  shown: { outline: true, probability: true, entropy: false, errors: false, image: true },
  opacity: { outline: 100, probability: 72, entropy: 100, errors: 100, image: 100 },
};

function clamp(value, low, high) {
  return Math.min(high, Math.max(low, value));
}

function numberIn(text, low, high, otherwise) {
  const value = Number.parseFloat(text);
  return Number.isFinite(value) ? clamp(value, low, high) : otherwise;
}

function pointIn(text) {
  const numbers = (text || "").split(",").map(Number.parseFloat);
  return numbers.length === 2 && numbers.every(Number.isFinite) ? numbers : null;
}

/** Read the state from a query string; whatever is missing or senseless takes its default. */
export function readState(query) {
  const values = new URLSearchParams(query);
  const state = {
    mode: MODES.includes(values.get("mode")) ? values.get("mode") : DEFAULTS.mode,
    swipe: numberIn(values.get("swipe"), 0, 100, DEFAULTS.swipe),
    selected: LAYERS.includes(values.get("layer")) ? values.get("layer") : DEFAULTS.selected,
    shown: { ...DEFAULTS.shown },
    opacity: { ...DEFAULTS.opacity },
    zoom: values.has("zoom") ? numberIn(values.get("zoom"), 0.01, 64, null) : null,
    centre: pointIn(values.get("centre")),
    at: pointIn(values.get("at")),
  };
  for (const name of LAYERS) {
    const value = values.get(name);
    if (value === "off") state.shown[name] = false;
    else if (value !== null) {
      state.shown[name] = true;
      state.opacity[name] = Math.round(numberIn(value, 0, 100, DEFAULTS.opacity[name]));
    }
  }
  return state;
}

/** Write what differs from the defaults; `position` says whether zoom and pointer belong to it. */
export function writeState(state, position = true) {
  const values = new URLSearchParams();
  if (state.mode !== DEFAULTS.mode) values.set("mode", state.mode);
  if (state.mode === "swipe") values.set("swipe", state.swipe.toFixed(1).replace(/\.0$/, ""));
  if (state.selected !== DEFAULTS.selected) values.set("layer", state.selected);
  for (const name of LAYERS) {
    const { shown, opacity } = DEFAULTS;
    const same = state.shown[name] === shown[name] && state.opacity[name] === opacity[name];
    if (!state.shown[name] && shown[name]) values.set(name, "off");
    else if (state.shown[name] && !same) values.set(name, String(state.opacity[name]));
  }
  if (position && state.zoom !== null) {
    values.set("zoom", state.zoom.toFixed(3));
    values.set("centre", state.centre.map((value) => value.toFixed(1)).join(","));
  }
  if (position && state.at !== null) values.set("at", state.at.join(","));
  return values.toString();
}
