package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/pflag"

	"gpuscope/cmd/gpuscope/cli"
	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/model/stepping"
	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/report"
	"gpuscope/trace/table"
)

func devicesCommand(p *program) *cli.Command {
	return &cli.Command{
		Name: "devices",
		Doc:  "list the adapters and their limits, and show which adapter is chosen and why",
		Examples: []cli.Example{
			{"gpuscope devices", "all adapters"},
			{"gpuscope devices --device nvidia", "show which adapter this name chooses"},
			{"gpuscope devices --measure", "also measure the ceilings of the chosen adapter"},
			{"gpuscope devices --format json", "the same list as JSON, for a program"},
		},
		Setup: func(flags *pflag.FlagSet) cli.Action {
			device := flags.String("device", "", "choose adapter `N|NAME`, its number or a part of its name")
			measure := flags.Bool("measure", false,
				"measure the ceilings of the chosen adapter, and store them for later runs")
			format := cli.FormatFlag(flags, "text", "json")
			return func(ctx context.Context, _ []string) error {
				if err := format.Check(); err != nil {
					return err
				}
				found, err := p.listDevices(*device)
				if err != nil {
					return asUsage(err)
				}
				if *measure {
					if err := p.measure(ctx, *device, found); err != nil {
						return err
					}
				}
				if format.Value == "json" {
					return cli.WriteJSON(p.Stdout, found)
				}
				return cli.PrintTable(ctx, p.Stdout, found.table())
			}
		},
	}
}

// deviceList is the result of the devices command.
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

// measure measures the ceilings of the chosen device.
func (p *program) measure(ctx context.Context, device string, found *deviceList) error {
	progress := newProgress(p)
	defer progress.done()
	ceilings, err := stepping.MeasureCeilings(ctx, p.driver, device, p.cache,
		func(phase string, done, total int) error {
			progress.show(session.Event{Progress: &session.Progress{Phase: phase, Done: done, Total: total}})
			return ctx.Err()
		},
		func(err error) { fmt.Fprintf(p.Stderr, "gpuscope devices: %s\n", cli.OneLine(err)) })
	if err != nil {
		return err
	}
	found.Devices[found.Chosen].Ceilings = ceilings
	return nil
}

// listDevices lists the devices with their cached ceilings.
func (p *program) listDevices(want string) (*deviceList, error) {
	infos, err := p.driver.Adapters()
	if err != nil {
		return nil, err
	}
	list := &deviceList{}
	if list.Chosen, list.Reason, err = stepping.ChooseDevice(infos, want); err != nil {
		return nil, err
	}
	for i, info := range infos {
		entry := deviceEntry{
			Index: i, Device: engine.DescribeDevice(info), Vendor: info.Vendor,
			Features: []string{}, info: info,
		}
		entry.Ceilings = stepping.CachedCeilings(&entry.Device, p.cache)
		if info.Timestamps {
			entry.Features = append(entry.Features, "timestamp-query")
		}
		list.Devices = append(list.Devices, entry)
	}
	return list, nil
}

// typeWords describes the adapter types and what they mean for measurements.
var typeWords = map[gpu.AdapterType]string{
	gpu.Discrete:       "discrete GPU",
	gpu.Integrated:     "integrated GPU",
	gpu.Virtual:        "virtual GPU",
	gpu.CPU:            "software on the CPU, not a GPU: only ratios of times are meaningful",
	gpu.UnknownAdapter: "adapter of unknown type",
}

// table returns a table with a row for each adapter and child rows for its properties.
func (d *deviceList) table() *table.Table {
	var rows []table.Row
	type cells struct{ name, is string }
	var list []cells
	add := func(key string, parent int, name, is string) int {
		row := table.Row{Key: key, Parent: parent, Open: true}
		if parent >= 0 {
			row.Depth = 1
		}
		rows, list = append(rows, row), append(list, cells{name, is})
		return len(rows) - 1
	}
	for _, e := range d.Devices {
		l := e.info.Limits
		timing := "no feature timestamp-query: only wall times can be measured"
		if e.info.Timestamps {
			timing = "feature timestamp-query: every dispatch can be timed"
		}
		key, chosen := strconv.Itoa(e.Index), ""
		if e.Index == d.Chosen {
			chosen = "chosen"
		}
		device := add(key, -1, key+" "+e.Name, chosen)
		for _, c := range []struct{ name, is string }{
			{"type", typeWords[e.info.Type]},
			{"backend", e.Backend + prefixed(", driver ", e.Driver) + prefixed(", by ", e.Vendor)},
			{"timing", timing},
			{"memory", fmt.Sprintf("at most: buffer %s, storage binding %s, uniform binding %s, %d storage buffers per kernel",
				table.Memory(l.MaxBufferSize), table.Memory(l.MaxStorageBinding),
				table.Memory(l.MaxUniformBinding), l.MaxStorageBuffers)},
			{"workgroup", fmt.Sprintf("at most: %d invocations (%d x %d x %d), %s shared memory, %d workgroups per dimension",
				l.MaxInvocations, l.MaxWorkgroupX, l.MaxWorkgroupY, l.MaxWorkgroupZ,
				table.Memory(uint64(l.MaxWorkgroupStorage)), l.MaxWorkgroups)},
		} {
			add(key+"/"+c.name, device, c.name, c.is)
		}
		for i, line := range report.CeilingFacts(e.Ceilings) {
			name := "ceilings"
			if i > 0 {
				name = ""
			}
			add(fmt.Sprintf("%s/ceilings/%d", key, i), device, name, line)
		}
	}
	of := table.ColumnsOf(list)
	t := table.New("devices", []table.Column{
		of.Text(80, "device", "device", "", func(c *cells) string { return c.name }).AsTree(),
		of.Text(80, "is", "", "", func(c *cells) string { return c.is }),
	}, rows)
	t.Notes = []string{fmt.Sprintf("chosen: %d, %s", d.Chosen, d.Reason)}
	return t
}

func prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}
