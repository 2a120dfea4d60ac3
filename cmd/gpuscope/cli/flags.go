package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"gpuscope/internal/printable"
)

// FlagError describes an error of pflag in one line.
func FlagError(err error, flags *pflag.FlagSet) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		var names []string
		flags.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		name := unknown.GetSpecifiedName()
		if short := unknown.GetSpecifiedShortnames(); short != "" {
			return Usagef("no flag -%s%s", name, Suggest(name, names, "--"))
		}
		return Usagef("no flag --%s%s", name, Suggest(name, names, "--"))
	}
	var missing *pflag.ValueRequiredError
	if errors.As(err, &missing) {
		return Usagef("%s needs a value", FlagName(missing.GetFlag()))
	}
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		f := invalid.GetFlag()
		return Usagef("%s %q: want %s", FlagName(f), invalid.GetValue(), Wanted[f.Value.Type()])
	}
	return UsageError{err.Error()}
}

// Wanted says, for each flag type, which values a flag of this type accepts.
var Wanted = map[string]string{
	"int": "a whole number", "intSlice": "whole numbers separated by commas", "bool": "true or false",
	"uint64":   "a whole number, 0 or more",
	"positive": "a whole number, 1 or more",
	"float64":  "a number", "string": "text", "uint32": "a whole number from 0 to 4294967295",
}

// Positive is the value of a flag that must be an integer of at least 1. It is 0 if the flag is not given.
type Positive int

func (n *Positive) String() string { return strconv.Itoa(int(*n)) }
func (n *Positive) Type() string   { return "positive" }

func (n *Positive) Set(s string) error {
	v, err := strconv.Atoi(s)
	if err == nil && v < 1 {
		err = strconv.ErrRange
	}
	*n = Positive(v)
	return err
}

// FlagName returns the name of a flag as users type it, in its short form if it has one.
func FlagName(f *pflag.Flag) string {
	if f.Shorthand != "" {
		return "-" + f.Shorthand
	}
	return "--" + f.Name
}

// Suggest returns "; did you mean X?" if one of the names is close to `word`, where X is `prefix` followed
// by the closest name. A name is close if it starts with the word, or if it is "no-" followed by the word.
// A name is also close if its edit distance from the word is at most 2 and at most half the length of the
// word.
func Suggest(word string, names []string, prefix string) string {
	best, least := "", 3
	for _, n := range names {
		d := distance(word, n)
		if strings.HasPrefix(n, word) || n == "no-"+word {
			d = 1
		}
		if d < least && 2*d <= len(word) {
			best, least = n, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s%s?", prefix, best)
}

// distance returns the optimal string alignment distance, which is the smallest number of edits that turns
// string `a` into string `b`. An edit inserts, deletes or replaces a byte, or swaps two neighbouring bytes.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			replace := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			rows[i][j] = min(replace, rows[i-1][j]+1, rows[i][j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}

// Choice is a flag that accepts one of several words.
type Choice struct {
	name  string
	Value string   // the word that was given, or the default
	Words []string // the words that the flag accepts
}

// FormatFlag declares the flag --format. The first word is the default.
func FormatFlag(flags *pflag.FlagSet, words ...string) *Choice {
	return ChoiceFlag(flags, "format", "output format `FORMAT`", words...)
}

// ChoiceFlag declares a flag that accepts one of the given words. The first word is the default.
func ChoiceFlag(flags *pflag.FlagSet, name, doc string, words ...string) *Choice {
	c := &Choice{name: name, Words: words}
	flags.StringVar(&c.Value, name, words[0], doc+": "+printable.Choice(words))
	SetWords(flags, name, words...)
	return c
}

// wordsKey is the key of a flag annotation. The annotation lists the words that a shell completes.
const wordsKey = "gpuscope_words"

// SetWords says which words a shell completes for the value of a flag.
func SetWords(flags *pflag.FlagSet, name string, words ...string) {
	if err := flags.SetAnnotation(name, wordsKey, words); err != nil {
		panic(err) // the flag is not declared
	}
}

// Words returns the words that a shell completes for the value of a flag.
func Words(f *pflag.Flag) []string { return f.Annotations[wordsKey] }

// Check returns an error if the value of the flag is not one of the accepted words.
func (c *Choice) Check() error {
	for _, w := range c.Words {
		if c.Value == w {
			return nil
		}
	}
	return Usagef("--%s %q: want %s", c.name, c.Value, printable.Choice(c.Words))
}
