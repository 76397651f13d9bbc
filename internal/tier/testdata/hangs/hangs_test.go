package hangs

import "testing"

func TestPasses(*testing.T) {}

func TestHangs(*testing.T) { select {} }
