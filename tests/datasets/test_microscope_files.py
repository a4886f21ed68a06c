"""Files of microscopes' own programs, made here byte by byte as their makers document them."""

import io
import struct
import sys

import numpy as np
import pytest

from engine.core.errors import InvalidProblemError
from engine.datasets.calibration import PixelSize
from engine.datasets.picture_view import read_picture

PIXELS = (np.arange(6 * 8, dtype=np.uint16).reshape(6, 8) * 100).astype(np.uint16)


def segment(kind: bytes, body: bytes) -> bytes:
    return kind.ljust(16, b"\0") + struct.pack("<qq", len(body), len(body)) + body


def czi(planes: np.ndarray, *, axis: bytes = b"C", is_cut: bool = False) -> bytes:
    """A CZI of planes along one axis, each an uncompressed block of Gray16."""
    head_size = 32 + 512

    def entry(number: int, place: int) -> bytes:
        sizes = [(b"X", 0, 8), (b"Y", 0, 6), (axis, number, 1)]
        rows = [struct.pack("<4siifi", name, start, size, 0.0, size) for name, start, size in sizes]
        head = struct.pack("<2siqiiBB4si", b"DV", 1, place, 0, 0, 0, 0, b"", len(rows))
        return head + b"".join(rows)

    blocks, entries, place = [], [], head_size
    for number, plane in enumerate(planes):
        data = plane.astype("<u2").tobytes()
        one = entry(number, place)
        pad = b"\0" * max(240 - len(one), 0)
        body = struct.pack("<iiq", 0, 0, len(data)) + one + pad + data
        blocks.append(segment(b"ZISRAWSUBBLOCK", body))
        entries.append(one)
        place += len(blocks[-1])
    directory = segment(b"ZISRAWDIRECTORY", struct.pack("<i124x", len(entries)) + b"".join(entries))
    xml = b"<ImageDocument><Metadata><Scaling><Items>"
    for side, value in (("X", "5e-07"), ("Y", "2e-06")):
        xml += f'<Distance Id="{side}"><Value>{value}</Value></Distance>'.encode()
    xml += b"</Items></Scaling></Metadata></ImageDocument>"
    metadata = segment(b"ZISRAWMETADATA", struct.pack("<ii248x", len(xml), 0) + xml)
    head = struct.pack(
        "<iiii16s16siqqiq", 1, 0, 0, 0, b"", b"", 0, place, place + len(directory), 0, 0
    )
    content = segment(b"ZISRAWFILE", head.ljust(512, b"\0"))
    content += b"".join(blocks) + directory + metadata
    return content[: head_size + 200] if is_cut else content


