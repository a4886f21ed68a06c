# Sourced by the other commands: a virtual environment with what the given files of requirements name.
# Sets $python and $instance. VENV moves the environment; PYTHON names the Python that it is made with.
say() { printf '%s\n' "$*"; }
fail() {
  say "$*" >&2
  exit 1
}

find_python() {
  local name
  for name in ${PYTHON:-python3.13 python3.12 python3.11 python3 python}; do
    if command -v "$name" > /dev/null && "$name" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2> /dev/null; then
      command -v "$name"
      return
    fi
  done
  say "Bethe Hall needs Python 3.11 or newer with the venv module." >&2
  return 1
}

# Python keeps what it compiled, even where the environment of containers tells it not to: every process
# of the product would compile its libraries anew, six processor seconds each.
unset PYTHONDONTWRITEBYTECODE
venv=${VENV:-$PWD/.venv}
python=$venv/bin/python
instance=${BETHE_HALL_INSTANCE:-$PWD/instance}
if ! mkdir -p -m 700 "$instance" 2> /dev/null || [ ! -w "$instance" ]; then
  fail "$instance cannot be written by this user. Choose a folder that can: BETHE_HALL_INSTANCE=/a/folder bin/start"
fi

if [ ! -x "$python" ]; then
  say "Making a virtual environment in $venv"
  found=$(find_python) || exit 1
  if ! "$found" -m venv "$venv" > /dev/null 2>&1; then
    fail "The virtual environment $venv cannot be made. Choose a folder that this user can write: VENV=/a/folder bin/start"
  fi
fi
for file in "$@"; do
  stamp=$venv/installed-$(basename "$file")
  wanted=$(cat requirements*.txt | cksum)
  if [ "$(cat "$stamp" 2> /dev/null)" != "$wanted" ]; then
    say "Installing $file"
    # Python compiles what is used at its first import: compiling all of it takes pip as long as the rest.
    if ! "$python" -m pip install --quiet --no-compile --disable-pip-version-check --requirement "$file" \
      > "$venv/install.log" 2>&1; then
      fail "The packages of $file could not be installed: is there a network? $venv/install.log says more; bin/start goes on from here."
    fi
    printf '%s' "$wanted" > "$stamp"
  fi
done
unset stamp wanted file

# A word that changes when migrations, static files, requirements or the database do.
state_of_code() {
  {
    cat requirements.txt
    printf '%s\n' "${DATABASE_URL:-}" "$instance"
    cat webapp/settings.py
    find static webapp -name __pycache__ -prune -o -type f \( -path 'static/*' -o -path '*/migrations/*.py' \) -exec cksum {} + | sort
  } | cksum
}
