package suite

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cilium/ebpf/btf"
	"github.com/prometheus/procfs"
	"github.com/spf13/pflag"

	"bpfbench/bench/harness"
	"bpfbench/internal/kernel"
	"bpfbench/internal/number"
	"bpfbench/progs"
	"bpfbench/report"
)

func init() {
	for _, c := range []crypto{
		{verb: "encrypt", mode: progs.CryptoModeMODE_ENCRYPT},
		{verb: "decrypt", mode: progs.CryptoModeMODE_DECRYPT},
	} {
		harness.Register(&harness.Benchmark{
			Name:    "crypto-" + c.verb,
			Op:      c.verb + "ion",
			Summary: "Calls the kernel's function bpf_crypto_" + c.verb + " from BPF.",
			Timing: "Timed in the kernel: calls of the function, each of which has to succeed, from and to memory of the producer's own, in a loop " +
				"which is timed empty, too, so that the cost is also given net of it. Not timed: making the cipher's context, " +
				"a round trip that checks it, and the call that starts the program.",
			Form:      report.FormHits,
			Requires:  []func() error{kernel.RawTracepoint, cryptoFuncs},
			Producers: harness.Workers{Min: 1, Default: 1, Max: harness.AnyNumber},
			New:       func() harness.Config { return &crypto{verb: c.verb, mode: c.mode} },
		})
	}
}

// cryptoFuncs probes for the kernel's functions in the form that is called here, without an initialisation vector.
func cryptoFuncs() error {
	const name = "bpf_crypto_encrypt"
	fn, err := kernelFunc(name)
	if err != nil || fn != nil && nullable(fn, 3) {
		return err
	}
	return &kernel.Error{Feature: "kfunc " + name + " without initialisation vector", Outcome: kernel.Missing, Needs: "Linux 6.11 with CONFIG_CRYPTO=y, CONFIG_DEBUG_INFO_BTF=y"}
}

// nullable reports whether a function's argument may be NULL, which its name says.
func nullable(fn *btf.Func, arg int) bool {
	proto, ok := fn.Type.(*btf.FuncProto)
	return ok && len(proto.Params) > arg && strings.HasSuffix(proto.Params[arg].Name, "__nullable")
}

// maxCrypto is MAX_LEN of the program.
const maxCrypto = 256

// crypto is the parameters of crypto-encrypt and crypto-decrypt.
type crypto struct {
	verb   string
	mode   progs.CryptoMode
	length uint64 // bytes
	cipher string
}

func (c *crypto) Flags(fs *pflag.FlagSet) {
	number.Var(fs, &c.length, "crypto-len", 16, "bytes of an operation, 1 to 256: a multiple of the cipher's block size")
	fs.StringVar(&c.cipher, "crypto-cipher", "ecb(aes)", "the cipher's `name` in the kernel, 1 to 32 characters: one that takes a key of 16 bytes and no initialisation vector")
}

func (c *crypto) Resolve() error {
	err := number.Within("crypto-len", c.length, 1, maxCrypto)
	if n := len(c.cipher); n < 1 || n > 32 {
		err = errors.Join(err, fmt.Errorf("--crypto-cipher=%s: must be of 1 to 32 characters, and is of %d", c.cipher, n))
	}
	return err
}

func (c *crypto) Params() []report.Param {
	return []report.Param{{Name: "crypto-len", Value: c.length, Unit: "B"}, {Name: "crypto-cipher", Value: c.cipher}}
}

func (c *crypto) Facts() []report.Param { return nil }

// FlagValues are what a shell completes behind the flags.
func (c *crypto) FlagValues() map[string][]string {
	return map[string][]string{"crypto-cipher": {"ecb(aes)"}}
}

// batch is how many operations a sample has: a few milliseconds of them.
func (c *crypto) batch() uint64 {
	const bytes, around = 1 << 18, 16 // what surrounds an operation takes as long as so many bytes
	return bytes / (c.length + around)
}

// fits says what of the parameters a cipher does not fit, by what the kernel tells of it once it is in use.
func (c *crypto) fits() error {
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return nil // the operations tell, in fewer words
	}
	ciphers, _ := proc.Crypto()
	for _, known := range ciphers {
		if known.Name != c.cipher || !strings.HasSuffix(known.Type, "skcipher") {
			continue
		}
		if iv := known.Ivsize; iv != nil && *iv > 0 {
			return fmt.Errorf("--crypto-cipher=%s: it needs an initialisation vector, of %d bytes, and is given none here: use a cipher without one, such as ecb(aes)", c.cipher, *iv)
		}
		if block := known.Blocksize; block != nil && *block > 0 && c.length%*block != 0 {
			return fmt.Errorf("--crypto-len=%d: must be a multiple of %d, the block size of %s", c.length, *block, c.cipher)
		}
	}
	return nil
}
