package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/spf13/pflag"

	"gpuscope/cmd/gpuscope/cli"
	"gpuscope/internal/printable"
	"gpuscope/tui"
)

// Settings are the user's defaults for the screen: flags and keys. A flag on the command line overrides its
// environment variable, for example GPUSCOPE_DEVICE for --device. The variable overrides the settings file.
// Only the screen uses settings. Other commands depend only on their command line, so that they behave the
// same on every machine.

// configFile returns the path of the settings file, or "" if there is no folder for it.
func configFile() string {
	dir, err := os.UserConfigDir() // XDG_CONFIG_HOME on Linux
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "gpuscope", "config.toml")
}

// cacheFolder returns the folder for cached device measurements, or "" if the user has none.
func cacheFolder() string {
	dir, err := os.UserCacheDir() // XDG_CACHE_HOME on Linux
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "gpuscope")
}

// mostConfig is the maximum size in bytes of the settings file.
const mostConfig = 1 << 20

// setting is the value that the environment or the settings file gives to a flag that is not on the command
// line.
type setting struct {
	flag   string
	values []string // several values for a flag that may be repeated
	from   string   // where the value comes from, for messages: "config.toml:3" or the name of a variable
}

// config is the content of the settings file.
type config struct {
	path, text string
	settings   []setting
	keys       map[string][]string // keys of actions, by action name
	warnings   []string
}

// at returns the file and line of a setting.
func (c *config) at(table, key string) string {
	in, line := "", 0
	for l := range strings.Lines(c.text) {
		line++
		if head := tableHead.FindStringSubmatch(l); head != nil {
			in = head[1]
		}
		if name, _, ok := strings.Cut(l, "="); ok && in == table && strings.Trim(name, " \t\"'") == key {
			return fmt.Sprintf("%s:%d", c.path, line)
		}
	}
	return c.path
}

var tableHead = regexp.MustCompile(`^\s*\[\s*([^\]]*?)\s*\]`)

// readConfig reads the settings file. A missing file has no settings. An unknown setting is only a warning,
// so that one file can serve several versions.
func readConfig(path string, flags *pflag.FlagSet) (*config, error) {
	c := &config{path: path}
	info, err := os.Stat(path)
	if path == "" || errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err == nil && info.Size() > mostConfig {
		err = fmt.Errorf("%s: the settings file has %d bytes, but the maximum is %d",
			path, info.Size(), mostConfig)
	}
	if err != nil {
		return nil, err
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	c.text = string(raw)
	var file map[string]any
	if err := toml.Unmarshal(raw, &file); err != nil {
		if e, ok := errors.AsType[toml.ParseError](err); ok {
			return nil, cli.Usagef("%s:%d: %s", path, e.Position.Line, e.Message)
		}
		return nil, cli.Usagef("%s: %v", path, err)
	}
	names := settable(flags)
	for _, name := range slices.Sorted(maps.Keys(file)) {
		if name == "keys" {
			continue
		}
		if !slices.Contains(names, name) {
			c.warnings = append(c.warnings, fmt.Sprintf("%s: unknown setting %q%s", c.at("", name),
				printable.Short(name, 40), cli.Suggest(name, names, "")))
			continue
		}
		values, ok := words(file[name])
		if !ok {
			return nil, cli.Usagef("%s: %s: want a string, a number, true, false, or a list of strings",
				c.at("", name), name)
		}
		c.settings = append(c.settings, setting{name, values, c.at("", name)})
	}
	return c, c.readKeys(file["keys"])
}

// readKeys reads the table of keys.
func (c *config) readKeys(v any) error {
	if v == nil {
		return nil
	}
	list, ok := v.(map[string]any)
	if !ok {
		return cli.Usagef("%s: keys: want a table [keys] with lines such as  token = \"n\"", c.path)
	}
	c.keys = map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(list)) {
		keys, ok := words(list[name])
		switch {
		case !ok:
			return cli.Usagef("%s: the value of %q must be a key or a list of keys", c.at("keys", name), name)
		case !slices.Contains(tui.ActionNames(), name):
			c.warnings = append(c.warnings, fmt.Sprintf("%s: unknown action %q%s", c.at("keys", name),
				printable.Short(name, 40), cli.Suggest(name, tui.ActionNames(), "")))
		default:
			c.keys[name] = keys
		}
	}
	if err := tui.CheckKeys(c.keys); err != nil {
		where := c.path
		if e, ok := errors.AsType[*tui.KeyError](err); ok {
			where = c.at("keys", e.Action)
		}
		return cli.Usagef("%s: %v", where, err)
	}
	return nil
}

// words returns the values of a setting as a user would type them on the command line.
func words(v any) ([]string, bool) {
	switch v := v.(type) {
	case string:
		return []string{v}, true
	case bool, int64, float64:
		return []string{fmt.Sprint(v)}, true
	case []any:
		list := []string{}
		for _, e := range v {
			s, ok := e.(string)
			if !ok {
				return nil, false
			}
			list = append(list, s)
		}
		return list, true
	}
	return nil, false
}

// settable returns the names of the flags that the settings file and the environment can set.
func settable(flags *pflag.FlagSet) []string {
	var names []string
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" && f.Name != versionFlag {
			names = append(names, f.Name)
		}
	})
	return names
}

// variable returns the name of the environment variable for a flag.
func variable(flag string) string {
	return "GPUSCOPE_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// settle sets the flags that are not on the command line to their values from the environment or the settings
// file. It also inserts these flags before the program's arguments. The engine process then gets the same
// flags, and a trace records them. settle calls `check` to validate the flags.
func (p *program) settle(flags *pflag.FlagSet, check func() error) (*config, error) {
	c, err := readConfig(p.config, flags)
	if err != nil {
		return nil, err
	}
	var all []setting
	for _, name := range settable(flags) {
		if value, ok := os.LookupEnv(variable(name)); ok {
			all = append(all, setting{name, []string{value}, variable(name)})
		}
	}
	var args []string
	for _, s := range append(all, c.settings...) {
		f := flags.Lookup(s.flag)
		if f.Changed {
			continue
		}
		for _, v := range s.values {
			if err := flags.Set(s.flag, v); err != nil {
				return nil, cli.Usagef("%s: --%s %q: want %s", s.from, s.flag, v, cmp.Or(cli.Wanted[f.Value.Type()], "text"))
			}
			args = append(args, "--"+s.flag+"="+v)
		}
		p.settled = append(p.settled, s)
	}
	p.Args = append(args, p.Args...)
	return c, p.blame(check())
}

// If an error is about a flag, blame adds where the flag was set: a line of the settings file or an
// environment variable. It only changes errors that begin with the name of a flag. If an error names several
// flags, blame names the place of the first flag that was not set on the command line. If all were set on the
// command line, it returns the error unchanged.
func (p *program) blame(err error) error {
	if err == nil || !strings.HasPrefix(err.Error(), "--") {
		return err
	}
	for _, flag := range flagWord.FindAllStringSubmatch(err.Error(), -1) {
		for _, s := range p.settled {
			if s.flag == flag[1] {
				return fmt.Errorf("%s: %w", s.from, err)
			}
		}
	}
	return err
}

var flagWord = regexp.MustCompile(`--([a-z-]+)`)
