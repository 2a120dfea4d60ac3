package tui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"gpuscope/session"
	"gpuscope/tui/tty"
)

// labFolder is the folder for the texts of kernels: the one that was given, else a new one in the cache.
func labFolder(o *Options) (dir string, err error) {
	if o.Shaders != "" {
		return o.Shaders, nil
	}
	base := filepath.Join(cmp.Or(o.Cache, filepath.Join(os.TempDir(), "gpuscope")), "shaders")
	if err = os.MkdirAll(base, 0o700); err == nil {
		dir, err = os.MkdirTemp(base, "")
	}
	if err != nil {
		err = fmt.Errorf("%w: choose a folder with --shaders DIR", err)
	}
	return dir, err
}

// writeText writes the text of a kernel to its file in a folder, unless it is there: then somebody has
// changed it. Who empties a cache meanwhile takes the folder away.
func writeText(dir, kernel, text string) (path string, err error) {
	path = filepath.Join(dir, kernel+session.KernelSuffix)
	if _, err := os.Stat(path); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return path, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return path, err
	}
	return path, os.WriteFile(path, []byte(text), 0o600)
}

// removeUnchanged removes files that still have the text that each was made with, and their folder where
// nothing is left in it.
func removeUnchanged(dir string, made map[string]string) {
	for path, text := range made {
		if now, err := os.ReadFile(path); err == nil && string(now) == text {
			_ = os.Remove(path) // it stays, as one that was changed does
		}
	}
	_ = os.Remove(dir)
}

// editorOf is the command that opens a file in an editor, "" for the person's. It has the terminal to itself.
func editorOf(path, editor string, in io.Reader, out io.Writer) (*exec.Cmd, error) {
	words := strings.Fields(cmp.Or(editor, os.Getenv("VISUAL"), os.Getenv("EDITOR"), "vi"))
	if len(words) == 0 {
		words = []string{"vi"}
	}
	if _, err := exec.LookPath(words[0]); err != nil {
		return nil, fmt.Errorf("editor %s not found: set VISUAL or EDITOR; the file is %s",
			words[0], path)
	}
	cmd := exec.Command(words[0], append(words[1:], path)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(""), out, out
	switch f := in.(type) {
	case nil:
		cmd.Stdin = os.Stdin
	case tty.Input: // the program reads it through something of its own
		cmd.Stdin = f.File
	}
	return cmd, nil
}

// watchEvery is how often files are looked at that may have changed; tests look more often.
var watchEvery = 500 * time.Millisecond

// stamp is what tells that a file has changed.
type stamp struct {
	at   time.Time
	size int64
}

// watchTexts looks at the texts of a folder until ctx ends, twice a second and when it is woken, and tells of
// each that has changed since it looked first.
func watchTexts(ctx context.Context, dir string, wake <-chan struct{}, tell func(changedMsg)) {
	seen := stamps(dir)
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-wake:
		}
		now := stamps(dir)
		for kernel, s := range now {
			if seen[kernel] == s {
				continue
			}
			text, err := session.ReadKernelText(filepath.Join(dir, kernel+session.KernelSuffix))
			if errors.Is(err, fs.ErrNotExist) || err == nil && text == "" { // it is being written
				now[kernel] = seen[kernel]
				continue
			}
			tell(changedMsg{kernel, text, err})
		}
		seen = now
	}
}

// stamps are those of the texts in a folder, by kernel.
func stamps(dir string) map[string]stamp {
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	all := map[string]stamp{}
	for _, f := range list {
		kernel, is := strings.CutSuffix(f.Name(), session.KernelSuffix)
		if !is {
			continue
		}
		if info, err := os.Stat(filepath.Join(dir, f.Name())); err == nil { // of what a link leads to
			all[kernel] = stamp{info.ModTime(), info.Size()}
		}
	}
	return all
}
