/* The sentences of scripts in the language of the page.
 *
 * Pages in another language than English load the catalogue of the address /words.js before the modules.
 * Without it the sentences are in English. `manage.py makemessages -d djangojs` collects them, so both functions
 * take literal texts only, outside of template literals.
 */
const catalogue = () => /** @type {any} */ (globalThis).django;

/** Return a text in the language of the page. */
export function gettext(text) {
  return catalogue()?.gettext?.(text) ?? text;
}

/** Return the text for a count, in the singular or the plural of the language of the page. */
export function ngettext(one, many, count) {
  return catalogue()?.ngettext?.(one, many, count) ?? (count === 1 ? one : many);
}

/** Return a text whose %(name)s are replaced by values. */
export function filled(text, values) {
  return text.replace(/%\((\w+)\)s/g, (whole, name) => String(values[name] ?? whole));
}
