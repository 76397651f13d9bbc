package vm

import (
	"bytes"
	"regexp"
	"strings"
	"sync"
	"unicode"
)

// consoleLines is how much of a guest's console is kept.
const consoleLines = 30

// console keeps the last lines of a stream of text, and what it says of the kernel. It is safe for concurrent use.
type console struct {
	mu      sync.Mutex
	part    []byte // of the line that is not yet ended
	lines   []string
	trouble string // the first line with which the kernel reported its own failure

	watch *regexp.Regexp // what is waited for; nil when it came
	seen  chan struct{}  // is closed when it comes
}

func newConsole(watch *regexp.Regexp) *console {
	return &console{watch: watch, seen: make(chan struct{})}
}

var (
	escapes  = regexp.MustCompile(`\x1b(\[[0-9;?]*[@-~]|[@-Z\\-_c])`)
	troubles = regexp.MustCompile(`(Kernel panic - not syncing|BUG|Oops|Internal error|general protection fault|Unable to handle kernel)\b.*`)
)

func (c *console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.part = append(c.part, p...)
	for {
		i := bytes.IndexByte(c.part, '\n')
		if i < 0 {
			break
		}
		c.add(string(c.part[:i]))
		c.part = c.part[i+1:]
	}
	if len(c.part) > 4096 { // no line of a kernel's log is that long
		c.add(string(c.part))
		c.part = nil
	}
	return len(p), nil
}

func (c *console) add(line string) {
	line = strings.TrimSpace(cleanLine(line))
	if line == "" {
		return
	}
	c.lines = append(c.lines, line)
	if len(c.lines) > consoleLines {
		c.lines = c.lines[1:]
	}
	if c.trouble == "" {
		c.trouble = troubles.FindString(line)
	}
	if c.watch != nil && c.watch.MatchString(line) {
		c.watch = nil
		close(c.seen)
	}
}

// cleanLine drops what would act on the terminal that the line may be shown on.
func cleanLine(line string) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' {
			return ' '
		}
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return -1
		}
		return r
	}, escapes.ReplaceAllString(line, ""))
}

// end returns the last lines, also one that was not ended, and the trouble.
func (c *console) end() (lines []string, trouble string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.part) > 0 {
		c.add(string(c.part))
		c.part = nil
	}
	return append([]string(nil), c.lines...), c.trouble
}
