# Starts a node's first process in namespaces of its own; arguments: the node's folder, the name of its cgroups.
#
# Cgroups are the one thing that outlives the processes in them. A janitor in a session of its own removes them when
# nobody holds the other end of its standard input any more: the first process and its parent do, until they end.
set -euo pipefail
folder=$1 name=$2

janitor='
read -r line
for try in {1..100}; do
    left=$(find /sys/fs/cgroup -maxdepth 2 -type d -name "$1" 2>/dev/null)
    [[ -n $left ]] || exit 0
    find $left -depth -type d -exec rmdir {} \; 2>/dev/null
    sleep 0.1
done'
exec 4> >(exec setsid bash -c "$janitor" janitor "$name" >/dev/null 2>&1)

exec unshare --net --mount --pid --fork --kill-child --mount-proc bash "$folder/init.sh" "$folder" "$name"
