package host

import (
	"bufio"
	"compress/gzip"
	"io"
	"os"
	"strings"
)

// maxConfig bounds what is read of a kernel configuration, in bytes: it has some 300 KB.
const maxConfig = 16 << 20

// kernelConfig returns the options that the running kernel was built with, by names such as "CONFIG_BPF_JIT". It is nil
// where no file tells. An option that is not set is not in it.
func (m machine) kernelConfig(release string) map[string]string {
	for _, name := range []string{
		"proc/config.gz", "boot/config-" + release, "lib/modules/" + release + "/config", "usr/lib/modules/" + release + "/config",
	} {
		if config := m.readConfig(name); config != nil {
			return config
		}
	}
	return nil
}

func (m machine) readConfig(name string) map[string]string {
	file, err := os.Open(m.path(name))
	if err != nil {
		return nil
	}
	defer func() { _ = file.Close() }()
	var from io.Reader = file
	if strings.HasSuffix(name, ".gz") {
		unpacked, err := gzip.NewReader(file)
		if err != nil {
			return nil
		}
		from = unpacked
	}
	config := map[string]string{}
	lines := bufio.NewScanner(io.LimitReader(from, maxConfig))
	for lines.Scan() {
		option, value, ok := strings.Cut(lines.Text(), "=")
		if ok && strings.HasPrefix(option, "CONFIG_") {
			config[option] = strings.Trim(value, `"`)
		}
	}
	if lines.Err() != nil || len(config) == 0 {
		return nil
	}
	return config
}
