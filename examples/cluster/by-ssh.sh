#!/usr/bin/env bash
# A sweep on machines that ssh reaches:  by-ssh.sh ADDRESS HOST... -- FILE [option of tailcut run]...
#   ADDRESS  of this machine, as the others reach it; the scheduler listens there and nowhere else
#   HOST     a machine as ssh names it, with the same Tailcut; append :N to make N runs at a time, by default one per core
# Three machines:  by-ssh.sh 10.0.0.1 here 10.0.0.2 10.0.0.3:8 -- mine.toml
set -euo pipefail

usage() { sed -n '2,5s/^# *//p' "$0" >&2; exit 2; }
address=${1:-}
[[ -n $address ]] || usage
shift
hosts=()
while [[ ${1:-} != -- ]]; do
    [[ $# -gt 0 ]] || usage
    hosts+=("$1")
    shift
done
shift
[[ ${#hosts[@]} -gt 0 && $# -gt 0 ]] || usage

scheduler=$(mktemp --suffix=.json)
rm "$scheduler"
# Workers end with their scheduler.
trap 'kill "${started:-}" 2> /dev/null || true; wait; rm -f "$scheduler"' EXIT

dask scheduler --host "$address" --port "${TAILCUT_PORT:-8786}" --dashboard-address 127.0.0.1:8787 \
    --scheduler-file "$scheduler" &
started=$!
for _ in $(seq 120); do
    [[ -s $scheduler ]] && break
    sleep 0.5
done
[[ -s $scheduler ]] || { echo "the scheduler has not started" >&2; exit 1; }
where=tcp://$address:${TAILCUT_PORT:-8786}

# A worker ends when the scheduler is gone, also if this script is killed.
for host in "${hosts[@]}"; do
    # shellcheck disable=SC2016 # asked on that machine
    threads='$(nproc)'
    [[ $host == *:* ]] && threads=${host##*:}
    command="dask worker $where --nthreads $threads --no-nanny --death-timeout 60"
    command+=" --dashboard-address 127.0.0.1:0 --local-directory \${TMPDIR:-/tmp}"
    if [[ ${host%%:*} == here ]]; then
        bash -c "$command" &
    else
        ssh -o BatchMode=yes "${host%%:*}" "$command" < /dev/null &
    fi
done

tailcut run "$1" --cluster "$where" "${@:2}"
