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

// labFolder returns the folder for kernel sources: the --shaders folder if one was given, else a new
// folder in the cache.
func labFolder(o *Options) (dir string, err error) {
	if o.Shaders != "" {
		return o.Shaders, nil
	}
	base := filepath.Join(cmp.Or(o.Cache, filepath.Join(os.TempDir(), "gpuscope")), "shaders")
	if err = os.MkdirAll(base, 0o700); err == nil {
		dir, err = os.MkdirTemp(base, "")
	}
	if err != nil {
		err = fmt.Errorf("folder for kernel sources: %w. Choose another folder with --shaders DIR", err)
	}
	return dir, err
}

// writeText writes the source of a kernel to its file in dir and returns the path. It keeps an existing
// file, because the user may have edited it. It creates the folder again if someone has emptied the cache
// in the meantime.
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

// removeUnchanged removes the files that still hold the source they were created with, and then the folder if
// it is empty. made maps the path of each file to the source that the file was created with.
func removeUnchanged(dir string, made map[string]string) {
	for path, text := range made {
		if now, err := os.ReadFile(path); err == nil && string(now) == text {
			_ = os.Remove(path) // on an error the file stays, as an edited file does
		}
	}
	_ = os.Remove(dir)
}

// editorOf returns the command that opens a file in an editor. If editor is "", the user's own editor is
// chosen. The editor takes over the terminal.
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
	case tty.Input: // a wrapper for this program; the editor reads the terminal itself
		cmd.Stdin = f.File
	}
	return cmd, nil
}

// watchEvery is the interval at which the files are checked for changes. Tests use a shorter one.
var watchEvery = 500 * time.Millisecond

// stamp identifies a version of a file by its modification time and size.
type stamp struct {
	at   time.Time
	size int64
}

// watchTexts checks the kernel sources of a folder until ctx ends: twice a second, and whenever wake receives
// a value. It calls tell for each source that has changed since watchTexts started.
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
			if errors.Is(err, fs.ErrNotExist) || err == nil && text == "" { // the file is being written
				now[kernel] = seen[kernel]
				continue
			}
			tell(changedMsg{kernel, text, err})
		}
		seen = now
	}
}

// stamps returns the stamp of each kernel source in a folder, by kernel name.
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
		if info, err := os.Stat(filepath.Join(dir, f.Name())); err == nil { // follows symbolic links
			all[kernel] = stamp{info.ModTime(), info.Size()}
		}
	}
	return all
}
