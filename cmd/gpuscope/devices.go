package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/internal/printable"
	"gpuscope/model"
	"gpuscope/trace"
)

func devicesCommand() *command {
	return &command{
		name: "devices",
		doc:  "list the adapters, their limits, which one would be chosen and why",
		examples: []example{
			{"gpuscope devices", "what is there"},
			{"gpuscope devices --device nvidia", "which one that would choose"},
			{"gpuscope devices --format json", "the same for a program"},
		},
		setup: func(p *program, flags *pflag.FlagSet) action {
			device := flags.String("device", "", "choose by number or part of the name: `N|NAME`")
			format := formatFlag(flags, "text", "json")
			return func(context.Context, []string) error {
				if err := format.check(); err != nil {
					return err
				}
				found, err := listDevices(p.driver, *device)
				if err != nil {
					return asUsage(err)
				}
				if format.value == "json" {
					return writeJSON(p.stdout, found)
				}
				return found.print(p.stdout)
			}
		},
	}
}

// deviceList is what devices prints.
type deviceList struct {
	Devices []deviceEntry `json:"devices"`
	Chosen  int           `json:"chosen"`
	Reason  string        `json:"reason"`
}

type deviceEntry struct {
	Index int `json:"index"`
	trace.Device
	Vendor   string   `json:"vendor,omitempty"`
	Features []string `json:"features"`
	info     gpu.AdapterInfo
}

func listDevices(driver gpu.Driver, want string) (*deviceList, error) {
	infos, err := driver.Adapters()
	if err != nil {
		return nil, err
	}
	list := &deviceList{}
	if list.Chosen, list.Reason, err = model.ChooseDevice(infos, want); err != nil {
		return nil, err
	}
	for i, info := range infos {
		entry := deviceEntry{
			Index: i, Device: engine.DescribeDevice(info), Vendor: info.Vendor,
			Features: []string{}, info: info,
		}
		if info.Timestamps {
			entry.Features = append(entry.Features, "timestamp-query")
		}
		list.Devices = append(list.Devices, entry)
	}
	return list, nil
}

// typeWords says what a type of adapter means for a measurement.
var typeWords = map[gpu.AdapterType]string{
	gpu.Discrete:       "discrete GPU",
	gpu.Integrated:     "integrated GPU",
	gpu.Virtual:        "virtual GPU",
	gpu.CPU:            "software on the CPU, no GPU: compare ratios only",
	gpu.UnknownAdapter: "adapter of unknown type",
}

func (d *deviceList) print(w io.Writer) error {
	var b bytes.Buffer
	for _, e := range d.Devices {
		mark := " "
		if e.Index == d.Chosen {
			mark = "*"
		}
		l := e.info.Limits
		fmt.Fprintf(&b, "%s %d  %s\n", mark, e.Index, printable.Clean(e.Name))
		fmt.Fprintf(&b, "     type      %s\n", typeWords[e.info.Type])
		fmt.Fprintf(&b, "     backend   %s\n",
			printable.Clean(e.Backend+prefixed(", driver ", e.Driver)+prefixed(", by ", e.Vendor)))
		if e.info.Timestamps {
			fmt.Fprintf(&b, "     timing    timestamp-query: every dispatch can be timed\n")
		} else {
			fmt.Fprintf(&b, "     timing    no timestamp-query: wall time only\n")
		}
		fmt.Fprintf(&b,
			"     memory    buffer %s, storage binding %s, uniform binding %s, %d storage buffers a kernel\n",
			bytesText(l.MaxBufferSize), bytesText(l.MaxStorageBinding), bytesText(l.MaxUniformBinding),
			l.MaxStorageBuffers)
		fmt.Fprintf(&b,
			"     workgroup %d invocations (%d x %d x %d), %s shared, %d workgroups per dimension\n",
			l.MaxInvocations, l.MaxWorkgroupX, l.MaxWorkgroupY, l.MaxWorkgroupZ,
			bytesText(uint64(l.MaxWorkgroupStorage)), l.MaxWorkgroups)
	}
	fmt.Fprintf(&b, "chosen: %d, %s\n", d.Chosen, printable.Clean(d.Reason))
	_, err := w.Write(b.Bytes())
	return err
}

func prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

// bytesText is a size in the largest binary unit that keeps three digits or so.
func bytesText[N uint64 | int64](n N) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	v, i := float64(n), 0
	for ; v >= 1024 && i < len(units)-1; i++ {
		v /= 1024
	}
	if i == 0 || v == float64(int64(v)) {
		return fmt.Sprintf("%.0f %s", v, units[i])
	}
	return fmt.Sprintf("%.1f %s", v, units[i])
}

// choice is a flag whose value is one of a few words.
type choice struct {
	name, value string
	words       []string
}

func formatFlag(flags *pflag.FlagSet, words ...string) *choice {
	return choiceFlag(flags, "format", "print as `FORM`", words...)
}

// choiceFlag declares a flag that takes one of words, by default the first.
func choiceFlag(flags *pflag.FlagSet, name, doc string, words ...string) *choice {
	c := &choice{name: name, words: words}
	flags.StringVar(&c.value, name, words[0], doc+": "+orList(words))
	return c
}

func (c *choice) check() error {
	for _, w := range c.words {
		if c.value == w {
			return nil
		}
	}
	return usagef("--%s %q: want %s", c.name, c.value, orList(c.words))
}

// orList is "a, b or c".
func orList(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	text := words[0]
	for _, w := range words[1 : len(words)-1] {
		text += ", " + w
	}
	return text + " or " + words[len(words)-1]
}

func writeJSON(w io.Writer, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return err
}
