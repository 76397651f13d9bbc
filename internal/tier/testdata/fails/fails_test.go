package fails

import (
	"fmt"
	"os"
	"testing"
)

func TestPasses(t *testing.T) { t.Log("nobody wants to know") }

func TestFails(t *testing.T) {
	t.Run("well", func(*testing.T) {})
	t.Run("badly", func(t *testing.T) {
		fmt.Println("printed")
		t.Error("this is wrong")
	})
}

func TestExits(*testing.T) { os.Exit(0) }
