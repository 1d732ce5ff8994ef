#!/usr/bin/env bash
# A Slurm cluster on one machine, to try things out: two nodes, n1 and n2, in two partitions.
#
#     sudo scripts/slurm_dev.sh start     then, as it says: export SLURM_CONF=...
#     sudo scripts/slurm_dev.sh stop
#
# Needs Debian's (or Ubuntu's) packages slurm-wlm and munge, and root, for the nodes' names in
# /etc/hosts. All else lies in ZHEN_SLURM_DIR, by default /tmp/zhen-slurm: nothing of a Slurm that is
# there is touched. Jobs of partition `main` preempt those of `spare`.
set -euo pipefail

dir=${ZHEN_SLURM_DIR:-/tmp/zhen-slurm}
port=${ZHEN_SLURM_PORT:-16817}  # this and the next three
export SLURM_CONF=$dir/slurm.conf
hosts="127.0.0.1 n1 n2  # zhen: slurm_dev.sh"

fail() {
    echo "error: $*" >&2
    exit 1
}

configure() {
    mkdir -p "$dir"/{state,n1,n2}
    chmod 755 "$dir"
    host=$(hostname -s)
    # config_overrides: nodes may have more CPUs than the machine. cred_expire: a requeued job waits
    # for so many seconds, by default two minutes. SlurmdTimeout: then a node counts as lost.
    cat > "$SLURM_CONF" << CONF
ClusterName=zhen
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmUser=root
AuthInfo=socket=$dir/munge.socket,cred_expire=5
StateSaveLocation=$dir/state
SlurmctldPidFile=$dir/slurmctld.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdPidFile=$dir/%n.pid
SlurmdSpoolDir=$dir/%n
SlurmdLogFile=$dir/%n.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=2,batch_sched_delay=0,bf_interval=2
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
MpiDefault=none
ReturnToService=2
SlurmdTimeout=10
KillWait=15
MaxJobCount=80
NodeName=n1 NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + 1)) CPUs=16
NodeName=n2 NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + 2)) CPUs=16
PartitionName=main Nodes=n1,n2 Default=YES MaxTime=1-00:00:00 PriorityTier=2
PartitionName=spare Nodes=n1,n2 MaxTime=1-00:00:00 PriorityTier=1
CONF
}

start() {
    [ "$(id -u)" -eq 0 ] || fail "root is needed: sudo scripts/slurm_dev.sh start"
    for program in munged slurmctld slurmd; do
        type "$program" > /dev/null 2>&1 || fail "no $program: apt-get install slurm-wlm munge"
    done
    [ ! -e "$dir/slurmctld.pid" ] || fail "it runs already, or was not stopped: $0 stop"
    configure
    getent hosts n1 n2 > /dev/null || echo "$hosts" >> /etc/hosts
    (umask 077 && head -c 1024 /dev/urandom > "$dir/munge.key")
    munged --force --key-file="$dir/munge.key" --socket="$dir/munge.socket" \
        --pid-file="$dir/munged.pid" --log-file="$dir/munged.log" --seed-file="$dir/munge.seed"
    slurmctld
    for node in n1 n2; do
        slurmd -N "$node"
    done
    for _ in $(seq 200); do
        idle=$(timeout 5 sinfo --noheader --Node --partition=main --states=idle 2> /dev/null | wc -l) || true
        [ "$idle" -eq 2 ] && break
        sleep 0.1
    done
    [ "$idle" -eq 2 ] || fail "the nodes do not come up, see $dir/*.log; then: $0 stop"
    sinfo
    echo "export SLURM_CONF=$SLURM_CONF"
}

# The process whose number a file has, and nothing else that may have the number since.
stop_one() {
    local file=$dir/$1.pid pid
    [ -e "$file" ] || return 0
    pid=$(cat "$file")
    [ ! -e "/proc/$pid" ] || ! grep -q "$2" "/proc/$pid/comm" || kill "$pid"
    for _ in $(seq 100); do
        [ -e "/proc/$pid" ] || break
        sleep 0.1
    done
    rm -f "$file"
}

stop() {
    [ -e "$SLURM_CONF" ] || fail "no cluster in $dir"
    scancel --quiet --user="$(id -un)" --signal=KILL --full 2> /dev/null || true
    scancel --quiet --user="$(id -un)" 2> /dev/null || true
    for node in n1 n2; do
        stop_one "$node" slurmd
    done
    stop_one slurmctld slurmctld
    stop_one munged munged
    # In place: in a container the file cannot be replaced.
    others=$(grep -vF "$hosts" /etc/hosts || true)
    echo "$others" > /etc/hosts
    rm -rf "$dir"
}

case ${1:-} in
    start | stop) "$1" ;;
    *) fail "start or stop?" ;;
esac
