"""Meaning of a picture's samples, and their light: palette, opacity, inks, orientation.

Readers of files bring samples and their meaning; each of these is turned into light here, once for
every container.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

Planes = NDArray[Any]
"""Samples with channels, rows and columns as the last three axes."""

UPRIGHT = 1
_SIDEWAYS = frozenset({5, 6, 7, 8})
_BYTE = 255.0
_CIE_LIGHTEST = 100.0
_N_COLOURS = 3
_N_INKS = 4


class Light(StrEnum):
    """Relation between a sample and light."""

    BLACK_IS_ZERO = "black is zero"
    WHITE_IS_ZERO = "white is zero"
    PALETTE = "palette"
    COLOUR = "red, green, blue"
    INKS = "cyan, magenta, yellow, black"
    CIELAB = "CIE L*a*b* of white D50"
    CIELAB_D65 = "CIE L*a*b* of white D65"


_LABS = (Light.CIELAB, Light.CIELAB_D65)
_D50_TO_D65 = np.array(
    [
        [0.9555766, -0.0230393, 0.0631636],
        [-0.0282895, 1.0099416, 0.0210077],
        [0.0122982, -0.020483, 1.3299098],
    ]
)
"""Bradford's adaptation of colours from one daylight to another."""


@dataclass(frozen=True, slots=True, eq=False)
class Meaning:
    """Meaning of a picture's samples.

    Parameters
    ----------
    light : Light
    most : float, the sample that stands for full light (of whole numbers, by their bits; 1 for
        fractions)
    palette : ndarray, shape (n, 3), uint8, the colours that samples index, if any
    opacity : int, index of the opacity channel; -1 without one
    is_premultiplied : bool, True if colours are already multiplied by the opacity
    orientation : int, 1 to 8, as in TIFF and EXIF
    """

    light: Light = Light.BLACK_IS_ZERO
    most: float = _BYTE
    palette: NDArray[np.uint8] | None = None
    opacity: int = -1
    is_premultiplied: bool = False
    orientation: int = UPRIGHT

    @property
    def is_sideways(self) -> bool:
        """Return True if turning the picture upright swaps its rows and columns."""
        return self.orientation in _SIDEWAYS

    @property
    def is_colour(self) -> bool:
        """Return True if the light is red, green and blue."""
        return self.light not in (Light.BLACK_IS_ZERO, Light.WHITE_IS_ZERO)


def upright(planes: Planes, orientation: int) -> Planes:
    """Return a view whose last two axes are turned by an orientation of TIFF and EXIF.

    Examples
    --------
    >>> upright(np.array([[1, 2, 3], [4, 5, 6]]), 6).tolist()
    [[4, 1], [5, 2], [6, 3]]
    """
    if orientation in _SIDEWAYS:
        planes = np.swapaxes(planes, -1, -2)
    if orientation in (3, 4, 7, 8):
        planes = planes[..., ::-1, :]
    if orientation in (2, 3, 6, 7):
        planes = planes[..., ::-1]
    return planes


def light_of(planes: Planes, meaning: Meaning) -> Planes:
    """Return grey or red, green and blue, zero black, laid on white where pixels are transparent.

    Channels that the meaning does not name follow these. Numbers keep their type; a
    palette gives bytes, CIELAB of fractions gives fractions.
    """
    if meaning.opacity < 0:
        return _light(planes, meaning)
    at = meaning.opacity
    channels = planes.shape[-3]
    order = [k for k in range(channels) if k != at]
    shown = _light(planes[..., order, :, :], meaning)
    return _on_white(shown, planes[..., at : at + 1, :, :], meaning)


def _light(planes: Planes, meaning: Meaning) -> Planes:
    light, most = meaning.light, meaning.most
    if light is Light.PALETTE:
        return _coloured(planes, meaning)
    if light is Light.WHITE_IS_ZERO:
        return planes if planes.dtype.kind == "f" else np.asarray(planes.dtype.type(most) - planes)
    if light is Light.INKS and planes.shape[-3] >= _N_INKS:
        return _of_inks(planes, most)
    if light in _LABS and planes.shape[-3] >= _N_COLOURS:
        return _of_cielab(planes, most, is_d50=light is Light.CIELAB)
    return planes


