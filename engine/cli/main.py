"""Command line that finds the verb, runs it, and prints its result with an exit code.

A verb is a module of ``engine.cli`` that is imported only when it is called. It exposes

    add_arguments(parser)            its own options; sub-verbs are subparsers of ``parser``
    run(args) -> dict[str, Any]      does the work; the dictionary is what ``--json`` prints
    render(result) -> str            optional: what is printed without ``--json``

and finds in ``args``, beside its own options, ``json`` (bool), ``seed`` (int or None) and
``on_progress`` (reports to stderr when that is a terminal). It raises InvalidProblemError for bad
input and InfeasibleError if no solution exists; no verb calls ``sys.exit``.

Exit codes: 0 success, 1 infeasible or failed, 2 bad input, 130 interrupted.
"""

import argparse
import importlib
import io
import json
import os
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any, NoReturn

from engine.cli.json_line import to_json_line
from engine.cli.option_types import whole_number_from
from engine.cli.terminal_progress import progress_callback, say_compiling
from engine.core.errors import (
    CertificateError,
    InfeasibleError,
    InvalidProblemError,
    StoppedError,
)
from engine.kernels.work_time import on_first_compilation

VERBS = {
    "match": "maximum-weight matching of a graph file",
    "roommates": "train, assign, rooms, evaluate, simulate: learn what makes good roommates",
    "segment": "train, predict, evaluate: learn to segment images",
    "uai": "map, pr, mar: inference on a factor graph in the UAI format",
}

UTF8 = {"utf-8", "utf8"}

_DESCRIPTION = "Matching, roommates, images and factor graphs from the command line."
_SHARED_HELP = "--json: one JSON object as the last line; --seed N: seed of every random choice"


class _Parser(argparse.ArgumentParser):
    """Parser that reports a wrong option like any other bad input: as one clear line.

    Verbs and their actions are parsers of this class too. Their help ends with the shared options.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"epilog": f"also: {_SHARED_HELP}"} | options)

    def error(self, message: str) -> NoReturn:
        raise InvalidProblemError(f"{self.prog}: {message} (see {self.prog} --help).")


def main(arguments: Sequence[str]) -> int:
    """Run one verb and return the exit code.

    Parameters
    ----------
    arguments : sequence of str
        The words after ``python -m engine``.

    Returns
    -------
    int
        0 on success, 1 when infeasible or failed, 2 on bad input, 130 when interrupted.
    """
    as_json = "--json" in arguments
    _write_utf8()
    if sys.stderr.isatty():
        on_first_compilation(say_compiling)
    try:
        shared, rest = _parse_shared(arguments)
        verb, args = _parse_verb(rest)
        args.json, args.seed, args.on_progress = shared.json, shared.seed, progress_callback()
        result = verb.run(args)
        _print_result(verb, result, as_json=shared.json)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of our output is gone; the rest of the output cannot be delivered.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except InfeasibleError as error:
        return _fail(1, error, as_json=as_json, deficient_set=list(error.deficient_set))
    except (CertificateError, StoppedError) as error:
        return _fail(1, error, as_json=as_json)
    except MemoryError:
        return _fail(1, "not enough memory for this problem.", as_json=as_json)
    except (InvalidProblemError, OSError, UnicodeError) as error:
        return _fail(2, _sentence_of(error), as_json=as_json)
    except KeyboardInterrupt:
        print("error: interrupted.", file=sys.stderr)
        return 130
    return 0


def _write_utf8() -> None:
    """Write UTF-8 whatever the console's encoding, which may lack letters of names.

    A terminal of another encoding keeps it, and shows missing letters by their numbers.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower() not in UTF8:
            if stream.isatty():
                stream.reconfigure(errors="backslashreplace")
            else:
                stream.reconfigure(encoding="utf-8")


def _parse_shared(arguments: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """Parse the options that every verb has, wherever they stand on the line."""
    parser = _Parser(prog="python -m engine", add_help=False, allow_abbrev=False)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seed", type=whole_number_from(0))
    return parser.parse_known_args(list(arguments))


def _parse_verb(arguments: list[str]) -> tuple[ModuleType, argparse.Namespace]:
    """Find the verb's module and parse its own options; only that module is imported."""
    parser = _Parser(prog="python -m engine", description=_DESCRIPTION)
    listing = "\n".join(f"  {name:<11}{text}" for name, text in VERBS.items())
    parser.usage = "python -m engine VERB [options]"
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = f"verbs:\n{listing}\n\nevery verb: {_SHARED_HELP}"
    parser.add_argument("verb", choices=tuple(VERBS), metavar="VERB", help="one of the verbs below")
    name: str = parser.parse_args(arguments[:1]).verb
    module = importlib.import_module(f"engine.cli.{name}")
    verb_parser = _Parser(
        prog=f"python -m engine {name}",
        description=module.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    module.add_arguments(verb_parser)
    return module, verb_parser.parse_args(arguments[1:])


def _print_result(verb: ModuleType, result: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print(to_json_line(result))
        return
    render = getattr(verb, "render", _render)
    text = render(result)
    if text:
        print(text)


def _render(result: dict[str, Any]) -> str:
    """Return one ``name: value`` line per number or word; longer results stay in files."""
    lines = []
    for name, value in result.items():
        if isinstance(value, float):
            lines.append(f"{name.replace('_', ' ')}: {value:.10g}")
        elif isinstance(value, str | int):
            lines.append(f"{name.replace('_', ' ')}: {value}")
        else:
            lines.append(f"{name.replace('_', ' ')}: {json.dumps(value, default=str)}")
    return "\n".join(lines)


def _sentence_of(error: Exception) -> str:
    """Return the error as a sentence; operating-system errors get their file and reason."""
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror[0].lower()}{error.strerror[1:]}."
    if isinstance(error, UnicodeError):
        return f"the input is not UTF-8 text: {error}."
    return str(error)


def _fail(code: int, error: Exception | str, *, as_json: bool, **details: Any) -> int:
    sentence = " ".join(str(error).split())
    print(f"error: {sentence}", file=sys.stderr)
    if as_json:
        print(to_json_line({"error": sentence} | details))
    return code
