# Sourced by the other commands: a virtual environment with what the given files of requirements name.
# Sets $python and $instance. VENV moves the environment.
say() { printf '%s\n' "$*"; }

find_python() {
  local name
  for name in python3.13 python3.12 python3.11 python3 python; do
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
mkdir -p -m 700 "$instance"

if [ ! -x "$python" ]; then
  say "Making a virtual environment in $venv"
  "$(find_python)" -m venv "$venv"
fi
for file in "$@"; do
  stamp=$venv/installed-$(basename "$file")
  wanted=$(cat requirements*.txt | cksum)
  if [ "$(cat "$stamp" 2> /dev/null)" != "$wanted" ]; then
    say "Installing $file"
    # Python compiles what is used at its first import: compiling all of it takes pip as long as the rest.
    "$python" -m pip install --quiet --quiet --no-compile --disable-pip-version-check --requirement "$file"
    printf '%s' "$wanted" > "$stamp"
  fi
done
unset stamp wanted file

# A word that changes when migrations, static files, requirements or the database do.
state_of_code() {
  {
    cat requirements.txt
    printf '%s\n' "${DATABASE_URL:-}" "$instance"
    find static webapp -type f \( -path 'static/*' -o -path '*/migrations/*.py' \) -exec cksum {} + | sort
  } | cksum
}
