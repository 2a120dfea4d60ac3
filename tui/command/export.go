package command

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/table"
)

// LargeExport is the minimum size in bytes of an export whose size is shown beforehand.
const LargeExport = 10 << 20

// ExportTo returns the question for the name of the file to export a trace to. `path` is the name typed so
// far. `size` is the approximate size of the file in bytes, or 0 if it is unknown. The question shows the
// size of a large file. It warns if the suffix of `path` chooses a format that gpuscope cannot open again.
func ExportTo(path string, size int64) string {
	label := "export to"
	if size >= LargeExport {
		label = fmt.Sprintf("export (about %s) to", table.Bytes(size))
	}
	if only := WriteOnly(path); only != "" {
		return label + only
	}
	return label + " (tab: other formats)"
}

// NextFormat returns the path with the suffix of the next trace format, in the order of the help. A path
// whose suffix is not known gets the first one.
func NextFormat(path string) string {
	suffixes := trace.Suffixes()
	for _, e := range trace.Exports() {
		suffixes = append(suffixes, e.Suffix)
	}
	at := -1
	for i, s := range suffixes {
		if strings.HasSuffix(path, s) && (at < 0 || len(s) > len(suffixes[at])) {
			at = i
		}
	}
	if at >= 0 {
		path = strings.TrimSuffix(path, suffixes[at])
	}
	return path + suffixes[(at+1)%len(suffixes)]
}

// WriteOnly returns a warning, such as " parquet (cannot be opened again)", if gpuscope cannot open the
// format that the suffix of the path chooses. Otherwise it returns "".
func WriteOnly(path string) string {
	if f, _, err := trace.FormatOf(path); err == nil && !f.Opens() {
		return " " + f.Name + " (cannot be opened again)"
	}
	return ""
}

// ValueTo returns the question for the name of the file to write a value of n elements to. `path` is the name
// typed so far, whose suffix chooses the format. `size` is the size of an element in bytes. The question
// shows the size of a large file.
func ValueTo(path string, n, size int) string {
	bytes, about := int64(n)*int64(size), ""
	if strings.EqualFold(filepath.Ext(path), ".csv") {
		bytes, about = int64(n)*csvBytes, "about "
	}
	if bytes >= LargeExport {
		return fmt.Sprintf("value (%s%s) to", about, table.Bytes(bytes))
	}
	return "value to"
}

// csvBytes is the usual number of characters of a number in a CSV file, with the comma.
const csvBytes = 13

// SavedNote describes the file that a Save wrote.
func SavedNote(s *session.Saved) string {
	return fmt.Sprintf("wrote %s: %s %s, %s", s.Path, s.Type, table.Shape(s.Dims), table.Bytes(s.Bytes))
}

// Absent returns an error if the path exists. It prevents a typing mistake from overwriting a file, such as a
// model.
func Absent(path string) error {
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%s exists; choose another name", path)
	}
	return nil
}

// FreeName returns the first name without a file among "a.csv", "a-2.csv", "a-3.csv" and so on.
func FreeName(name string) string {
	suffix := filepath.Ext(name)
	bare, found := strings.TrimSuffix(name, suffix), name
	for i := 2; Absent(found) != nil; i++ {
		found = fmt.Sprintf("%s-%d%s", bare, i, suffix)
	}
	return found
}

// Absolute returns the absolute path, or the path unchanged if its absolute path is unknown.
func Absolute(path string) string {
	if full, err := filepath.Abs(path); err == nil {
		return full
	}
	return path
}
