// Command testsum runs go test and summarizes the results.
//
//	go run ./internal/testsum [go test arguments] [-- go test arguments]...
//
// Each group of arguments is one run of go test. The output has one line for each package and the output of
// each failed test. A summary over all groups follows. It lists the skipped tests with their reasons, and
// how many tests ran on which GPU (a GPU test has the attribute "adapter"). The exit status is 1 if a test
// failed. With CI=true it is also 1 if a test was skipped because an adapter or the shared test data was
// missing.
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

// groups splits `args` at "--".
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

// run runs one go test and reports whether it succeeded.
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
