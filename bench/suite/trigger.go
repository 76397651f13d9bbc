package suite

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"bpfbench/progs"
)

// trigger is how a program is made to run that does what a producer asks for.
type trigger string

const (
	triggerTestRun trigger = "test_run" // BPF_PROG_TEST_RUN
	triggerTP      trigger = "tp"       // a call of getpgid, on the tracepoint of which the program is
	triggerFentry  trigger = "fentry"   // a call of getpgid, which enters the function on which the program is
	triggerAuto    trigger = "auto"     // fentry, else tp, else test_run
)

// triggerPrograms are the programs that the triggers run, in every object.
var triggerPrograms = map[trigger]string{triggerTestRun: progs.ProgCall, triggerTP: progs.ProgTP, triggerFentry: progs.ProgEntry}

// getpgidEntry is the function that the system call getpgid enters, by architecture.
var getpgidEntry = map[string]string{"amd64": "__x64_sys_getpgid", "arm64": "__arm64_sys_getpgid"}

// bind binds the flag --trigger. Its default is the first of choices.
func (t *trigger) bind(fs *pflag.FlagSet, choices ...trigger) {
	meaning := map[trigger]string{triggerTestRun: "test_run", triggerTP: "tp (the system call tracepoint of getpgid)",
		triggerFentry: "fentry (of getpgid)", triggerAuto: "auto (fentry, else tp, else test_run)"}
	var words []string
	for _, c := range choices {
		words = append(words, meaning[c])
	}
	fs.StringVar((*string)(t), "trigger", string(choices[0]), "`how` the program is called: "+strings.Join(words, ", "))
}

// check returns what is wrong with the flag's value.
func (t trigger) check(choices ...trigger) error {
	if slices.Contains(choices, t) {
		return nil
	}
	return fmt.Errorf("--trigger=%s: must be one of %s", t, strings.Join(names(choices), ", "))
}

// names are what a shell completes, too.
func names(choices []trigger) []string {
	var s []string
	for _, c := range choices {
		s = append(s, string(c))
	}
	return s
}

// requires are the probes of what the trigger needs of the kernel.
func (t trigger) requires() error {
	switch t {
	case triggerTP:
		return hook("tracepoint")()
	case triggerFentry:
		return hook("fentry")()
	}
	return nil
}

// choose is what t comes to on this kernel.
func (t trigger) choose() trigger {
	if t != triggerAuto {
		return t
	}
	for _, c := range []trigger{triggerFentry, triggerTP} {
		if c.requires() == nil {
			return c
		}
	}
	return triggerTestRun
}
