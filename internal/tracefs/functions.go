package tracefs

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Functions are the functions of the kernel itself, not of its modules, that can be traced by their entry: their names, each once.
func Functions() ([]string, error) {
	if err := Mount(); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(path, "available_filter_functions"))
	if err != nil {
		return nil, fmt.Errorf("list functions: %w", err)
	}
	return functions(string(text)), nil
}

func functions(text string) []string {
	var names []string
	for line := range strings.Lines(text) {
		name := strings.TrimSpace(line)
		// A module's is followed by the module; what is left of a weak function that another took the place of has no name of its own.
		if name != "" && !strings.ContainsAny(name, " \t") && !strings.HasPrefix(name, "__ftrace_invalid_address__") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
