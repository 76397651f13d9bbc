#!/usr/bin/env bash
# How fast hash map lookups are as the map fills, in sixteenths: a line for each fill ratio.
#
#   scripts/sweep_hashmap_fill.sh [KEY_SIZE [MAX_ENTRIES [FLAGS OF BENCH...]]]
#
# Each line is a session of its own; `bench ... --sweep` measures all ratios in turns, which is better against drift.
set -euo pipefail

key_size=${1:-4}
max_entries=${2:-65536}
shift $(($# < 2 ? $# : 2))
bench=${BENCH:-$(dirname "$0")/../bin/bench}

if ((max_entries < 16)); then
	echo "sweep_hashmap_fill.sh: MAX_ENTRIES=$max_entries: must be at least 16" >&2
	exit 2
fi
for i in {1..16}; do
	nr_entries=$((max_entries * i / 16))
	echo -n "$((nr_entries * 100 / max_entries))% full: "
	"$bench" -d2 -a bpf-hashmap-lookup --key_size="$key_size" --nr_entries="$nr_entries" --max_entries="$max_entries" \
		--nr_loops=1000000 --map_flags=0x40 "$@" | grep cpu
done
