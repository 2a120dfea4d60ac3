package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"gpuscope/cmd/gpuscope/cli"
	"gpuscope/cmd/gpuscope/traces"
	runner "gpuscope/model/program"
	"gpuscope/model/source"
	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/record"
	"gpuscope/tui"
)

func rootCommand(p *program) *cli.Command {
	return &cli.Command{
		Operand: "[MODEL|TRACE]",
		Doc:     "gpuscope profiles language models on WebGPU and inspects their graphs.",
		More: `Without a command, opens MODEL in the terminal, where it runs token by token. MODEL is a .gguf file or the folder of a
Hugging Face model (llama, qwen2, qwen3, gemma2, gemma3, phi3, granite, smollm3, olmo2, olmo3, exaone4, mistral3, cohere2,
glm4, seed_oss, ernie4_5, hunyuan-dense, gemma4, qwen3moe, granitemoe, olmoe, gpt-oss, lfm2, qwen35, qwen35moe);
without MODEL, opens the embedded demo model. An ExecuTorch program (.pte) runs token by token if it is a language model.
Otherwise it runs execution by execution, and the prompt sets live dims: -p 0.1=7 sets dim 1 of input 0 to 7.
A TRACE (` + trace.Storable() + `) opens without a GPU.
With --device none, steps are planned but not run: no GPU is needed and no weights are read.
Press ? in the program for its keys. With --plain, the program reads commands as lines, typed or piped; if a piped command
fails, the exit status is 1.

Defaults for these flags and for the keys are read from gpuscope/config.toml in the settings folder (on Linux
$XDG_CONFIG_HOME or ~/.config). A flag on the command line overrides the environment variable GPUSCOPE_FLAG (GPUSCOPE_THEME
for --theme), which overrides the file. docs/reference/keys.md has an example.`,
		Examples: []cli.Example{
			{"gpuscope", "the embedded model"},
			{`gpuscope model.gguf -p "The"`, "open a model file and start with this prompt"},
			{"gpuscope model.gguf --chat", "have a conversation: press i to type your turn, space to generate the answer"},
			{"gpuscope run.json.gz", "a recorded run"},
			{"gpuscope --device none 70b.gguf", "show the plan of a large model on a laptop"},
			{`printf 's\nd\nx step.json\n' | gpuscope --plain`, "run one step, print the dispatches, export the trace"},
		},
		Screen: true,
		Surplus: func(operands []string) error {
			switch path, err := findModel(operands); {
			case err != nil:
				return err // the first word may be a misspelled command
			case trace.IsTrace(path):
				return cli.Usagef("unexpected argument %q%s", operands[1], traces.Comparing)
			}
			return nil
		},
		Setup: func(flags *pflag.FlagSet) cli.Action {
			r := declareRoot(flags)
			version := flags.Bool(versionFlag, false, "print the version, like gpuscope version")
			return func(ctx context.Context, operands []string) error {
				if *version {
					return p.printVersion()
				}
				// A prompt from the settings is only meant for models, not for traces.
				prompted := flags.Changed("prompt") && r.screen.Prompt != ""
				settings, err := p.settle(flags, r.checkFlags)
				if err != nil {
					return err
				}
				if err := r.validate(operands); err != nil {
					return err
				}
				path := r.model.path
				r.screen.Shaders, r.screen.Cache = r.model.shaders, p.cache
				if r.screen.Chat = r.model.chat; r.screen.Chat && !flags.Changed("prompt") {
					r.screen.Prompt = "" // the user did not type this as a chat message
				}
				recorded := trace.IsTrace(path)
				if prompted && recorded {
					return cli.Usagef("-p and the trace %s cannot be combined: give only one of them", path)
				}
				executes, _ := executesMethod(r.model) // the session reports what is wrong with the file
				if (r.model.device == trace.NoDevice || executes) && !prompted {
					r.screen.Prompt = "" // neither a plan nor a program reads the default prompt
				}
				r.screen.DefaultPrompt = !prompted
				r.screen.Keys, r.screen.Log = settings.keys, tui.NewLog()
				for _, w := range settings.warnings {
					fmt.Fprintf(p.Stderr, "gpuscope: %s\n", w)
					r.screen.Log.Add("warn", w)
				}
				r.screen.Plain = r.screen.Plain || os.Getenv("TERM") == "dumb"
				if !p.Terminal && !r.screen.Plain {
					return cmp.Or(readable(path), cli.Usagef("stdout is not a terminal: use gpuscope run, or --plain"))
				}
				if recorded {
					r.screen.File = path
					return tui.ShowTrace(ctx, func(context.Context) (*trace.Trace, error) {
						return trace.ReadFile(path)
					}, r.screen)
				}
				return p.blame(asUsage(tui.Run(ctx, func(ctx context.Context) (session.Session, error) {
					if r.model.device == trace.NoDevice { // native code only runs with a device
						return p.open(ctx, r.model, func(e session.Event) {
							if e.Log == nil {
								return
							}
							if r.screen.Log.Add(e.Log.Level, e.Log.Text); r.screen.Plain {
								newProgress(p).log(e)
							}
						})
					}
					return p.startEngine()
				}, r.screen)))
			}
		},
	}
}

