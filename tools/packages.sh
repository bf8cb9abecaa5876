# For quickstart.sh and test/run.sh: find out what is missing, and install it with apt.  Sourced, not run.
#
#   want PACKAGE command NAME     NAME is in PATH
#   want PACKAGE library NAME     pkg-config knows NAME
#   want PACKAGE file PATH...     one of the paths is there
# collect what is missing in $missing; install_missing installs it, or says what to do and fails.
missing=

want() {
    package=$1 kind=$2
    shift 2
    case $kind in
    command) command -v "$1" >/dev/null 2>&1 && return ;;
    library) pkg-config --exists "$1" >/dev/null 2>&1 && return ;;
    file) for path; do [ -e "$path" ] && return; done ;;
    esac
    case " $missing " in *" $package "*) ;; *) missing="$missing${missing:+ }$package" ;; esac
}

# What building takes.
want_build() {
    want meson command meson
    want ninja-build command ninja
    want pkg-config command pkg-config
    command -v cc >/dev/null 2>&1 || want gcc command gcc
    want libc6-dev file /usr/include/stdio.h
    want zlib1g-dev library zlib
    want libcjson-dev library libcjson
    want libdw-dev library libdw
    want libelf-dev library libelf
    want libunwind-dev library libunwind
}

install_missing() {
    [ -n "$missing" ] || return 0
    if ! command -v apt-get >/dev/null 2>&1; then
        echo "Missing, and there is no apt here to install it with: $missing" >&2
        echo "Install what these Debian packages hold, then run this again." >&2
        return 1
    fi
    as_root=
    if [ "$(id -u)" -ne 0 ]; then
        if ! command -v sudo >/dev/null 2>&1 || ! { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
            echo "Missing: $missing" >&2
            echo "Run as root: apt-get install --no-install-recommends $missing" >&2
            return 1
        fi
        as_root=sudo
    fi
    echo "Installing: $missing"
    DEBIAN_FRONTEND=noninteractive
    export DEBIAN_FRONTEND
    log=$(mktemp "${TMPDIR:-/tmp}/cudamem-apt-XXXXXX") || return 1
    # Package lists may be there and current enough; they are fetched only if the first attempt fails.
    # shellcheck disable=SC2086
    if $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing >"$log" 2>&1 ||
        { $as_root apt-get update >"$log" 2>&1 &&
            $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing >>"$log" 2>&1; }; then
        rm -f "$log"
        missing=
        return 0
    fi
    tail -5 "$log" >&2
    rm -f "$log"
    echo "apt could not install: $missing" >&2
    return 1
}
