"""Graphical models in the text formats of the UAI inference competitions."""

import gzip
from pathlib import Path

import numpy as np

from engine.core.arguments import FloatArray
from engine.core.errors import InvalidProblemError, StoppedError
from engine.core.options import check_callables
from engine.core.progress import StopCallback, never_stop
from engine.core.text_file import TextSource, read_text
from engine.graphs.factor_graph import Factor, FactorGraph

# A table of more entries than this, or a variable of more states, is refused before anything is
# allocated (160 MB).
LARGEST_TABLE = 20_000_000
WORDS_AT_ONCE = 1_000_000  # 60 MB as strings


class _Tokens:
    """Words of a file, each with its number, for messages that name the place.

    ``WORDS_AT_ONCE`` are split off at a time: as strings they take many times the text's memory.
    """

    def __init__(self, name: str, text: str, should_stop: StopCallback = never_stop) -> None:
        self._name = name
        self._should_stop = should_stop
        self._rest = text
        self._words: list[str] = []
        self._place = 0  # index among the words that are split off
        self._next = 0  # words taken so far
        if "_" in text:  # Python would read 1_0 as 10
            place = text.index("_")
            before = text[:place].split()
            begun = bool(before) and not text[place - 1].isspace()
            self._next = len(before) + (not begun)
            word = (before[-1] if begun else "") + text[place : place + 20].split()[0]
            raise self.fail(f"expected a number, received {word[:20]!r}")

    def fail(self, problem: str) -> InvalidProblemError:
        """Return the error with ``problem`` and the reader's position."""
        return InvalidProblemError(f"{self._name}, word {self._next}: {problem}.")

    def word(self, wanted: str) -> str:
        """Take the next word."""
        self._next += 1
        if not self._split_off():
            raise self.fail(f"the file ends where {wanted} should be")
        self._place += 1
        return self._words[self._place - 1]

    def _split_off(self) -> bool:
        """Split off words if none are left; return True if there are any."""
        if self._place == len(self._words):
            if self._words and self._rest and self._should_stop():
                raise StoppedError(f"{self._name}: stopped after word {self._next:,}.")
            self._words = self._rest.split(None, WORDS_AT_ONCE)
            self._rest = self._words.pop() if len(self._words) > WORDS_AT_ONCE else ""
            self._place = 0
        return self._place < len(self._words)

    def integer(self, wanted: str, least: int, most: int | None = None) -> int:
        """Take the next word as a whole number of the given range."""
        word = self.word(wanted)
        try:
            number = int(word)
        except ValueError:
            raise self.fail(f"expected {wanted}, received {word[:20]!r}") from None
        if number < least or (most is not None and number > most):
            limits = f"{least} or more" if most is None else f"{least} to {most}"
            raise self.fail(f"{wanted} must be {limits}, received {number}")
        return number

    def count(self, wanted: str, least: int) -> int:
        """Take the next word as a number of things; each needs a further word."""
        number = self.integer(wanted, least)
        if number > self.left:
            raise self.fail(f"{wanted} is {number}, and the file is too short for that")
        return number

    def numbers(self, count: int, wanted: str) -> FloatArray:
        """Take ``count`` words as floating-point numbers."""
        values = np.empty(count)
        filled = 0
        while filled < count:
            if not self._split_off():
                self._next += 1
                raise self.fail(f"the file ends where {wanted} should be")
            words = self._words[self._place : self._place + count - filled]
            values[filled : filled + len(words)] = self._as_numbers(words, wanted)
            filled += len(words)
            self._place += len(words)
            self._next += len(words)
        return values

    def _as_numbers(self, words: list[str], wanted: str) -> FloatArray:
        """Return words as numbers; an error names a word by its place after the words taken."""
        try:
            values = np.array(words, dtype=np.float64)
        except ValueError:
            for word in words:
                self._next += 1
                try:
                    float(word)
                except ValueError:
                    break
            raise self.fail(f"expected {wanted}, received {word[:20]!r}") from None
        for word in dict.fromkeys(words[k] for k in np.flatnonzero(values == 0.0)):
            if word.lower().partition("e")[0].strip("+-.0"):
                self._next += words.index(word) + 1
                raise self.fail(f"{word[:20]!r} is not zero, but too small to differ from it")
        return values

    @property
    def left(self) -> int:
        """Return an upper bound on the remaining words: every one needs a space before it."""
        self._split_off()
        return len(self._words) - self._place + (len(self._rest) + 1) // 2


