package kernel

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// mapFlagNames are the flags of map creation, from bit 0: BPF_F_* in the enum of <linux/bpf.h> that BPF_F_NO_PREALLOC
// begins, of Linux 6.19.
var mapFlagNames = []string{
	"no_prealloc", "no_common_lru", "numa_node", "rdonly", "wronly", "stack_build_id", "zero_seed", "rdonly_prog",
	"wronly_prog", "clone", "mmapable", "preserve_elems", "inner_map", "link", "path_fd", "vtype_btf_obj_fd", "token_fd",
	"segv_on_fault", "no_user_conv", "rb_overwrite",
}

const noFlags = "none"

// ParseMapFlags reads the flags of a map: numbers (0x40, 64) and names (no_prealloc, or BPF_F_NO_PREALLOC), joined by
// commas or bars. Upper and lower case, and - and _, are the same. 0 and "none" are no flags. The error holds everything
// that is wrong, with the names that come near.
func ParseMapFlags(s string) (uint32, error) {
	var flags uint32
	var wrong []string
	for item := range strings.SplitSeq(strings.ReplaceAll(s, "|", ","), ",") {
		bits, err := parseMapFlag(strings.TrimSpace(item))
		if err != nil {
			wrong = append(wrong, err.Error())
		}
		flags |= bits
	}
	if wrong != nil {
		return 0, fmt.Errorf("map flags: %s", strings.Join(wrong, "; "))
	}
	return flags, nil
}

func parseMapFlag(item string) (uint32, error) {
	if item == "" {
		return 0, errors.New("empty item: want a number such as 0x40, or names such as no_prealloc,zero_seed")
	}
	if item[0] >= '0' && item[0] <= '9' {
		return parseMapFlagNumber(item)
	}
	name := strings.ReplaceAll(strings.ToLower(item), "-", "_")
	name = strings.TrimPrefix(name, "bpf_f_")
	if name == noFlags {
		return 0, nil
	}
	if bit := slices.Index(mapFlagNames, name); bit >= 0 {
		return 1 << bit, nil
	}
	if near := nearest(name, mapFlagNames); near != nil {
		return 0, fmt.Errorf("%.64q is no flag: did you mean %s?", item, strings.Join(near, " or "))
	}
	return 0, fmt.Errorf("%.64q is no flag: there are %s", item, strings.Join(mapFlagNames, ", "))
}

// parseMapFlagNumber reads a decimal or hexadecimal number. Base 8, which a leading zero means in C, is not guessed at.
func parseMapFlagNumber(item string) (uint32, error) {
	digits, base := item, 10
	if hex, ok := strings.CutPrefix(strings.ToLower(item), "0x"); ok {
		digits, base = hex, 16
	} else if len(item) > 1 && item[0] == '0' {
		return 0, fmt.Errorf("%.64q: want a decimal number without leading zeros, or a hexadecimal one such as 0x40", item)
	}
	n, err := strconv.ParseUint(digits, base, 32)
	if errors.Is(err, strconv.ErrRange) {
		return 0, fmt.Errorf("%.64q: flags have 32 bits", item)
	}
	if err != nil {
		return 0, fmt.Errorf("%.64q: want a number such as 64 or 0x40", item)
	}
	return uint32(n), nil
}

// MapFlagNames returns the names of flags, joined by commas, and bits without a name as a number: "zero_seed,0x80000000".
// ParseMapFlags reads it. No flags are "none".
func MapFlagNames(flags uint32) string {
	if flags == 0 {
		return noFlags
	}
	var names []string
	for bit, name := range mapFlagNames {
		if flags>>bit&1 == 1 {
			names = append(names, name)
			flags &^= 1 << bit
		}
	}
	if flags != 0 {
		names = append(names, fmt.Sprintf("%#x", flags))
	}
	return strings.Join(names, ",")
}

// nearest returns up to three of names that a slip or two turns into name, or that start with it; the nearest first.
func nearest(name string, names []string) []string {
	const far = 3
	type candidate struct {
		name string
		away int
	}
	var near []candidate
	if len(name) > 2*len("vtype_btf_obj_fd") {
		return nil // not to compare with what no slip explains
	}
	for _, n := range names {
		away := distance(name, n)
		if strings.HasPrefix(n, name) && len(name) > 1 {
			away = min(away, 1)
		}
		if away < far && away < len(n)/2 {
			near = append(near, candidate{n, away})
		}
	}
	slices.SortStableFunc(near, func(a, b candidate) int { return cmp.Compare(a.away, b.away) })
	var out []string
	for _, c := range near[:min(len(near), 3)] {
		out = append(out, c.name)
	}
	return out
}

// distance counts the bytes to insert, delete or replace to turn a into b (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
