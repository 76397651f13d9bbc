package kernel

// ProbeRawTracepoint is the probe behind RawTracepoint, which runs it once only.
var ProbeRawTracepoint = probeRawTracepoint
