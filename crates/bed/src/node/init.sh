# The first process of a node, in namespaces of its own; arguments: the node's folder, the name of its cgroups.
#
# It makes cgroups, a network and mounts in which the programs find the paths they expect, such as /var/lib/kubelet,
# while nothing changes for the rest of the machine. Then it waits: when it ends, everything in here ends.
set -euo pipefail
folder=$1 name=$2 stage=${3:-cgroups}

# The cgroup hierarchies, one a line: a single one (v2), or one for each set of controllers (v1).
hierarchies() {
    if [[ -f /sys/fs/cgroup/cgroup.controllers ]]; then
        echo /sys/fs/cgroup
    else
        local folder
        for folder in /sys/fs/cgroup/*; do
            [[ -L $folder || ! -f $folder/cgroup.procs ]] || echo "$folder"
        done
    fi
}

# Lets the cgroups below one (v2) use its controllers. Whatever cannot be shared is reported by runc when it is needed.
share_controllers() {
    local controller
    for controller in $(<"$1/cgroup.controllers"); do
        grep -qw "$controller" "$1/cgroup.subtree_control" || echo "+$controller" >"$1/cgroup.subtree_control" || true
    done
}

if [[ $stage == cgroups ]]; then
    [[ ! -f /sys/fs/cgroup/cgroup.controllers ]] || share_controllers /sys/fs/cgroup
    for hierarchy in $(hierarchies); do
        mkdir "$hierarchy/$name"
        for file in cpuset.cpus cpuset.mems; do # empty at first in v1, and then nobody can be in it
            [[ ! -f $hierarchy/cpuset.cpu_exclusive ]] || cat "$hierarchy/$file" >"$hierarchy/$name/$file"
        done
        echo 0 >"$hierarchy/$name/cgroup.procs"
    done
    # The namespace begins where this process is now.
    exec unshare --cgroup bash "$0" "$folder" "$name" network
fi

ip link set lo up
ip link add node0 type bridge
ip address add "$NODE_ADDRESS/24" dev node0
ip link set node0 up
ip route add default dev node0
echo 1 >/proc/sys/net/ipv4/ip_forward

# Everything under /run, /var/lib and /var/log that is written in here is seen in here only.
case $folder/ in
/run/* | /var/run/* | /var/lib/* | /var/log/*) hidden=1; mount --bind "$folder" /mnt ;;
*) hidden= ;;
esac
mount -t tmpfs -o mode=755 node /run
for place in lib log; do
    mkdir -p "/run/node/$place/upper" "/run/node/$place/work"
    mount -t overlay -o "lowerdir=/var/$place,upperdir=/run/node/$place/upper,workdir=/run/node/$place/work" node "/var/$place"
done
if [[ -n $hidden ]]; then
    mkdir -p "$folder"
    mount --bind /mnt "$folder"
    umount /mnt
fi
for place in /var/lib/kubelet /var/lib/containerd /var/log/pods; do
    mkdir -p "$place" "$folder/${place##*/}"
    mount --bind "$folder/${place##*/}" "$place"
done

# No DNS server can be reached: a lookup shall fail at once instead of waiting for one.
[[ ! -f /etc/resolv.conf ]] || mount --bind /dev/null /etc/resolv.conf

# kubelet wants these settings of the kernel, and would change them for the whole machine.
for setting in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 \
    kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
    file="/run/node/${setting//\//.}"
    echo "${setting#*=}" >"$file"
    mount --bind "$file" "/proc/sys/${setting%=*}"
done

# Each hierarchy begins at the node's own cgroup, as it does for the processes of the new namespace.
mkdir /run/node/hierarchy
for hierarchy in $(hierarchies); do
    mount --bind "$hierarchy/$name" /run/node/hierarchy
    umount --lazy "$hierarchy"
    mount --move /run/node/hierarchy "$hierarchy"
done
if [[ -f /sys/fs/cgroup/cgroup.controllers ]]; then
    # Only a cgroup without processes of its own can share its controllers.
    mkdir /sys/fs/cgroup/programs
    echo 0 >/sys/fs/cgroup/programs/cgroup.procs
    share_controllers /sys/fs/cgroup
fi

# What kubelet mounts is seen by containers that ask for it, such as Velero's node agent.
mount --make-rshared /
echo $$ >"$folder/started"
sleep infinity &
wait
