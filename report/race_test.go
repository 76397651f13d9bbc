//go:build race

package report

// The race detector makes simulations ten times slower, and they have nothing to race with.
func init() { racing = true }