def _name_and_text(source: TextSource) -> tuple[str, str]:
    name = source.name if isinstance(source, Path) else "standard input"
    try:
        text = read_text(source)
    except FileNotFoundError:
        raise InvalidProblemError(f"{source}: there is no such file.") from None
    except OSError as error:
        raise InvalidProblemError(f"{name}: the file cannot be read ({error}).") from None
    if not text.isascii():
        raise InvalidProblemError(f"{name}: this is not a text file.")
    return name, text


def read_uai(path: TextSource, *, should_stop: StopCallback = never_stop) -> FactorGraph:
    """Read a MARKOV or BAYES network, plain or gzip-compressed; a zero becomes -inf.

    Parameters
    ----------
    path : Path, or a stream of bytes or text
        Compressed where the content is.
    should_stop : callable, optional
        Asked after every million words.

    Returns
    -------
    FactorGraph
        Log tables, nats.

    Raises
    ------
    InvalidProblemError
        If the file is absent, damaged or malformed; the message names the place by word number.
    StoppedError
        If ``should_stop`` returned True.

    References
    ----------
    The UAI 2008-2022 competition format: preamble (type, variables, cardinalities, scopes), then
    one table per scope, the last variable of a scope moving fastest.

    Examples
    --------
    >>> import tempfile
    >>> from engine.graphs.factor_graph import Factor
    >>> path = Path(tempfile.mkdtemp()) / "pair.uai"
    >>> write_uai(path, FactorGraph(np.array([2]), (Factor((0,), np.log([1.0, 3.0])),)))
    >>> read_uai(path).n_variables
    1
    """
    check_callables(should_stop=should_stop)
    tokens = _Tokens(*_name_and_text(path), should_stop)
    kind = tokens.word("MARKOV or BAYES")
    if kind.upper() not in {"MARKOV", "BAYES"}:
        raise tokens.fail(f"expected MARKOV or BAYES, received {kind[:20]!r}")
    n_variables = tokens.count("the number of variables", 1)
    cards = [tokens.integer("a number of states", 1, LARGEST_TABLE) for _ in range(n_variables)]
    n_factors = tokens.count("the number of factors", 0)
    scopes = []
    for _ in range(n_factors):
        arity = tokens.integer("the number of variables of a factor", 0, n_variables)
        scope = tuple(
            tokens.integer("a variable of a factor", 0, n_variables - 1) for _ in range(arity)
        )
        if len(set(scope)) != arity:
            raise tokens.fail("a factor names a variable twice")
        scopes.append(scope)
    factors = tuple(Factor(scope, _read_table(tokens, scope, cards)) for scope in scopes)
    if tokens.left:
        tokens.word("the end")
        raise tokens.fail("the file goes on after the last table")
    return FactorGraph(np.array(cards, dtype=np.int64), factors)


def read_uai_evidence(path: TextSource, graph: FactorGraph) -> dict[int, int]:
    """Read the observed state of each observed variable of ``graph``.

    Both forms are read: one line ``count variable state ...``, and the competition's, whose first
    line is the number of sets of evidence, each a line of that form. No set means no evidence.

    Parameters
    ----------
    path : Path, or a stream of bytes or text
    graph : FactorGraph, whose variables are observed.

    Returns
    -------
    dict of int to int, the state of each observed variable.

    Raises
    ------
    InvalidProblemError
        If the file is absent or malformed, names a variable or state that does not exist, or
        holds more than one set.

    References
    ----------
    Gogate et al., the UAI inference competitions since 2006: file formats.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "model.uai.evid"
    >>> _ = path.write_text("1 0 1")
    >>> read_uai_evidence(path, FactorGraph(np.array([2, 2]), ()))
    {0: 1}
    """
    name, text = _name_and_text(path)
    lines = [line.split() for line in text.splitlines() if line.strip()]
    if len(lines) > 1 and len(lines[0]) == 1 and all(map(_is_set, lines[1:])):
        sets = len(lines) - 1
        if lines[0] != [str(sets)]:
            raise InvalidProblemError(
                f"{name}: {lines[0][0]} sets of evidence are stated, {sets} follow."
            )
        if sets > 1:
            raise _several_sets(name, sets)
        text = " ".join(lines[1])
    tokens = _Tokens(name, text if lines else "0")
    try:
        return _read_set(tokens, graph)
    except InvalidProblemError:
        words = [word for line in lines for word in line]
        if _count_sets(words[1:]) == 1 and words[0] == "1":  # with its number, on one line
            return _read_set(_Tokens(name, " ".join(words[1:])), graph)
        stated, sets = _count_sets(words[1:]), _count_sets(words)
        if stated > 1 and words[0] == str(stated):
            raise _several_sets(name, stated) from None
        if sets > 1:
            raise _several_sets(name, sets) from None
        raise


