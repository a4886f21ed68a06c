"""ROC curves as CSV and as SVG, without a plotting library at run time."""

from collections.abc import Sequence
from pathlib import Path

from engine.datasets.roommate_files import write_rows
from engine.metrics.roc import RocCurve


def write_roc_csv(path: Path, curves: Sequence[tuple[str, RocCurve]]) -> None:
    """Write ROC curves as CSV: curve,false_positive_rate,true_positive_rate."""
    rows = [
        [name, f"{x:.8f}", f"{y:.8f}"]
        for name, curve in curves
        for x, y in zip(curve.false_positive_rate, curve.true_positive_rate, strict=True)
    ]
    write_rows(path, ["curve", "false_positive_rate", "true_positive_rate"], rows)


_SIZE, _LEFT, _TOP = 360, 56, 24
_COLOURS = ("#4C84D6", "#C06E18", "#616C67")
_DASHES = ("", "6 4", "2 3")


def write_roc_svg(path: Path, curves: Sequence[tuple[str, RocCurve]]) -> None:
    """Draw up to three curves into a self-contained SVG of 480 x 440 units."""
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 480 440" role="img" '
        'font-family="system-ui, sans-serif" font-size="12" fill="#18211E">',
        "<title>ROC: real pairs found against other pairs ranked as high</title>",
        '<rect width="480" height="440" fill="#FFFFFF"/>',
    ]
    for tick in range(0, 101, 25):
        x, y = _LEFT + _SIZE * tick / 100, _TOP + _SIZE * (1 - tick / 100)
        parts.append(f'<path d="M{_LEFT} {y:g}H{_LEFT + _SIZE}" stroke="#E0E4E2"/>')
        parts.append(f'<text x="{x:g}" y="{_TOP + _SIZE + 18}" text-anchor="middle">{tick}</text>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 4:g}" text-anchor="end">{tick}</text>')
    parts.append(
        f'<path d="M{_LEFT} {_TOP + _SIZE}L{_LEFT + _SIZE} {_TOP}" stroke="#7C8681" '
        'stroke-dasharray="2 3"/>'
    )
    for index, (name, curve) in enumerate(curves):
        colour, dash = _COLOURS[index % 3], _DASHES[index % 3]
        points = " ".join(
            f"{_LEFT + _SIZE * x:.2f},{_TOP + _SIZE * (1 - y):.2f}"
            for x, y in zip(curve.false_positive_rate, curve.true_positive_rate, strict=True)
        )
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2" '
            f'stroke-dasharray="{dash}"/>'
        )
        y = _TOP + _SIZE - 16 - 18 * (len(curves) - 1 - index)
        parts.append(
            f'<text x="{_LEFT + _SIZE - 8}" y="{y}" text-anchor="end" fill="{colour}">'
            f"{name}, AUC {curve.auc:.3f}</text>"
        )
    middle = _LEFT + _SIZE / 2
    parts.append(
        f'<text x="{middle:g}" y="{_TOP + _SIZE + 38}" text-anchor="middle">'
        "Other pairs ranked as high (% of non-roommates)</text>"
    )
    parts.append(
        f'<text transform="translate(16 {_TOP + _SIZE / 2:g}) rotate(-90)" text-anchor="middle">'
        "Real pairs found (%)</text></svg>"
    )
    path.write_text("\n".join(parts) + "\n", encoding="utf-8")
