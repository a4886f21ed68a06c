// Strokes: drawing them, and filling what is joined and looks alike. Units: pixels of the image.

/** Trace a stroke into a context whose unit is the image's pixel; `extra` widens it on each side. */
export function drawStroke(context, stroke, colour, extra = 0) {
  const { points, tool } = stroke;
  context.fillStyle = colour;
  context.strokeStyle = colour;
  context.lineCap = "round";
  context.lineJoin = "round";
  if (tool === "fill") {
    for (let k = 0; k < points.length; k += 3) {
      const [row, first, last] = [points[k], points[k + 1], points[k + 2]];
      const step = stroke.step ?? 1;
      context.fillRect(first - extra, row - extra, last - first + step + 2 * extra, step + 2 * extra);
    }
    return;
  }
  if (tool === "polygon" && points.length >= 6) {
    context.beginPath();
    for (let k = 0; k < points.length; k += 2) context.lineTo(points[k], points[k + 1]);
    context.closePath();
    context.fill();
    if (extra > 0) {
      context.lineWidth = 2 * extra;
      context.stroke();
    }
    return;
  }
  drawPath(context, stroke, extra);
}

function drawPath(context, { points, radii, radius }, extra) {
  const hasPressure = radii.length === points.length / 2;
  if (!hasPressure || points.length === 2) {
    context.lineWidth = 2 * (Math.max(hasPressure ? radii[0] : radius, 0.5) + extra);
    context.beginPath();
    context.moveTo(points[0], points[1]);
    if (points.length === 2) context.lineTo(points[0] + 0.01, points[1]);
    for (let k = 2; k < points.length; k += 2) context.lineTo(points[k], points[k + 1]);
    context.stroke();
    return;
  }
  for (let k = 2; k < points.length; k += 2) {
    context.lineWidth = radii[k / 2 - 1] + radii[k / 2] + 2 * extra;
    context.beginPath();
    context.moveTo(points[k - 2], points[k - 1]);
    context.lineTo(points[k], points[k + 1]);
    context.stroke();
  }
}

/**
 * Runs (row, first, last) of the pixels joined to a place whose colour is within a tolerance.
 *
 * `pixels` is the ImageData of a copy of the picture, `factor` image pixels per pixel of it.
 */
export function floodRuns(pixels, x, y, tolerance, factor) {
  const { width, height, data } = pixels;
  const [column, row] = [Math.floor(x / factor), Math.floor(y / factor)];
  if (column < 0 || row < 0 || column >= width || row >= height) return [];
  const start = 4 * (row * width + column);
  const wanted = [data[start], data[start + 1], data[start + 2]];
  const seen = new Uint8Array(width * height);
  const alike = (at) =>
    seen[at] === 0 &&
    Math.abs(data[4 * at] - wanted[0]) <= tolerance &&
    Math.abs(data[4 * at + 1] - wanted[1]) <= tolerance &&
    Math.abs(data[4 * at + 2] - wanted[2]) <= tolerance;
  const stack = [row * width + column];
  const runs = [];
  while (stack.length > 0) {
    const at = stack.pop();
    if (!alike(at)) continue;
    const top = Math.floor(at / width);
    let [left, right] = [at, at];
    while (left > top * width && alike(left - 1)) left -= 1;
    while (right < top * width + width - 1 && alike(right + 1)) right += 1;
    for (let k = left; k <= right; k += 1) {
      seen[k] = 1;
      if (top > 0) stack.push(k - width);
      if (top < height - 1) stack.push(k + width);
    }
    runs.push(top * factor, (left - top * width) * factor, (right - top * width) * factor);
    if (runs.length > 55_000) break;
  }
  return runs;
}
