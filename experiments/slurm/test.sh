#!/bin/bash
# Runs a sweep on a real Slurm of two nodes on this host: an array job over 8
# shards, one task killed midway, submitted again, and compared byte for byte with a run on a single machine.
#
# Needs root and Debian's slurm-wlm. Without -install it is skipped where
# Slurm is absent (status 0, a message), unless EPHEMERA_REQUIRE_ALL=1.
set -euo pipefail
cd "$(dirname "$0")/../.."

missing=
for tool in slurmctld slurmd sbatch; do
	command -v "$tool" >/dev/null || missing="$missing $tool"
done
if [ -n "$missing" ] && [ "${1:-}" = -install ]; then
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends slurm-wlm >/dev/null
	missing=
fi
why=
[ -z "$missing" ] || why="missing:$missing (Debian's package is slurm-wlm)"
[ "$(id -u)" = 0 ] || why="needs root to start slurmd"
if [ -n "$why" ]; then
	if [ "${EPHEMERA_REQUIRE_ALL:-}" = 1 ]; then
		echo "slurm test: FAILED: $why, and EPHEMERA_REQUIRE_ALL=1" >&2
		exit 1
	fi
	echo "slurm test: skipped: $why"
	exit 0
fi

work=$(mktemp -d)
pids=()
finish() {
	status=$?
	trap - EXIT
	if [ $status != 0 ]; then
		echo "slurm test: FAILED; the logs:" >&2
		tail -n 15 "$work"/*.log >&2 || true
	fi
	for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
	wait 2>/dev/null || true
	rm -rf "$work"
	exit $status
}
trap finish EXIT
fail() { echo "slurm test: $*" >&2; exit 1; }

# Ports that nobody listens on: a base from the process id, tried in turn.
base=$((20000 + $$ % 20000))
while (exec 3<>"/dev/tcp/127.0.0.1/$base") 2>/dev/null; do base=$((base + 7)); done
host=$(hostname -s)
mkdir -p "$work/state" "$work/spool"
cat >"$work/slurm.conf" <<CONF
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$base
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd-%n.pid
SlurmdSpoolDir=$work/spool/%n
StateSaveLocation=$work/state
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd-%n.log
MpiDefault=none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
KillWait=2
NodeName=n1 NodeHostname=$host NodeAddr=127.0.0.1 Port=$((base + 1)) CPUs=2 RealMemory=500
NodeName=n2 NodeHostname=$host NodeAddr=127.0.0.1 Port=$((base + 2)) CPUs=2 RealMemory=500
PartitionName=all Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP
CONF
export SLURM_CONF="$work/slurm.conf"
mkdir -p "$work/spool/n1" "$work/spool/n2"
slurmctld -c -D >"$work/ctld.log" 2>&1 & pids+=($!)
slurmd -N n1 -D >"$work/n1.log" 2>&1 & pids+=($!)
slurmd -N n2 -D >"$work/n2.log" 2>&1 & pids+=($!)

# wait_for SECONDS COMMAND...: until the command succeeds.
wait_for() {
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		[ $SECONDS -lt $end ] || fail "waited in vain for: $*"
		sleep 0.2
	done
}
nodes_idle() { [ "$(sinfo -h -N -o %t 2>/dev/null | grep -c '^idle$')" = 2 ]; }
wait_for 60 nodes_idle
echo "slurm test: $(sinfo -V), nodes n1 and n2 are up"

go build -o "$work/sweep" ./cmd/sweep
cat >"$work/cluster.toml" <<'TOML'
question = "Does a cluster give the same bytes as one machine?"
seeds = 16
steps = 15000
learner.algorithm = "paper"
learner.kappa = [0.01, 0.1, 1, 10]
instance.budget = [1, 2]
TOML
out="$work/out"
export SWEEP="$work/sweep" CONFIG="$work/cluster.toml" OUT="$out"
submit() {
	sbatch --parsable --export=ALL --output="$work/task-%A_%a.log" --time=10 "$@" experiments/slurm/sweep.sbatch
}
gone() { [ -z "$(squeue -h -j "$1" 2>/dev/null)" ]; }
runs() { find "$out/runs" -name '*.json' 2>/dev/null | wc -l; }

# First submission: one task is killed as soon as there are results.
job=$(submit)
has_run() { [ "$(runs)" -gt 3 ]; }
wait_for 120 has_run
scancel --batch --signal=KILL "${job}_3"
wait_for 300 gone "$job"
before=$(runs)
[ "$before" -lt 128 ] || fail "the task was killed too late: all 128 runs are there"
[ "$before" -ge 112 ] || fail "only $before of 128 runs are there; other tasks must have failed too"
[ ! -e "$out/summary.json" ] || fail "there is a summary though $((128 - before)) runs are missing"

# What is missing is named.
"$work/sweep" "$CONFIG" -out "$out" -summarize >/dev/null 2>"$work/missing.log" && fail "a summary of what is there succeeds"
grep -q "$((128 - before)) of 128 runs are missing" "$work/missing.log" || fail "what is missing is not named"
rm "$out/summary.json"

# Second submission: only what is missing is run, and the last task summarizes.
job=$(submit)
wait_for 300 gone "$job"
[ "$(runs)" = 128 ] || fail "$(runs) runs are kept; want 128"
[ -e "$out/summary.json" ] || fail "the last task wrote no summary"

# The same on a single machine.
"$work/sweep" "$CONFIG" -out "$work/single" >/dev/null 2>"$work/single.log"
diff -r -x '.*' "$out" "$work/single" || fail "the results differ from those of a single machine"
echo "slurm test: ok: 8 shards on 2 nodes, one killed, $((128 - before)) runs left for the second submission, the same bytes as on one machine"
