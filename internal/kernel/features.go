package kernel

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/features"
	"golang.org/x/sys/unix"
)

// RawTracepoint probes whether a program of type raw_tp can be loaded and run by BPF_PROG_TEST_RUN. It returns nil, an
// *Error or *PrivilegeError, or another error if the probe failed. The answer of the first call stays.
func RawTracepoint() error { return rawTracepoint() }

var rawTracepoint = sync.OnceValue(probeRawTracepoint)

func probeRawTracepoint() error {
	const what, answer = "test_run of raw_tp programs", 42
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type:         ebpf.RawTracepoint,
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, answer), asm.Return()},
		License:      "Dual MIT/GPL",
	})
	if errors.Is(err, unix.EINVAL) { // BPF_PROG_TYPE_RAW_TRACEPOINT is not known
		return &Error{Feature: what, Outcome: Missing, Needs: "Linux 4.17 with CONFIG_BPF_EVENTS=y", Err: err}
	}
	if err != nil {
		return Explain(err, what, programCaps(ebpf.RawTracepoint)...)
	}
	defer func() { _ = prog.Close() }()

	got, err := prog.Run(&ebpf.RunOptions{})
	// EINVAL: the kernel has no test_run for this type. It came with 1b4d60ec162f ("bpf: Enable BPF_PROG_TEST_RUN for
	// raw_tracepoint").
	if errors.Is(err, ebpf.ErrNotSupported) || errors.Is(err, unix.EINVAL) {
		return &Error{Feature: what, Outcome: Missing, Needs: "Linux 5.10", Err: err}
	}
	if err != nil {
		return Explain(err, what, programCaps(ebpf.RawTracepoint)...)
	}
	if got != answer {
		return fmt.Errorf("%s: the program returned %d instead of %d", what, got, answer)
	}
	return nil
}

// Helper probes whether programs of a type can call a helper function. It returns what RawTracepoint does. Programs of
// the types Tracing, LSM, Extension and StructOps cannot be probed. The answer of the first call stays.
func Helper(typ ebpf.ProgramType, fn asm.BuiltinFunc) error {
	probe, _ := helpers.LoadOrStore(helper{typ, fn}, sync.OnceValue(func() error {
		return explainHelper(here(), features.HaveProgramHelper(typ, fn), typ, fn)
	}))
	return probe.(func() error)()
}

type helper struct {
	typ ebpf.ProgramType
	fn  asm.BuiltinFunc
}

var helpers sync.Map // of helper to func() error

// explainHelper sorts the answer of a helper's probe.
func explainHelper(s system, err error, typ ebpf.ProgramType, fn asm.BuiltinFunc) error {
	what := fmt.Sprintf("%s in %s programs", HelperName(fn), snake(typ.String()))
	if !errors.Is(err, ebpf.ErrNotSupported) && !cannotUse(err) {
		return s.explain(err, what, programCaps(typ)...)
	}
	missing := &Error{Feature: what, Outcome: Missing, Err: err}
	switch since, known := helperVersions[fn]; {
	case known && s.release.before(since.major, since.minor):
		missing.Needs = "Linux " + since.String()
	case known:
		missing.Needs = "another type of program, or an option of this kernel (the helper is in Linux from " + since.String() + ")"
	}
	return missing
}

// cannotUse reports whether the verifier refused a helper to a type of program. The library looks for these words in the last
// lines of its log only, behind which newer kernels (7.3) have more.
func cannotUse(err error) bool {
	var refused *ebpf.VerifierError
	return errors.As(err, &refused) && slices.ContainsFunc(refused.Log, func(line string) bool {
		return strings.Contains(line, "unknown func ") || strings.Contains(line, "cannot use helper ") || strings.Contains(line, "invalid func ")
	})
}

// programCaps returns the capabilities that loading a program of a type needs (kernel/bpf/syscall.c: bpf_prog_load,
// is_perfmon_prog_type, is_net_admin_prog_type; Linux 5.8).
func programCaps(typ ebpf.ProgramType) []Cap {
	switch typ {
	case ebpf.Kprobe, ebpf.TracePoint, ebpf.PerfEvent, ebpf.RawTracepoint, ebpf.RawTracepointWritable, ebpf.Tracing,
		ebpf.LSM, ebpf.StructOps, ebpf.Extension:
		return []Cap{CapBPF, CapPerfmon}
	case ebpf.SocketFilter, ebpf.CGroupSKB, ebpf.CGroupSock, ebpf.SkReuseport, ebpf.Syscall:
		return []Cap{CapBPF}
	}
	return []Cap{CapBPF, CapNetAdmin}
}

// HelperName returns a helper function's name in C, such as "bpf_ktime_get_ns".
func HelperName(fn asm.BuiltinFunc) string {
	return "bpf_" + snake(strings.TrimPrefix(fn.String(), "Fn"))
}

