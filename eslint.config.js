// What ESLint checks in the scripts of the pages and their tests.

import js from "@eslint/js";
import globals from "globals";

export default [
  js.configs.recommended,
  {
    languageOptions: { globals: { ...globals.browser, htmx: "readonly" } },
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: { eqeqeq: "error", "no-var": "error", "prefer-const": "error" },
  },
  { files: ["tests/javascript/**"], languageOptions: { globals: globals.node } },
];
