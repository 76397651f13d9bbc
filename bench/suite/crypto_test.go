package suite

import (
	"bytes"
	"crypto/aes"
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"bpfbench/bench/harness"
	"bpfbench/internal/testutils"
	"bpfbench/progs"
)

// A sample is as many operations as it is to have, and what comes of them is what it should be.
func TestCrypto(t *testing.T) {
	for _, name := range []string{"crypto-encrypt", "crypto-decrypt"} {
		wantRefused(t, name, "--crypto-len=0 --crypto-cipher=", "--crypto-len=0: must be from 1 to 256", "must be of 1 to 32 characters")
		wantRefused(t, name, "--crypto-len=257 --crypto-cipher="+strings.Repeat("x", 33), "--crypto-len=257", "and is of 33")
		t.Run(name, func(t *testing.T) {
			testutils.NeedsBPF(t)
			testutils.NoLeaks(t)
			wantOps(t, 1<<18/32, name)
			wantOps(t, 1<<18/(256+16), name, "--crypto-len=256")
		})
	}
}

// needsCrypto skips the test where the kernel has no ciphers for programs.
func needsCrypto(t *testing.T) {
	t.Helper()
	testutils.NeedsBPF(t)
	testutils.Needs(t, cryptoFuncs())
	testutils.NoLeaks(t)
}

// Ciphers and lengths that do not fit together are refused, with what would. In the original they are fast.
func TestCryptoImpossible(t *testing.T) {
	needsCrypto(t)
	for _, tt := range []struct {
		settings, want string
		unsupported    bool
	}{
		{settings: "--crypto-len=20", want: "--crypto-len=20: must be a multiple of 16, the block size of ecb(aes)"},
		{settings: "--crypto-len=10", want: "--crypto-len=10: must be a multiple of 16"},
		{settings: "--crypto-cipher=cbc(aes)", want: "needs an initialisation vector, of 16 bytes"},
		{settings: "--crypto-cipher=nothing", want: "cipher nothing for BPF: not in this kernel", unsupported: true},
	} {
		inst, err := setup(t, t.Context(), 1, "crypto-encrypt", strings.Fields(tt.settings)...)
		if inst != nil {
			err = errors.Join(errors.New("it is accepted"), inst.Close())
		}
		t.Log(err)
		missing := errors.Is(err, errors.ErrUnsupported)
		if tt.settings == "--crypto-cipher=cbc(aes)" && missing {
			continue // this kernel has no such cipher
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) || missing != tt.unsupported {
			t.Errorf("%s: error %v, want %q in it", tt.settings, err, tt.want)
		}
	}
}

// The kernel's cipher is AES, and each producer has a result of its own.
func TestCryptoResult(t *testing.T) {
	needsCrypto(t)
	block, err := aes.NewCipher([]byte(cryptoKey))
	if err != nil {
		t.Fatal(err)
	}
	const producers = 3
	for _, name := range []string{"crypto-encrypt", "crypto-decrypt"} {
		_, cfg, err := config(t, name, "--crypto-len=32")
		if err != nil {
			t.Fatal(err)
		}
		r := &cryptoRun{cfg: cfg.(*crypto)}
		if err := r.load(producers); err != nil {
			t.Fatal(err)
		}
		if err := r.roundTrip(); err != nil {
			t.Fatal(err)
		}
		plain, secret := r.from, r.to
		if name == "crypto-decrypt" {
			plain, secret = secret, plain
		}
		want := make([]byte, 32)
		block.Encrypt(want, plain)
		block.Encrypt(want[16:], plain[16:])
		if !bytes.Equal(secret, want) {
			t.Errorf("%s: %x became %x, want %x", name, plain, secret, want)
		}
		check := r.check(producers)
		for i := range producers {
			if err := check(nil); err == nil {
				t.Errorf("%s: the producers from %d on have done nothing, and that is accepted", name, i)
			}
			copy(r.src(i), r.from)
			p, err := r.producer(&harness.Worker{ID: i})
			if err != nil {
				t.Fatal(err)
			}
			if s, err := p.Batch(); err != nil || s.Ops != r.cfg.batch() {
				t.Errorf("%s: sample %+v, %v", name, s, err)
			}
		}
		if err := check(nil); err != nil {
			t.Error(err)
		}
		if err := r.close(); err != nil {
			t.Error(err)
		}
	}
}

// An operation that fails is an error and counts for nothing.
func TestCryptoFails(t *testing.T) {
	needsCrypto(t)
	r := &cryptoRun{cfg: &crypto{length: 20, cipher: "ecb(aes)"}}
	if err := r.load(1); err != nil {
		t.Fatal(err)
	}
	for mode, verb := range map[progs.CryptoMode]string{progs.CryptoModeMODE_ENCRYPT: "encrypt", progs.CryptoModeMODE_DECRYPT: "decrypt"} {
		_, err := r.request(0, uint32(mode), verb, r.caller(0)).do(0, 10, 1)
		var failed *opError
		if !errors.As(err, &failed) || failed.after != 0 || failed.errno != unix.EINVAL {
			t.Errorf("%s 20 bytes: error %v, want %v at once", verb, err, unix.EINVAL)
		}
	}
	if err := r.roundTrip(); !errors.Is(err, unix.EINVAL) {
		t.Errorf("a round trip of 20 bytes: error %v, want %v", err, unix.EINVAL)
	}
	if err := r.close(); err != nil {
		t.Error(err)
	}
}
