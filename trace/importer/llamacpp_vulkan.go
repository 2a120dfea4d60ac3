package importer

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"

	"gpuscope/internal/printable"
	"gpuscope/trace"
)

// llamacppVulkan is the log that llama.cpp's Vulkan backend prints if the environment variable
// GGML_VK_PERF_LOGGER is 1. A step is a block after the line "Vulkan Timings:", with a line for each
// operation and shape:
//
//	MUL_MAT_VEC q4_0 m=512 n=1 k=2048: 32 x 5.619 us = 179.808 us (373.134 GFLOPS/s)
//
// The number after x is the mean of all launches of the line. The log has no names of tensors.
var llamacppVulkan = format{
	name: "llamacpp-vulkan", doc: "the log of llama.cpp's Vulkan backend with GGML_VK_PERF_LOGGER=1",
	sniff: func(start []byte) bool {
		return bytes.Contains(start, []byte(vulkanMark)) || bytes.Contains(start, []byte(vulkanLog))
	},
	read: readVulkanLog,
}

const (
	vulkanMark  = "Vulkan Timings:"
	vulkanTotal = "Total time:"
	vulkanLog   = "ggml_vulkan: " // begins lines of the log before the first times, which can be long
	maxDim      = 1 << 31         // maximum size of a dim of a tensor
)

var (
	vulkanLine = regexp.MustCompile(`^(.+): ([0-9]{1,12}) x ([^ ]+) us( |$)`)
	vulkanDim  = regexp.MustCompile(`\b([mnk])=([0-9]{1,12})\b`)
	vulkanDims = regexp.MustCompile(`\(([0-9]{1,12}),([0-9]{1,12}),`)
)

func readVulkanLog(in io.Reader, t *trace.Trace) error {
	t.Engine, t.Device.Backend = "llama.cpp", "llama.cpp Vulkan"
	r, m := newRecorder(t), newModel(t)
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	var rows []shapeRow
	var wrong error // of the last line, which can be cut off
	tokens, inside, n, totals := 0, false, 0, 0
	finish := func() error {
		if len(rows) == 0 {
			return nil
		}
		step := &stepRows{}
		if err := r.joinShapes(m, step, rows); err != nil {
			return err
		}
		err := r.addTokens(max(tokens, 1), step)
		rows, tokens = rows[:0], 0
		return err
	}
	for lines.Scan() {
		n++
		text := strings.TrimSpace(lines.Text())
		if wrong != nil {
			return wrong
		}
		switch {
		case strings.HasSuffix(text, vulkanMark):
			if len(rows) > 0 && totals > 0 {
				return &LineError{n, errors.New("the block above has no total: lines are missing")}
			}
			inside = true
			if err := finish(); err != nil {
				return err
			}
		case strings.HasPrefix(text, vulkanTotal), strings.HasPrefix(text, "-----"):
			if total, ok := strings.CutPrefix(text, vulkanTotal); ok {
				if !addsUp(rows, total) {
					wrong = &LineError{n, errors.New("the lines above do not add up to it: some are missing")}
					continue
				}
				totals++
			}
			inside = false
			if err := finish(); err != nil {
				return err
			}
		case inside && text != "":
			row, of, err := vulkanRow(text)
			if err != nil {
				wrong = &LineError{n, err}
				continue
			}
			if row.text, err = r.name(row.text); err != nil { // the line may be long
				return err
			}
			row.op, _, _ = strings.Cut(row.text, " ")
			tokens = max(tokens, of)
			if rows = append(rows, row); len(rows) > maxRows {
				return r.room(len(rows))
			}
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return &LineError{n + 1, fmt.Errorf("%w: the line has more than %d bytes", ErrTooLarge, maxLine)}
	case err != nil:
		return err
	}
	if inside && totals > 0 { // the last block has no total, but others have
		t.Events = append(t.Events, trace.Event{
			Step: len(t.Steps) - 1, Kind: trace.EventCut,
			Text: "truncated log: its last step is incomplete and was dropped",
		})
	} else if err := cmp.Or(wrong, finish()); err != nil {
		return err
	} else if inside && len(t.Steps) > 0 {
		t.Events = append(t.Events, trace.Event{
			Step: len(t.Steps) - 1, Kind: trace.EventCut,
			Text: "the log may be truncated: its last step has no total",
		})
	}
	if len(t.Steps) == 0 {
		return fmt.Errorf("%w: the blocks have no lines", ErrFormat)
	}
	r.finish()
	return nil
}

// addsUp reports whether the rows of a block take as long as the log says, apart from rounding.
func addsUp(rows []shapeRow, total string) bool {
	number, _, _ := strings.Cut(strings.TrimSpace(total), " ")
	want, err := microseconds(number)
	ns, ok := want.NS()
	if err != nil || !ok {
		return true // another form of the line
	}
	sum := 0.0
	for i := range rows {
		each, _ := rows[i].time.NS()
		sum += float64(rows[i].count) * float64(each)
	}
	return math.Abs(sum-float64(ns)) <= max(0.01*float64(ns), float64(len(rows))*1000)
}

// vulkanRow reads a line of a block. It also returns the number of tokens that the line states, or 0.
func vulkanRow(text string) (row shapeRow, tokens int, err error) {
	parts := vulkanLine.FindStringSubmatch(text)
	if parts == nil {
		return row, 0, fmt.Errorf("%s: want a line like \"OPERATION: COUNT x MEAN us\"",
			printable.Short(text, 60))
	}
	row.text = parts[1]
	if row.count, err = strconv.Atoi(parts[2]); err != nil || row.count < 1 {
		return row, 0, fmt.Errorf("count %s: want at least 1", printable.Short(parts[2], 40))
	}
	if row.time, err = microseconds(parts[3]); err != nil {
		return row, 0, err
	}
	row.op, _, _ = strings.Cut(row.text, " ")
	n := 0
	for _, d := range vulkanDim.FindAllStringSubmatch(row.text, -1) {
		size, err := strconv.Atoi(d[2])
		if err != nil || size > maxDim {
			return row, 0, fmt.Errorf("%s=%s: want at most %d", d[1], d[2], maxDim)
		}
		switch d[1] {
		case "m":
			row.m = size
		case "n":
			n = size
		case "k":
			row.k = size
		}
	}
	if row.matrix() {
		return row, n, nil
	}
	if strings.Contains(row.op, "NORM") {
		if d := vulkanDims.FindStringSubmatch(row.text); d != nil {
			row.width, _ = strconv.Atoi(d[1]) // cannot fail: at most 12 digits
		}
	}
	return row, 0, nil
}
