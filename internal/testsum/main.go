// Command testsum runs go test and says what ran.
//
//	go run ./internal/testsum [go test arguments] [-- go test arguments]...
//
// Each group of arguments is one go test. A package prints one line, a failed test what it said. At the end
// stand the tests that were skipped with their reasons, how many ran on a GPU and on which (a GPU test
// carries the attribute "adapter"), and one closing line over all groups. The exit status is 1 if a test
// failed, and with CI=true also if one was skipped because an adapter or the shared test data was missing.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
)

func main() {
	sum := newSummary(os.Stdout)
	ok := true
	for group := range groups(os.Args[1:]) {
		ok = run(sum, group) && ok
	}
	sum.close()
	if !ok || sum.failed > 0 || os.Getenv("CI") == "true" && sum.missing > 0 {
		os.Exit(1)
	}
}

// groups splits args at "--".
func groups(args []string) func(yield func([]string) bool) {
	return func(yield func([]string) bool) {
		for {
			i := slices.Index(args, "--")
			if i < 0 {
				yield(args)
				return
			}
			if !yield(args[:i]) {
				return
			}
			args = args[i+1:]
		}
	}
}

// run is one go test; false if it did not succeed.
func run(sum *summary, args []string) bool {
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "testsum:", err)
		return false
	}
	readErr := sum.read(out)
	if err := cmd.Wait(); err != nil {
		return false
	}
	if readErr != nil {
		fmt.Fprintln(os.Stderr, "testsum: go test -json:", readErr)
		return false
	}
	return true
}
