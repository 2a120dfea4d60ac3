package tokenizer

import (
	"errors"
	"fmt"
	"slices"

	"gpuscope/internal/printable"
)

// Defects of a vocabulary. One rule decides what each of them does, so that none stops a command that needs
// no text:
//
//   - There is a default: it is taken, and Config.Warnings says so. This holds for a special token that is
//     not in the vocabulary (added, as transformers does), has an unusable id or is not named (found by its
//     name, else left out), for a file beside the vocabulary or a key that cannot be read (ignored), and for
//     a list where one token is expected (the first is taken, all of them end a text).
//   - There is none, and texts would become wrong ids: a RefusedError is why no text is encoded. The
//     Tokenizer exists all the same: the model runs on token ids, with the ends of a text and the pieces as
//     far as they are known.
//   - Only a given text is affected, by a byte without a token or a token without a row in the model's
//     embedding: the command that asked for this text ends. Nothing is said before.
//
// A missing vocabulary is no defect: ErrNoVocabulary, without a warning.

// RefusedError is why a vocabulary encodes no text.
type RefusedError struct{ Err error }

func (e *RefusedError) Error() string {
	if errors.Is(e.Err, ErrUnsupported) || errors.Is(e.Err, ErrNoVocabulary) { // which say what to do
		return e.Err.Error()
	}
	return fmt.Sprintf("%v; or %v", printable.Error(e.Err, 280), ErrUnsupported)
}

// Unwrap is the reason.
func (e *RefusedError) Unwrap() error { return e.Err }

// warnf adds a warning about a defect that has a default.
func (c *Config) warnf(format string, args ...any) {
	c.Warnings = append(c.Warnings, printable.Short(fmt.Sprintf(format, args...), 300))
}

// Warnings say which defects of its files were worked around, one line each.
func (t *Tokenizer) Warnings() []string {
	if t == nil {
		return nil
	}
	return t.config.Warnings
}

// within is a token id that what names, or None with a warning where the vocabulary is known and has no such
// token.
func (c *Config) within(id int, what string) int {
	if id == None || id >= 0 && id < len(c.Tokens) || len(c.Tokens) == 0 {
		return id
	}
	c.warnf("%s: %s %d is not in the vocabulary of %d tokens: ignored", c.Name, what, id, len(c.Tokens))
	return None
}

// ask puts a token at the side of texts that is to have one. Where no file names the token it is found by
// its name; without one the side stays empty.
func (c *Config) ask(side *[]int, id *int, what string, names []string) {
	if *id == None {
		for _, name := range names {
			if *id = slices.Index(c.Tokens, name); *id != None {
				c.warnf("%s asks for a token that is not named: %s is taken", what, name)
				break
			}
		}
	}
	if *id == None {
		c.warnf("%s asks for a token that is not named: prompts go without it", what)
		return
	}
	*side = []int{*id}
}