def lif(pictures: int = 1) -> bytes:
    """A LIF of pictures of 8 x 6 pixels and sixteen bits."""
    elements = ""
    for number in range(pictures):
        elements += f"""<Element Name="Image{number}" UniqueID="u{number}"><Data><Image>
<ImageDescription><Channels><ChannelDescription DataType="0" ChannelTag="0" Resolution="16"
NameOfMeasuredQuantity="" Min="0" Max="65535" Unit="" LUTName="Gray" IsLUTInverted="0"
BytesInc="0" BitInc="0"/></Channels><Dimensions>
<DimensionDescription DimID="1" NumberOfElements="8" Origin="0" Length="3.5e-06" Unit="m"
BitInc="0" BytesInc="2"/>
<DimensionDescription DimID="2" NumberOfElements="6" Origin="0" Length="1e-05" Unit="m"
BitInc="0" BytesInc="16"/></Dimensions></ImageDescription></Image></Data>
<Memory Size="96" MemoryBlockID="MemBlock_{number}"/></Element>"""
    xml = (
        '<LMSDataContainerHeader Version="2"><Element Name="test" UniqueID="u"><Data/>'
        f'<Memory Size="0" MemoryBlockID="MemBlock_none"/><Children>{elements}</Children>'
        "</Element></LMSDataContainerHeader>"
    )
    text = xml.encode("utf-16-le")
    content = struct.pack("<IIBI", 0x70, len(text) + 5, 0x2A, len(text) // 2) + text
    for number in range(pictures):
        name = f"MemBlock_{number}"
        letters = name.encode("utf-16-le")
        content += struct.pack("<IIB", 0x70, len(letters) + 14, 0x2A)
        content += struct.pack("<QBI", 96, 0x2A, len(name)) + letters
        content += PIXELS.astype("<u2").tobytes()
    return content


def nd2(*, is_calibrated: bool = True) -> bytes:
    """An ND2 of version 2.1: chunks by name, and a map of them at the end."""

    def variant(*rows: str) -> bytes:
        inner = "".join(rows)
        listed = f'<no_name runtype="CLxListVariant">{inner}</no_name>'
        return f'<variant version="1.0">{listed}</variant>'.encode()

    def number(name: str, value: float, kind: str = "lx_uint32") -> str:
        return f'<{name} runtype="{kind}" value="{value}"/>'

    attributes = variant(
        *(number(name, value) for name, value in {
            "uiWidth": 8, "uiHeight": 6, "uiWidthBytes": 16, "uiComp": 1, "uiBpcInMemory": 16,
            "uiBpcSignificant": 16, "uiSequenceCount": 1, "eCompression": 2,
        }.items())
    )  # fmt: skip
    probe = f"<pFluorescentProbe>{number('m_sName', 0)}</pFluorescentProbe>"
    plane = f"<sPlaneNew><a0>{number('uiCompCount', 1)}{probe}</a0></sPlaneNew>"
    planes = f"<sPicturePlanes>{number('uiCount', 1)}{plane}</sPicturePlanes>"
    metadata = variant(
        planes,
        number("dCalibration", 0.25, "double"),
        number("bCalibrated", str(is_calibrated).lower(), "bool"),
    )
    chunks = {
        b"ImageAttributes!": attributes,
        b"ImageMetadataSeq|0!": metadata,
        b"ImageDataSeq|0!": bytes(8) + PIXELS.astype("<u2").tobytes(),
    }
    magic = 0x0ABECEDA
    content = struct.pack("<IIQ32s64s", magic, 32, 64, b"ND2 FILE SIGNATURE CHUNK NAME01!",
                          b"Ver2.1")  # fmt: skip
    places = {}
    for name, data in chunks.items():
        places[name] = len(content), len(data)
        room = 4072 if name.startswith(b"ImageDataSeq") else 64
        content += struct.pack("<IIQ", magic, room, len(data)) + name.ljust(room, b"\0") + data
    place = len(content)
    listed = b"".join(name + struct.pack("<QQ", *at) for name, at in places.items())
    listed += b"ND2 CHUNK MAP SIGNATURE 0000001!" + struct.pack("<Q", place)
    name = b"ND2 FILEMAP SIGNATURE NAME 0001!"
    content += struct.pack("<IIQ", magic, len(name), len(listed)) + name + listed
    return content


MADE = {"czifile": lambda: czi(PIXELS[np.newaxis]), "liffile": lif, "nd2": nd2}
SIZES = {
    "czifile": PixelSize(0.5, 2.0),
    "liffile": PixelSize(0.5, 2.0),
    "nd2": PixelSize(0.25, 0.25),
}


@pytest.mark.parametrize("package", MADE)
def test_a_microscope_s_own_file_is_read_with_its_scale(package: str) -> None:
    pytest.importorskip(package, reason=f"{package} is not installed")
    picture = read_picture(MADE[package](), name="a")
    assert picture.stack is not None
    assert np.array_equal(picture.stack.planes.squeeze(), PIXELS)
    assert picture.pixel_size is not None
    assert picture.pixel_size.x == pytest.approx(SIZES[package].x)
    assert picture.pixel_size.y == pytest.approx(SIZES[package].y)


@pytest.mark.parametrize("package", MADE)
def test_without_its_reader_it_is_refused_by_name(package: str, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InvalidProblemError, match=f"a: .* where the package {package} is"):
        read_picture(MADE[package](), name="a")


@pytest.mark.parametrize("package", MADE)
def test_cut_off_anywhere_it_is_refused_in_words(package: str) -> None:
    pytest.importorskip(package, reason=f"{package} is not installed")
    whole = MADE[package]()
    for end in range(16, len(whole), max(1, len(whole) // 37)):
        with pytest.raises(InvalidProblemError, match=r"^a: "):
            read_picture(whole[:end], name="a")


def test_channels_of_a_czi_are_channels() -> None:
    pytest.importorskip("czifile", reason="czifile is not installed")
    stack = read_picture(czi(np.stack([PIXELS, PIXELS // 2]))).stack
    assert stack is not None
    assert np.array_equal(stack.planes, np.stack([PIXELS, PIXELS // 2])[np.newaxis])


def test_several_pictures_or_scenes_of_one_file_are_refused() -> None:
    pytest.importorskip("liffile", reason="liffile is not installed")
    with pytest.raises(InvalidProblemError, match="holds 2 pictures, but a file can have only one"):
        read_picture(lif(2), name="a.lif")
    pytest.importorskip("czifile", reason="czifile is not installed")
    with pytest.raises(InvalidProblemError, match="holds 2 positions or views"):
        read_picture(czi(np.stack([PIXELS, PIXELS]), axis=b"S"), name="a.czi")


def test_what_an_nd2_does_not_calibrate_has_no_size() -> None:
    """Its reader gives a micrometre for what is not known."""
    pytest.importorskip("nd2", reason="nd2 is not installed")
    assert read_picture(nd2(is_calibrated=False)).pixel_size is None


def test_the_made_files_begin_as_their_kinds_do() -> None:
    heads = {"czifile": b"ZISRAWFILE", "liffile": b"\x70\0\0\0", "nd2": b"\xda\xce\xbe\x0a"}
    for package, head in heads.items():
        assert io.BytesIO(MADE[package]()).read(len(head)) == head
