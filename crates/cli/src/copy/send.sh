# In the sandbox: sends what is at $1 as a tar, a folder as its contents.
if [ -d "$1" ]; then
    cd "$1" && exec tar -cf - .
elif [ -e "$1" ]; then
    case $1 in
    */*) folder=${1%/*} folder=${folder:-/} ;;
    *) folder=. ;;
    esac
    cd "$folder" && exec tar -chf - "./${1##*/}"
else
    echo "$1: no such file or folder" >&2
    exit 1
fi