def _read_set(tokens: _Tokens, graph: FactorGraph) -> dict[int, int]:
    """Read one set of evidence, which ends the file."""
    observed: dict[int, int] = {}
    for _ in range(tokens.integer("the number of observed variables", 0)):
        variable = tokens.integer("an observed variable", 0, graph.n_variables - 1)
        most = int(graph.cardinalities[variable]) - 1
        state = tokens.integer(f"the state of variable {variable}", 0, most)
        if observed.setdefault(variable, state) != state:
            raise tokens.fail(f"variable {variable} is observed in two states")
    if tokens.left:
        tokens.word("the end")
        raise tokens.fail("the file goes on after the last observed variable")
    return observed


def _several_sets(name: str, sets: int) -> InvalidProblemError:
    return InvalidProblemError(
        f"{name}: the file holds {sets} sets of evidence (samples); leave one, with 1 before it."
    )


def _count_sets(words: list[str]) -> int:
    """Return the number of sets of evidence, consecutive and none empty, in the words.

    The competitions' files hold several samples, on one line or on a line each.
    """
    sets, place = 0, 0
    while place < len(words):
        if not words[place].isdigit() or int(words[place]) == 0:
            return 0
        place += 1 + 2 * int(words[place])
        sets += 1
    return sets if place == len(words) else 0


def _is_set(words: list[str]) -> bool:
    """Return True if a line is a count of observed variables and that many pairs."""
    return words[0].isdigit() and len(words) == 1 + 2 * int(words[0])


def _read_table(tokens: _Tokens, scope: tuple[int, ...], cards: list[int]) -> FloatArray:
    shape = tuple(cards[v] for v in scope)
    size = 1
    for states in shape:
        size *= states
    stated = tokens.integer("the number of entries of a table", 1)
    if stated != size:
        raise tokens.fail(f"a table over {list(scope)} needs {size} entries, {stated} are stated")
    if size > LARGEST_TABLE:
        raise tokens.fail(f"a table of {size} entries is too large")
    values = tokens.numbers(size, "a table entry")
    if not (np.isfinite(values) & (values >= 0)).all():
        raise tokens.fail("the table before this word has an entry that is negative or not finite")
    with np.errstate(divide="ignore"):
        return np.log(values).reshape(shape)


def write_uai(path: Path, graph: FactorGraph) -> None:
    """Write a MARKOV network (gzip if the name ends in .gz); -inf becomes 0.

    Log tables are exponentiated unchanged: entries above 709 nats, and finite ones below -745,
    which would read as impossible, are refused.

    Parameters
    ----------
    path : Path
    graph : FactorGraph

    Raises
    ------
    InvalidProblemError
        If an entry cannot be written so that it is read back.

    Examples
    --------
    >>> import tempfile
    >>> from engine.graphs.factor_graph import Factor
    >>> path = Path(tempfile.mkdtemp()) / "pair.uai"
    >>> write_uai(path, FactorGraph(np.array([2]), (Factor((0,), np.log([1.0, 3.0])),)))
    >>> path.read_text().split()[0]
    'MARKOV'
    """
    lines = ["MARKOV", str(graph.n_variables), " ".join(str(int(c)) for c in graph.cardinalities)]
    lines.append(str(len(graph.factors)))
    lines += [" ".join(str(v) for v in (len(f.variables), *f.variables)) for f in graph.factors]
    for factor in graph.factors:
        if factor.table.size and factor.table.max() > 709:
            raise InvalidProblemError("A log table entry above 709 does not fit into a UAI file.")
        values = np.exp(factor.table)
        if (np.isfinite(factor.table) & (values == 0.0)).any():
            raise InvalidProblemError("A log table entry below -745 does not fit into a UAI file.")
        entries = " ".join(repr(float(value)) for value in values.ravel())
        lines += ["", str(factor.table.size), entries]
    text = "\n".join(lines) + "\n"
    path = Path(path)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())


def format_uai_marginals(marginals: list[FloatArray]) -> str:
    """Return the text of a ``.MAR`` file."""
    words = [str(len(marginals))]
    for vector in marginals:
        words.append(str(len(vector)))
        for first in range(0, len(vector), WORDS_AT_ONCE):
            numbers = vector[first : first + WORDS_AT_ONCE].tolist()
            words.append(" ".join(f"{value:.12g}" for value in numbers))
    return "MAR\n" + " ".join(words)
