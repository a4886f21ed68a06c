"""Graphical models in the text formats of the UAI inference competitions."""

import gzip
import zlib
from codecs import BOM_UTF8
from pathlib import Path

import numpy as np

from engine.core.arguments import FloatArray
from engine.core.errors import InvalidProblemError
from engine.graphs.factor_graph import Factor, FactorGraph

# A table of more entries than this, or a variable of more states, is refused before anything is
# allocated (160 MB).
LARGEST_TABLE = 20_000_000


class _Tokens:
    """Words of a file, each with its number, for messages that say where."""

    def __init__(self, name: str, text: str) -> None:
        self._name = name
        self._words = text.split()
        self._next = 0
        if "_" in text:  # Python would read 1_0 as 10
            self._next = next(k for k, word in enumerate(self._words, 1) if "_" in word)
            raise self.fail(f"expected a number, received {self._words[self._next - 1][:20]!r}")

    def fail(self, problem: str) -> InvalidProblemError:
        """Return the error that says ``problem`` and where the reader stands."""
        return InvalidProblemError(f"{self._name}, word {self._next}: {problem}.")

    def word(self, wanted: str) -> str:
        """Take the next word."""
        if self._next >= len(self._words):
            self._next += 1
            raise self.fail(f"the file ends where {wanted} should be")
        self._next += 1
        return self._words[self._next - 1]

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

    def numbers(self, count: int, wanted: str) -> FloatArray:
        """Take ``count`` words as floating-point numbers."""
        words = self._words[self._next : self._next + count]
        if len(words) < count:
            self._next += len(words) + 1
            raise self.fail(f"the file ends where {wanted} should be")
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
                raise self.fail(f"{word[:20]!r} is not zero, but too small to be told from it")
        self._next += count
        return values

    @property
    def left(self) -> int:
        """Number of words not yet taken."""
        return len(self._words) - self._next


def _read_text(path: Path) -> str:
    try:
        data = path.read_bytes()
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
        return data.removeprefix(BOM_UTF8).decode("ascii")
    except FileNotFoundError:
        raise InvalidProblemError(f"{path}: there is no such file.") from None
    except (OSError, EOFError, zlib.error) as error:
        raise InvalidProblemError(f"{path.name}: the file cannot be read ({error}).") from None
    except UnicodeDecodeError:
        raise InvalidProblemError(f"{path.name}: this is not a text file.") from None


def read_uai(path: Path) -> FactorGraph:
    """Read a MARKOV or BAYES network, plain or gzip-compressed; a zero becomes -inf.

    Parameters
    ----------
    path : Path
        Compressed where the content is.

    Returns
    -------
    FactorGraph
        Log tables, nats.

    Raises
    ------
    InvalidProblemError
        If the file is absent, damaged or malformed; the message names the place by word number.

    References
    ----------
    The UAI 2008-2022 competition format: preamble (type, variables, cardinalities, scopes), then
    one table a scope, the last variable of a scope moving fastest.

    Examples
    --------
    >>> import tempfile
    >>> from engine.graphs.factor_graph import Factor
    >>> path = Path(tempfile.mkdtemp()) / "pair.uai"
    >>> write_uai(path, FactorGraph(np.array([2]), (Factor((0,), np.log([1.0, 3.0])),)))
    >>> read_uai(path).n_variables
    1
    """
    tokens = _Tokens(Path(path).name, _read_text(Path(path)))
    kind = tokens.word("MARKOV or BAYES")
    if kind.upper() not in {"MARKOV", "BAYES"}:
        raise tokens.fail(f"expected MARKOV or BAYES, received {kind[:20]!r}")
    n_variables = tokens.integer("the number of variables", 1, tokens.left)
    cards = [tokens.integer("a number of states", 1, LARGEST_TABLE) for _ in range(n_variables)]
    n_factors = tokens.integer("the number of factors", 0, tokens.left)
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


def read_uai_evidence(path: Path, graph: FactorGraph) -> dict[int, int]:
    """Read the observed state of each observed variable of ``graph``.

    Both forms are read: one line ``count variable state ...``, and the competition's, whose first
    line is the number of sets of evidence, each a line of that form. No set is no evidence.

    Parameters
    ----------
    path : Path
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
    path = Path(path)
    text = _read_text(path)
    lines = [line.split() for line in text.splitlines() if line.strip()]
    if len(lines) > 1 and len(lines[0]) == 1 and all(map(_is_set, lines[1:])):
        sets = len(lines) - 1
        if lines[0] != [str(sets)]:
            raise InvalidProblemError(
                f"{path.name}: {lines[0][0]} sets of evidence are stated, {sets} follow."
            )
        if sets > 1:
            raise InvalidProblemError(
                f"{path.name}: the file holds {sets} sets of evidence; leave one, with 1 before it."
            )
        text = " ".join(lines[1])
    tokens = _Tokens(path.name, text if lines else "0")
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


def _is_set(words: list[str]) -> bool:
    """Whether a line is a count of observed variables with that many pairs."""
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

    Log tables are exponentiated as they are: entries above 709 nats, and finite ones below -745,
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
        words += [str(len(vector)), *(f"{value:.12g}" for value in vector)]
    return "MAR\n" + " ".join(words)