// snake turns a name such as RawTracepoint or LWTXmit into raw_tracepoint or lwt_xmit.
func snake(camel string) string {
	camel = strings.NewReplacer("CGroup", "Cgroup", "TracePoint", "Tracepoint").Replace(camel)
	var s strings.Builder
	for i, r := range camel {
		startsWord := i > 0 && unicode.IsUpper(r) &&
			(!unicode.IsUpper(rune(camel[i-1])) || i+1 < len(camel) && unicode.IsLower(rune(camel[i+1])))
		if startsWord {
			s.WriteByte('_')
		}
		s.WriteRune(unicode.ToLower(r))
	}
	return s.String()
}

// helperVersions are the first kernels with those helpers that benchmarks use or may use (docs/kernel-versions.md of bcc).
var helperVersions = map[asm.BuiltinFunc]version{
	asm.FnMapLookupElem:        {3, 19},
	asm.FnMapUpdateElem:        {3, 19},
	asm.FnMapDeleteElem:        {3, 19},
	asm.FnProbeRead:            {4, 1},
	asm.FnKtimeGetNs:           {4, 1},
	asm.FnTracePrintk:          {4, 1},
	asm.FnGetPrandomU32:        {4, 1},
	asm.FnGetSmpProcessorId:    {4, 1},
	asm.FnTailCall:             {4, 2},
	asm.FnGetCurrentPidTgid:    {4, 2},
	asm.FnGetCurrentUidGid:     {4, 2},
	asm.FnGetCurrentComm:       {4, 2},
	asm.FnPerfEventRead:        {4, 3},
	asm.FnPerfEventOutput:      {4, 4},
	asm.FnGetStackid:           {4, 6},
	asm.FnGetCurrentTask:       {4, 8},
	asm.FnGetNumaNodeId:        {4, 10},
	asm.FnProbeReadStr:         {4, 11},
	asm.FnPerfEventReadValue:   {4, 15},
	asm.FnOverrideReturn:       {4, 16},
	asm.FnGetStack:             {4, 18},
	asm.FnGetCurrentCgroupId:   {4, 18},
	asm.FnMapPushElem:          {4, 20},
	asm.FnMapPopElem:           {4, 20},
	asm.FnMapPeekElem:          {4, 20},
	asm.FnSpinLock:             {5, 1},
	asm.FnSpinUnlock:           {5, 1},
	asm.FnStrtol:               {5, 2},
	asm.FnStrtoul:              {5, 2},
	asm.FnSendSignal:           {5, 3},
	asm.FnProbeReadUser:        {5, 5},
	asm.FnProbeReadKernel:      {5, 5},
	asm.FnProbeReadUserStr:     {5, 5},
	asm.FnProbeReadKernelStr:   {5, 5},
	asm.FnJiffies64:            {5, 6},
	asm.FnRingbufOutput:        {5, 8},
	asm.FnRingbufReserve:       {5, 8},
	asm.FnRingbufSubmit:        {5, 8},
	asm.FnRingbufDiscard:       {5, 8},
	asm.FnRingbufQuery:         {5, 8},
	asm.FnKtimeGetBootNs:       {5, 8},
	asm.FnDPath:                {5, 10},
	asm.FnCopyFromUser:         {5, 10},
	asm.FnPerCpuPtr:            {5, 10},
	asm.FnThisCpuPtr:           {5, 10},
	asm.FnTaskStorageGet:       {5, 11},
	asm.FnGetCurrentTaskBtf:    {5, 11},
	asm.FnKtimeGetCoarseNs:     {5, 11},
	asm.FnForEachMapElem:       {5, 13},
	asm.FnSnprintf:             {5, 13},
	asm.FnTimerInit:            {5, 15},
	asm.FnGetFuncIp:            {5, 15},
	asm.FnGetAttachCookie:      {5, 15},
	asm.FnTaskPtRegs:           {5, 15},
	asm.FnTraceVprintk:         {5, 16},
	asm.FnLoop:                 {5, 17},
	asm.FnStrncmp:              {5, 17},
	asm.FnGetFuncArg:           {5, 17},
	asm.FnGetFuncRet:           {5, 17},
	asm.FnGetFuncArgCnt:        {5, 17},
	asm.FnCopyFromUserTask:     {5, 18},
	asm.FnMapLookupPercpuElem:  {5, 19},
	asm.FnRingbufReserveDynptr: {5, 19},
	asm.FnRingbufSubmitDynptr:  {5, 19},
	asm.FnRingbufDiscardDynptr: {5, 19},
	asm.FnDynptrRead:           {5, 19},
	asm.FnDynptrWrite:          {5, 19},
	asm.FnKtimeGetTaiNs:        {6, 1},
	asm.FnUserRingbufDrain:     {6, 1},
}
