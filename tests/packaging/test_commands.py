"""What the commands of `bin/` do before anything else."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def test_compiled_files_are_kept_whatever_the_environment_says(tmp_path: Path) -> None:
    """Images for containers set it; every process then compiled its libraries for seconds."""
    told = {
        "PYTHONDONTWRITEBYTECODE": "1",
        "VENV": sys.prefix,
        "BETHE_HALL_INSTANCE": str(tmp_path / "instance"),
    }
    line = 'source bin/prepare.sh && "$python" -c "import sys; print(sys.dont_write_bytecode)"'
    done = subprocess.run(
        ["bash", "-c", line], cwd=ROOT, env=os.environ | told, capture_output=True, text=True
    )
    assert done.stdout == "False\n", done.stderr
