package fetcharg

import (
	"math"
	"strconv"
	"strings"
)

// The kernel's numbers (lib/kstrtox.c) are decimal, octal after 0, hexadecimal after 0x.

// radix returns the digits of s and their base.
func radix(s string) (digits string, base int) {
	if len(s) > 2 && (s[:2] == "0x" || s[:2] == "0X") && isHex(s[2]) {
		return s[2:], 16
	}
	if strings.HasPrefix(s, "0") {
		return s, 8
	}
	return s, 10
}

func isHex(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// digitsUint reads digits without a sign.
func digitsUint(s string) (uint64, bool) {
	digits, base := radix(s)
	if strings.Trim(digits, "0123456789abcdefABCDEF") != "" { // ParseUint takes more than digits in other bases only
		return 0, false
	}
	n, err := strconv.ParseUint(digits, base, 64)
	return n, err == nil
}

// parseUint reads an unsigned number, with or without a plus sign, as kstrtoul does.
func parseUint(s string) (uint64, bool) { return digitsUint(strings.TrimPrefix(s, "+")) }

// parseInt reads a signed number, as kstrtol does: one sign at most.
func parseInt(s string) (int64, bool) {
	if digits, ok := strings.CutPrefix(s, "-"); ok {
		n, ok := digitsUint(digits)
		return -int64(n), ok && n <= -math.MinInt64
	}
	n, ok := parseUint(s)
	return int64(n), ok && n <= math.MaxInt64
}

// formatUint prints the number in the shorter of its two forms, so that no text grows longer than what it was parsed from.
func formatUint(n uint64) string {
	dec, hex := strconv.FormatUint(n, 10), "0x"+strconv.FormatUint(n, 16)
	if len(hex) < len(dec) {
		return hex
	}
	return dec
}

// formatInt prints the sign always.
func formatInt(n int64) string {
	if n < 0 {
		return "-" + formatUint(-uint64(n))
	}
	return "+" + formatUint(uint64(n))
}
