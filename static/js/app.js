/* The start of every page's behaviour. Pages work without it, except where they say otherwise. */
import { startCharts } from "./charts.js";
import { startDialogs } from "./dialogs.js";
import { startDropZones } from "./drop-zone.js";
import { startForms } from "./forms.js";
import { startRail } from "./rail.js";
import { startRows } from "./rows.js";
import { startShortcuts } from "./shortcuts.js";
import { startToasts } from "./toasts.js";

startDialogs();
startToasts();
startRail();
startRows();
startShortcuts();
startDropZones();
startForms();
startCharts();
