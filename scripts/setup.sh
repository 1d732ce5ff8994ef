#!/bin/sh
# Makes the virtual environment, or does nothing when it is up to date: setup.sh VENV [PYTHON]
# Messages go to standard error: `make translate > file` must hold translations alone.
set -eu

venv=$1
wanted=${2:-}
python=$venv/bin/python
# Written when all is installed. It holds the checkout's path, for the editable install points
# there: in a copy of the checkout it would run the original's code.
stamp=$venv/.zhen-installed
# Lies there from the first package to the last. pip takes a half-written package for installed,
# so an interrupted installation starts from an empty environment.
unfinished=$venv/.zhen-unfinished

fail() { echo "error: $*" >&2; exit 1; }
version() { "$1" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2>/dev/null || true; }
supported() { case $(version "$1") in 3.10.* | 3.11.* | 3.12.* | 3.13.*) ;; *) false ;; esac; }
same_python() { [ "$(version "$python")" = "$(version "$1")" ]; }
up_to_date() {
    [ -x "$python" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$(pwd -P)" ] &&
        ! [ requirements.lock -nt "$stamp" ] && ! [ pyproject.toml -nt "$stamp" ]
}

if [ -n "$wanted" ]; then
    supported "$wanted" || fail "PYTHON=$wanted is $(version "$wanted" | sed 's/^$/no Python/'), but zhen needs Python 3.10, 3.11, 3.12 or 3.13"
    base=$wanted
fi
if up_to_date && { [ -z "$wanted" ] || same_python "$wanted"; }; then exit 0; fi

if [ -z "$wanted" ]; then
    base=
    for candidate in python3 python3.13 python3.12 python3.11 python3.10; do
        if supported "$candidate"; then base=$candidate; break; fi
    done
    [ -n "$base" ] || fail "zhen needs Python 3.10, 3.11, 3.12 or 3.13, and python3 is $(version python3 | sed 's/^$/not there/'): install one, or name it with PYTHON=/path/to/python3.12"
    # An environment made with another Python that will do stays as it is.
    if ! [ -e "$unfinished" ] && supported "$python"; then base=$python; fi
fi

if [ -e "$venv" ] && ! [ -e "$venv/pyvenv.cfg" ] && [ -n "$(ls -A "$venv")" ]; then
    fail "VENV=$venv is no virtual environment, so nothing is installed there: give another folder"
fi
echo "Installing into $venv with Python $(version "$base"); the first time takes some minutes." >&2
if [ -e "$unfinished" ] || ! same_python "$base" || ! "$python" -c 'import pip' 2>/dev/null; then
    "$base" -m venv --clear "$venv" >&2
fi
touch "$unfinished"
install() { "$python" -m pip install --quiet --no-input --disable-pip-version-check "$@" >&2; }
install -r requirements.lock
# The lock brings setuptools, so building needs no further download.
install --no-deps --no-build-isolation --editable .
pwd -P > "$stamp"
rm "$unfinished"
echo "Installed." >&2
