//go:build !amd64

package host

func hypervisorVendor() string { return "" }
