# In the sandbox: puts what a tar on stdin calls `new` where $1 says, as $2 if that is a folder.
# Everything arrives beside its place first, and is renamed when all of it is there.
place() {
    if [ -d "$1" ] && [ ! -L "$1" ]; then
        if [ -L "$2" ] || { [ -e "$2" ] && [ ! -d "$2" ]; }; then
            echo "$2 is not a folder" >&2
            return 1
        fi
        if [ ! -d "$2" ]; then
            mv "$1" "$2"
            return
        fi
        for child in "$1"/* "$1"/.[!.]* "$1"/..?*; do
            if [ -e "$child" ] || [ -L "$child" ]; then
                place "$child" "$2/${child##*/}" || return 1
            fi
        done
        return 0
    fi
    if [ -L "$2" ]; then
        rm -f "$2"
    elif [ -d "$2" ]; then
        echo "$2 is a folder" >&2
        return 1
    fi
    mv -f "$1" "$2"
}

to=$1
if [ -d "$to" ]; then
    if [ -n "$2" ]; then to=${to%/}/$2; else to=${to%/}/.; fi
else
    case $to in
    */)
        echo "$to: no such folder" >&2
        exit 1
        ;;
    esac
fi
case $to in
*/*) folder=${to%/*} folder=${folder:-/} ;;
*) folder=. ;;
esac
arrived=$(mktemp -d "$folder/.tidegate-XXXXXX") || exit 1
trap 'rm -rf "$arrived"' EXIT
trap 'exit 1' HUP INT TERM
tar -xpof - -C "$arrived" && place "$arrived/new" "$to"
