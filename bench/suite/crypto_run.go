package suite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"bpfbench/bench/harness"
	"bpfbench/internal/kernel"
	"bpfbench/producers"
	"bpfbench/progs"
	"bpfbench/report"
)

// cryptoRun is a benchmark of ciphers made ready for one run.
type cryptoRun struct {
	*work
	cfg  *crypto
	from []byte // what each operation works on
	to   []byte // what comes of it
}

func (c *crypto) Setup(_ context.Context, env harness.Env) (*harness.Instance, error) {
	r := &cryptoRun{cfg: c}
	if err := r.load(env.Producers); err != nil {
		return nil, err
	}
	err := c.fits()
	if err == nil {
		err = r.roundTrip()
	}
	if err != nil {
		return nil, errors.Join(err, r.close())
	}
	for i := range env.Producers {
		copy(r.src(i), r.from)
		clear(r.dst(i))
	}
	return &harness.Instance{Producer: r.producer, Check: r.check(env.Producers), Close: r.close}, nil
}

// cryptoKey is the key of the cipher; 16 bytes, as the original's.
const cryptoKey = "bpfbench's crypt"

// load loads the program, with a slot for each producer, and makes the cipher's context.
func (r *cryptoRun) load(producers int) error {
	spec, err := progs.LoadCrypto()
	if err != nil {
		return fmt.Errorf("read the program: %w", err)
	}
	var params progs.CryptoBpfCryptoParams
	setText(params.Type[:], "skcipher")
	setText(params.Algo[:], r.cfg.cipher)
	params.KeyLen = uint32(copy(params.Key[:], cryptoKey))
	if err := setConstants(spec, map[string]any{progs.CryptoVarLen: uint32(r.cfg.length), progs.CryptoVarParams: params}); err != nil {
		return err
	}
	if r.work, err = loadWork(spec, triggerTestRun, producers, nil); err != nil {
		return err
	}
	if err := r.create(); err != nil {
		return errors.Join(err, r.close())
	}
	return nil
}

// setText sets a string of C, which has room for it.
func setText(into []int8, s string) {
	for i := range s {
		into[i] = int8(s[i])
	}
}

// create makes the cipher's context, or says why there is none.
func (r *cryptoRun) create() error {
	status, err := r.coll.Programs[progs.CryptoProgCreate].Run(&ebpf.RunOptions{})
	if err != nil {
		return fmt.Errorf("run the program that makes the cipher's context: %w", err)
	}
	switch errno := unix.Errno(-int32(status)); errno {
	case 0:
		return nil
	case unix.ENOENT:
		return &kernel.Error{Feature: "ciphers for BPF", Outcome: kernel.Missing, Needs: "CONFIG_CRYPTO_SKCIPHER=y, or the module bpf_crypto_skcipher", Err: errno}
	case unix.EOPNOTSUPP:
		return &kernel.Error{Feature: "cipher " + r.cfg.cipher + " for BPF", Outcome: kernel.Missing, Needs: "another --crypto-cipher, or the option that has it, such as CONFIG_CRYPTO_ECB=y and CONFIG_CRYPTO_AES=y", Err: errno}
	case unix.EINVAL:
		return fmt.Errorf("--crypto-cipher=%s: it takes no key of %d bytes: use one that does, such as ecb(aes): %w", r.cfg.cipher, len(cryptoKey), errno)
	default:
		return fmt.Errorf("make the context of cipher %s: %w", r.cfg.cipher, errno)
	}
}

func (r *cryptoRun) src(i int) []byte {
	return r.buffer(i, unsafe.Offsetof(progs.CryptoCryptoSlot{}.Src))
}
func (r *cryptoRun) dst(i int) []byte {
	return r.buffer(i, unsafe.Offsetof(progs.CryptoCryptoSlot{}.Dst))
}

func (r *cryptoRun) buffer(i int, at uintptr) []byte { return r.slot(i)[at:][:r.cfg.length] }

// roundTrip encrypts a text and decrypts it again, which has to give the text.
func (r *cryptoRun) roundTrip() error {
	plain := make([]byte, r.cfg.length)
	for i := range plain {
		plain[i] = '0' + byte(i*7%10)
	}
	once := func(mode progs.CryptoMode, what string, from []byte) ([]byte, error) {
		copy(r.src(0), from)
		_, err := r.request(0, uint32(mode), what, r.caller(0)).do(0, 1, 1)
		return bytes.Clone(r.dst(0)), err
	}
	secret, err := once(progs.CryptoModeMODE_ENCRYPT, "encrypt", plain)
	if err != nil {
		return fmt.Errorf("try cipher %s: %w", r.cfg.cipher, err)
	}
	again, err := once(progs.CryptoModeMODE_DECRYPT, "decrypt", secret)
	if err != nil {
		return fmt.Errorf("try cipher %s: %w", r.cfg.cipher, err)
	}
	if bytes.Equal(secret, plain) || !bytes.Equal(again, plain) {
		return fmt.Errorf("try cipher %s: %q was encrypted to %x, and that decrypted to %q", r.cfg.cipher, plain, secret, again)
	}
	r.from, r.to = plain, secret
	if r.cfg.mode == progs.CryptoModeMODE_DECRYPT {
		r.from, r.to = secret, plain
	}
	return nil
}

// caller is what runs the program, which is of tc, for producer i.
func (r *cryptoRun) caller(i int) caller {
	return producers.NewTestRunTC(r.coll.Programs[progs.CryptoProgCall].FD(), uint32(i))
}

// producer readies a producer. Its calls use slot w.ID alone.
func (r *cryptoRun) producer(w *harness.Worker) (harness.Producer, error) {
	batch := func(mode progs.CryptoMode) func() (report.Sample, error) {
		call := r.request(w.ID, uint32(mode), r.cfg.verb, r.caller(w.ID)).do
		return (&producers.Split{Pass: r.cfg.batch(), Passes: 1, Aborted: w.Aborted, Call: call}).Batch
	}
	return harness.Producer{Batch: batch(r.cfg.mode), Twin: batch(progs.CryptoModeMODE_TWIN)}, nil
}

// check looks at what the producers' last operations came to.
func (r *cryptoRun) check(producers int) func(*report.Run) error {
	return func(*report.Run) error {
		for i := range producers {
			if got := r.dst(i); !bytes.Equal(got, r.to) {
				return fmt.Errorf("%s by producer %d: %x became %x, want %x", r.cfg.verb, i, r.from, got, r.to)
			}
		}
		return nil
	}
}