// readable returns an error if the file cannot be opened, so that a command reports this before other
// problems.
func readable(path string) error {
	switch {
	case path == "": // the embedded model
		return nil
	case trace.IsTrace(path):
		_, err := trace.ReadFile(path)
		return err
	}
	f, err := source.Open(source.Options{Path: path})
	if errors.Is(err, runner.ErrNotLanguage) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// root holds the arguments of the command without a name: the flags of the screen and of the model. The
// engine process gets the same flags.
type root struct {
	screen               tui.Options
	limit                string // memory limit of the recording
	theme, color, glyphs *cli.Choice
	model                *modelOptions
}

func declareRoot(flags *pflag.FlagSet) *root {
	r := &root{}
	flags.StringVarP(&r.screen.Prompt, "prompt", "p", defaultPrompt,
		"start with the prompt `TEXT`; empty for no prompt")
	r.theme = cli.ChoiceFlag(flags, "theme", "color theme `THEME`", tui.ThemeNames...)
	r.color = cli.ChoiceFlag(flags, "color", "color depth `DEPTH`", tui.ColorNames...)
	r.glyphs = cli.ChoiceFlag(flags, "glyphs", "draw charts with the characters of `SET`", tui.GlyphNames...)
	flags.BoolVar(&r.screen.NoMouse, "no-mouse", false, "do not use the mouse")
	flags.BoolVar(&r.screen.Plain, "plain", false,
		"do not use the full screen: print one line per event, and read one command per line (automatic if TERM=dumb)")
	flags.StringVar(&r.limit, "trace-limit", "",
		"keep the newest steps within `SIZE` of memory, such as 64MB, at least 1MiB (default 256MiB)")
	flags.BoolVar(&r.screen.NoText, noText, false,
		"leave the prompt, the generated text and all token ids out of exported traces")
	r.model = declareModelFlags(flags, "dispatch", "block", "step", "off")
	flags.Lookup("device").Usage += "; with --device none, steps are planned but not run"
	r.model.declareLimits(flags)
	r.model.declareTop(flags, 5)
	r.model.declareSampling(flags)
	r.model.declareChat(flags)
	return r
}

// checkFlags returns an error if a flag is invalid.
func (r *root) checkFlags() error {
	for _, c := range []*cli.Choice{r.theme, r.color, r.glyphs} {
		if err := c.Check(); err != nil {
			return err
		}
	}
	if r.limit != "" {
		limit, err := record.ParseSize(r.limit)
		if err != nil {
			return cli.Usagef("--trace-limit %v", err)
		}
		r.screen.Budget = limit
	}
	return r.model.checkFlags()
}

func (r *root) validate(operands []string) error {
	if err := r.checkFlags(); err != nil {
		return err
	}
	r.screen.Theme, r.screen.Color, r.screen.Glyphs = r.theme.Value, r.color.Value, r.glyphs.Value
	return r.model.validate(operands)
}