def _coloured(planes: Planes, meaning: Meaning) -> Planes:
    """Return the colours of a palette; numbers beyond it are black."""
    own = np.zeros((0, 3), dtype=np.uint8) if meaning.palette is None else meaning.palette
    palette = np.zeros((max(len(own), int(meaning.most) + 1), 3), dtype=np.uint8)
    palette[: len(own)] = own
    colours = palette[planes[..., 0, :, :]]
    return np.asarray(np.moveaxis(colours, -1, -3))


def _of_inks(planes: Planes, most: float) -> Planes:
    """Return the light that four inks leave: the part that three let through, less black's part."""
    narrow = np.float32 if most <= 65535 else np.float64
    inks = planes[..., :_N_COLOURS, :, :].astype(narrow)
    black = planes[..., _N_COLOURS : _N_COLOURS + 1, :, :].astype(narrow)
    found: Planes = np.subtract(most, inks) * np.subtract(most, black) / most
    whole = planes.dtype.kind != "f"
    shown = (np.rint(found) if whole else found).astype(planes.dtype)
    return np.asarray(np.concatenate([shown, planes[..., _N_INKS:, :, :]], axis=-3))


def _of_cielab(planes: Planes, most: float, *, is_d50: bool) -> Planes:
    """Return CIELAB as red, green and blue; whole numbers are packed as in TIFF 6.0."""
    from skimage.color import lab2rgb, lab2xyz, xyz2rgb  # slow to import

    lab = planes[..., :_N_COLOURS, :, :].astype(np.float64)
    is_whole = planes.dtype.kind != "f"
    if is_whole:
        lab[..., 1:, :, :] = np.where(
            lab[..., 1:, :, :] > most / 2, lab[..., 1:, :, :] - most - 1.0, lab[..., 1:, :, :]
        )
        lab[..., 1:, :, :] /= (most + 1.0) / 256.0
        lab[..., 0, :, :] *= _CIE_LIGHTEST / most
    lab = np.moveaxis(lab, -3, -1)
    if is_d50:
        shown = xyz2rgb(np.maximum(lab2xyz(lab, illuminant="D50") @ _D50_TO_D65.T, 0.0))
    else:
        shown = lab2rgb(lab)
    found = np.moveaxis(np.clip(shown, 0.0, 1.0), -1, -3)
    kind = planes.dtype if is_whole else np.dtype(np.float32)
    return np.asarray(np.rint(found * most) if is_whole else found).astype(kind)


def _on_white(shown: Planes, opacity: Planes, meaning: Meaning) -> Planes:
    """Blend colours with white by their opacity; for a palette's bytes, opacity is in bytes."""
    if shown.dtype == opacity.dtype == np.uint8 and meaning.most == _BYTE:
        return _bytes_on_white(shown, opacity, is_premultiplied=meaning.is_premultiplied)
    full = float(meaning.most)
    share = opacity.astype(np.float64) / full
    white = _BYTE if meaning.light is Light.PALETTE else full
    colours = shown.astype(np.float64)
    if not meaning.is_premultiplied:
        colours *= share
    mixed = colours + white * (1.0 - share)
    if shown.dtype.kind == "f":
        return mixed.astype(shown.dtype)
    return np.rint(np.clip(mixed, 0.0, white)).astype(shown.dtype)


def _bytes_on_white(shown: Planes, opacity: Planes, *, is_premultiplied: bool) -> Planes:
    """Do the same in whole numbers, with a quarter of the memory."""
    share = opacity.astype(np.uint16)
    rest = 255 - share
    if is_premultiplied:
        return np.minimum(shown + rest, 255).astype(np.uint8)
    return ((shown.astype(np.uint32) * share + 255 * rest.astype(np.uint32) + 127) // 255).astype(
        np.uint8
    )
