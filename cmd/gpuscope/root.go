package main

import (
	"context"
	"strings"

	"github.com/spf13/pflag"

	"gpuscope/model/session"
	"gpuscope/trace"
	"gpuscope/tui"
)

func rootCommand() *command {
	return &command{
		operand: "[MODEL|TRACE]",
		doc:     "gpuscope profiles language models on WebGPU and shows their graphs.",
		more: `Without a command it opens MODEL in the terminal and steps it token by token: a .gguf file (Llama architecture, Q4_0
matrices), or nothing for the demo model embedded in the program. A TRACE (.json, .jsonl, with .gz compressed) opens with no GPU.
Press ? there for the keys.`,
		examples: []example{
			{"gpuscope", "the embedded model"},
			{`gpuscope model.gguf -p "The"`, "a model file, with its first prompt"},
			{"gpuscope run.json.gz", "a recorded run"},
		},
		screen: true,
		setup: func(p *program, flags *pflag.FlagSet) action {
			var o tui.Options
			flags.StringVarP(&o.Prompt, "prompt", "p", defaultPrompt,
				"begin with the prompt `TEXT`; empty for none")
			theme := choiceFlag(flags, "theme", "use the colours of `THEME`", tui.ThemeNames...)
			color := choiceFlag(flags, "color", "use as many colours as `DEPTH` has", tui.ColorNames...)
			glyphs := choiceFlag(flags, "glyphs", "draw charts with `SET`", tui.GlyphNames...)
			flags.BoolVar(&o.NoMouse, "no-mouse", false, "leave the mouse to the terminal")
			flags.BoolVar(&o.Plain, "plain", false,
				"no screen: a line of text for each event, commands by line")
			m := declareModelFlags(flags)
			m.declareTop(flags, 5)
			return func(ctx context.Context, operands []string) error {
				for _, c := range []*choice{theme, color, glyphs} {
					if err := c.check(); err != nil {
						return err
					}
				}
				o.Theme, o.Color, o.Glyphs = theme.value, color.value, glyphs.value
				if err := m.validate(operands); err != nil {
					return err
				}
				if !p.terminal && !o.Plain {
					return usagef("this is no terminal: use gpuscope run, or --plain")
				}
				if isTrace(m.path) {
					return tui.ShowTrace(ctx,
						func(context.Context) (*trace.Trace, error) { return trace.ReadFile(m.path) }, o)
				}
				return asUsage(tui.Run(ctx,
					func(context.Context) (session.Session, error) { return p.startEngine(m) }, o))
			}
		},
	}
}

// isTrace says by its name that a file is a recorded run.
func isTrace(path string) bool {
	path = strings.TrimSuffix(path, ".gz")
	return strings.HasSuffix(path, ".json") || strings.HasSuffix(path, ".jsonl")
}
