"""Run a benchmark by its group and name: ``python -m benchmarks list | GROUP NAME [options]``."""

import ast
import runpy
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
STARTS = '\nif __name__ == "__main__":'
USAGE = "usage: python -m benchmarks list [GROUP] | GROUP NAME [options]"


def find_benchmarks() -> dict[tuple[str, str], Path]:
    """Return the file of every benchmark by (group, name): the modules that can be run."""
    found = {}
    for path in sorted(HERE.rglob("*.py")):
        if path.parent != HERE and STARTS in path.read_text(encoding="utf-8"):
            found[path.parent.name, path.stem] = path
    return found


def describe(path: Path) -> str:
    """Return the first line of a module's docstring."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    return docstring.splitlines()[0] if docstring else ""


def list_benchmarks(group: str | None) -> None:
    """Print the names of all benchmarks, or of one group, with what each measures."""
    last = None
    for (own_group, name), path in find_benchmarks().items():
        if group is None or own_group == group:
            if own_group != last:
                print(f"\n{own_group}" if last else own_group)
            last = own_group
            print(f"  {name:22} {describe(path)}")


def main(words: list[str]) -> None:
    """Run what the words name, or print what can be run."""
    benchmarks = find_benchmarks()
    groups = sorted({group for group, _ in benchmarks})
    if not words or words[0] in {"-h", "--help"}:
        print(USAGE)
        print(f"groups: {', '.join(groups)}")
        return
    if words[0] == "list":
        group = words[1] if len(words) > 1 else None
        if group is not None and group not in groups:
            raise SystemExit(f"There is no group {group!r}. Groups: {', '.join(groups)}.")
        list_benchmarks(group)
        return
    if words[0] not in groups:
        raise SystemExit(f"There is no group {words[0]!r}. Groups: {', '.join(groups)}.")
    names = [name for group, name in benchmarks if group == words[0]]
    if len(words) < 2 or words[1] not in names:
        raise SystemExit(f"{USAGE}\nNames in {words[0]}: {', '.join(names)}.")
    path = benchmarks[words[0], words[1]]
    module = ".".join(path.relative_to(HERE.parent).with_suffix("").parts)
    sys.argv = [module, *words[2:]]
    runpy.run_module(module, run_name="__main__", alter_sys=True)  # classes of it pickle


if __name__ == "__main__":
    main(sys.argv[1:])
