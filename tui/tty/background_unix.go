//go:build unix

package tty

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// answerWithin is the time limit for the first byte of an answer, and endWithin for the rest of the answer.
const (
	answerWithin = 40 * time.Millisecond
	endWithin    = time.Second
)

// ask sends a question that ends in askDevice and returns the terminal's answers.
func ask(in, out *os.File, question string) string {
	fd := int(in.Fd())
	if group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP); err != nil || group != unix.Getpgrp() {
		return "" // the program is in the background, so another program uses the terminal
	}
	before, err := term.MakeRaw(fd)
	if err != nil {
		return ""
	}
	defer func() { _ = term.Restore(fd, before) }() // cannot fail, because MakeRaw has just succeeded
	if _, err := out.WriteString(question); err != nil {
		return ""
	}
	var answer []byte
	deadline := time.Now().Add(answerWithin)
	for !deviceAnswer.Match(answer) {
		left := time.Until(deadline).Milliseconds()
		ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		if left <= 0 {
			break
		}
		if n, err := unix.Poll(ready, int(left)); err != nil && err != unix.EINTR || n == 0 && err == nil {
			break
		} else if n == 0 {
			continue
		}
		if len(answer) == 0 {
			deadline = deadline.Add(endWithin)
		}
		buf := make([]byte, 256)
		n, err := in.Read(buf)
		if err != nil || len(answer) > 4096 {
			break
		}
		answer = append(answer, buf[:n]...)
	}
	return string(answer)
}
