"""Decoder from bytes to text: Unicode, and code pages that are beyond doubt."""

import re

from engine.tabular.source import TableError

# If a file without a mark is not UTF-8, its bytes mean different letters in different code pages.
# It is read as Windows-1252 or as Mac OS Roman only if all its letters beyond ASCII belong to one
# of the languages that are written with it. Otherwise staff are asked to save it again, because a
# misread name is worse than a refused file.
_LANGUAGES = {
    "German": "äöüß",
    "French": "àâæçéèêëîïôœùûüÿ",
    "Spanish": "áéíñóúüªº",
    "Portuguese": "àáâãçéêíóôõúªº",
    "Italian": "àèéìòóùú",
    "Nordic": "åäöæøéü",
    "Dutch": "áèéêëïóöü",
    "Catalan": "àçèéíïòóúü",
}
_HEAD = 2_000  # characters examined to detect the encoding
# Characters of no text: control characters, halves of characters, and unassigned ones.
_NO_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ue000-\uf8ff\ufffe\uffff]")
_MARKS = set("€‚„…‘’“”•–—™ ¡¢£¥§©«»°±·¿½¼¾\u00ad´×")
# Patterns of no word of these languages: three letters beyond ASCII in a row or no others, an
# accent of Italian within a word, a capital behind small letters, a sign inside a word.
_STRANGE = re.compile(
    r"[^\W\x00-\x7f]{3}"
    r"|[ìò](?=\w)"
    r"|(?<![^\W\d_])[^\W\x00-\x7f]{2,}(?![^\W\d_])"
    r"|[^\W\d_][À-ÖØ-Þ](?=[a-zà-öø-ÿ])|[a-zà-öø-ÿ][À-ÖØ-ÞŠŽŒ]"
    r"|[¢£¥©±´½¼¾×¡¿‚„†§·™»«][^\W\x00-\x7f](?![^\W\d_])"
    r"|[¢£¥±§×·™¬»][^\W\d_]|[^\W\d_][¢£¥±§×·¬«]"
)
_UTF32 = (b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff")

# The most common characters of Chinese forms and names. Bytes of other code pages read as GB 18030
# become characters spread evenly over thousands. These are a tenth of them.
_USUAL_HAN = frozenset(
    "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里用道行所"
    "然家种事成方多经么去法学如都同现当没动面起看定天分还进好小部其些主样理心她本前开但因只从想实日军者意无力它与"
    "长把机十民第公此已工使情明性知全三又关点正业外将两高间由问很最重并物手应战向头文体政美相见被利什二等产或新己"
    "制身果加西斯月话合回特代内信表化老给世位次度门任常先海通教儿原东声提立及比员解水名真论处走义各入几口认条平系"
    "气题活尔更别打女变四神总何电数安少报才结反受目太量再感建务做接必场件计管期市直德资命山金指克许统区保至队形社"
    "便空决治展马科司五基眼书非则听白却界达光放强即像难且权思王象完设式色路记南品住告类求据程北边死张该交规万取拉"
    "格望觉术领共确传师观清今切院让识候带导争运男李刘陈杨黄赵吴周徐孙胡朱林郭罗梁宋郑谢韩唐冯董萧曹袁邓傅沈曾彭"
    "吕苏卢蒋蔡贾丁魏薛叶阎余潘杜戴夏钟汪田姜范石姚谭廖邹熊孔秦邱侯邵孟龙段雷汤尹黎易武贺赖伟芳娜敏静丽强磊军"
    "洋勇艳杰娟涛超秀霞刚桂英华玉兰红建文浩宇轩怡欣睡觉早晚起床吸烟喝酒安静吵闹整洁干净宿舍房间室友从偶尔经总"
    "否愿满喜欢点钟左右以前号生姓性别年龄级专班班级音乐运动"
)


def decode(data: bytes, delimiters: str) -> tuple[str, str]:
    """Return the text and the name of its encoding; raise TableError if it is in doubt."""
    if data.startswith(_UTF32):
        return _decode_marked(data, "utf-32"), "UTF-32"
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return _decode_marked(data, "utf-16"), "UTF-16"
    unmarked = unmarked_utf16(data)
    if unmarked:
        return _decode_marked(data, unmarked), "UTF-16"
    try:
        return data.decode("utf-8-sig"), "UTF-8"
    except UnicodeDecodeError as error:
        for name, shown in (("cp1252", "Windows-1252"), ("mac_roman", "Mac OS Roman")):
            text = _western(data, name)
            if text is not None:
                return text, shown
        text = _chinese(data)
        if text is not None:
            return text, "GB 18030"
        raise _not_utf8(data, error, delimiters) from error


def unmarked_utf16(data: bytes) -> str:
    """Return the encoding of UTF-16 that lost its mark; "" if the bytes are not UTF-16.

    In UTF-16, line ends and cell delimiters are characters of their own, and no control
    character appears. Latin text has a zero in every second byte; other alphabets need only
    the first two conditions.
    """
    head = data[: 2 * _HEAD]
    if b"\x00" not in head or len(data) % 2:
        return ""
    for name in ("utf-16-le", "utf-16-be"):
        text = head.decode(name, "ignore")
        if re.search(r"[\r\n]", text) and re.search(r"[\t,;|]", text) and not _NO_TEXT.search(text):
            return name
    return ""


def _decode_marked(data: bytes, name: str) -> str:
    try:
        return data.decode(name)
    except UnicodeDecodeError as error:
        raise TableError(
            f"The file begins like {name[:6].upper()} text but is not. "
            "Save the file as “CSV UTF-8”."
        ) from error


def _western(data: bytes, name: str) -> str | None:
    """Return the text in a code page of Western Europe; None if its letters fit no language.

    Mac OS Roman is rare. It is chosen only if the same bytes make no words in the code page of
    Central Europe, where "Žena" would be "éena".
    """
    try:
        text = data.decode(name)
    except UnicodeDecodeError:
        return None
    beyond = {c for c in text.lower() if not c.isascii()} - _MARKS
    if _STRANGE.search(text) or not any(beyond <= set(letters) for letters in _LANGUAGES.values()):
        return None
    if name == "mac_roman":
        central = data.decode("cp1250", "replace")
        is_sure = bool(beyond) and (_STRANGE.search(central) or "\ufffd" in central)
        return text if is_sure else None
    return text


def _chinese(data: bytes) -> str | None:
    """Return the text in GB 18030 if most characters are the most common ones of Chinese."""
    try:
        text = data.decode("gb18030")
    except UnicodeDecodeError:
        return None
    beyond = [c for c in text if not c.isascii()]
    han = [c for c in beyond if "\u4e00" <= c <= "\u9fff"]
    marks = [c for c in beyond if "\u3000" <= c <= "\u303f" or "\uff00" <= c <= "\uffef"]
    marks += [c for c in beyond if c in "“”‘’…—·–"]
    usual = sum(c in _USUAL_HAN for c in han)
    is_text = len(han) + len(marks) == len(beyond) and not _NO_TEXT.search(text)
    return text if han and is_text and usual >= 0.6 * len(han) else None


def _not_utf8(data: bytes, error: UnicodeDecodeError, delimiters: str) -> TableError:
    before = data[: error.start]
    row = before.count(b"\n") + 1
    line = before.rsplit(b"\n", 1)[-1].decode("utf-8", "replace")
    header = data.split(b"\n", 1)[0].decode("utf-8", "replace")
    position = line.count(max(delimiters, key=header.count)) + 1
    return TableError(
        f"Row {row:,}, column {position}: the text is not UTF-8, and its letters could be of "
        "several alphabets. Save the file as “CSV UTF-8”."
    )
