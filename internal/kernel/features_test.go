package kernel

import (
	"errors"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"
)

func TestRawTracepoint(t *testing.T) {
	first := RawTracepoint()
	if again := RawTracepoint(); again != first {
		t.Errorf("%v at first, and then %v", first, again)
	}
	var known *Error
	var privilege *PrivilegeError
	if first != nil && !errors.As(first, &known) && !errors.As(first, &privilege) {
		t.Errorf("the probe fails: %v", first)
	}
	if effective() == 0 && privilege == nil {
		t.Errorf("without a capability: %v", first)
	}
}

func TestHelper(t *testing.T) {
	needsBPF(t)
	if err := Helper(ebpf.RawTracepoint, asm.FnMapLookupElem); err != nil {
		t.Error(err)
	}
	if err := Helper(ebpf.RawTracepoint, asm.FnLoop); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
	err := Helper(ebpf.RawTracepoint, asm.FnSkbStoreBytes)
	var missing *Error
	const what = "bpf_skb_store_bytes in raw_tracepoint programs"
	if !errors.As(err, &missing) || missing.Outcome != Missing || missing.Feature != what {
		t.Errorf("a helper of another type: %v", err)
	}
	if again := Helper(ebpf.RawTracepoint, asm.FnSkbStoreBytes); again != err {
		t.Errorf("again: %v", again)
	}
}

func TestExplainHelper(t *testing.T) {
	s := fakeSystem(t, allCaps, nil)
	s.release = version{5, 15}
	for _, c := range []struct {
		fn   asm.BuiltinFunc
		err  error
		want string
	}{
		{asm.FnLoop, ebpf.ErrNotSupported, "bpf_loop in raw_tracepoint programs: not in this kernel: needs Linux 5.17"},
		{asm.FnGetStackid, ebpf.ErrNotSupported, "bpf_get_stackid in raw_tracepoint programs: not in this kernel: " +
			"needs another type of program, or an option of this kernel (the helper is in Linux from 4.6)"},
		{asm.FnMsgPopData, ebpf.ErrNotSupported, "bpf_msg_pop_data in raw_tracepoint programs: not in this kernel: not supported"},
		{asm.FnLoop, unix.EIO, "bpf_loop in raw_tracepoint programs: input/output error"},
	} {
		if got := explainHelper(s, c.err, ebpf.RawTracepoint, c.fn).Error(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
	if err := explainHelper(s, nil, ebpf.RawTracepoint, asm.FnLoop); err != nil {
		t.Error(err)
	}
}

func TestHelperName(t *testing.T) {
	for fn, want := range map[asm.BuiltinFunc]string{
		asm.FnLoop:                "bpf_loop",
		asm.FnKtimeGetNs:          "bpf_ktime_get_ns",
		asm.FnGetPrandomU32:       "bpf_get_prandom_u32",
		asm.FnJiffies64:           "bpf_jiffies64",
		asm.FnDPath:               "bpf_d_path",
		asm.FnL3CsumReplace:       "bpf_l3_csum_replace",
		asm.FnGetSmpProcessorId:   "bpf_get_smp_processor_id",
		asm.FnMapLookupPercpuElem: "bpf_map_lookup_percpu_elem",
	} {
		if got := HelperName(fn); got != want {
			t.Errorf("%v: got %s, want %s", fn, got, want)
		}
	}
}

func TestSnake(t *testing.T) {
	for in, want := range map[string]string{
		"RawTracepoint": "raw_tracepoint", "TracePoint": "tracepoint", "XDP": "xdp", "LWTXmit": "lwt_xmit",
		"CGroupSKB": "cgroup_skb", "LwtSeg6StoreBytes": "lwt_seg6_store_bytes", "": "",
	} {
		if got := snake(in); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}

func TestProgramCaps(t *testing.T) {
	for typ, want := range map[ebpf.ProgramType][]Cap{
		ebpf.RawTracepoint: {CapBPF, CapPerfmon},
		ebpf.Syscall:       {CapBPF},
		ebpf.XDP:           {CapBPF, CapNetAdmin},
	} {
		got := programCaps(typ)
		if len(got) != len(want) || got[len(got)-1] != want[len(want)-1] {
			t.Errorf("%v: %v, want %v", typ, got, want)
		}
	}
}
