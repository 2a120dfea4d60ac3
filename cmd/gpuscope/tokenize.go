package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"gpuscope/cmd/gpuscope/cli"
	"gpuscope/internal/printable"
	"gpuscope/internal/readjson"
	"gpuscope/model"
	"gpuscope/text/tokenizer"
	"gpuscope/trace/table"
)

func tokenizeCommand(p *program) *cli.Command {
	return &cli.Command{
		Name: "tokenize", Operand: "[MODEL]",
		Doc: "convert text to token ids, or ids to text",
		More: `MODEL is anything with a vocabulary: a model, a GGUF file without tensors, a tokenizer.json, a SentencePiece
tokenizer.model, or a folder with one of them; without MODEL, the command uses the vocabulary of the embedded model.
The text comes from -p or standard input. The ids are the same as with gpuscope run -p, except that the BOS token is added
only with --bos.

With --jsonl, each input line is a JSON string and each output line a JSON list of ids. With --decode, each input
line is a list of ids and each output line a string. In JSON, a byte XX that is not UTF-8 is written as the lone
surrogate \udcXX, like Python's surrogateescape; the input may also contain the byte itself. An empty line is an error.`,
		Examples: []cli.Example{
			{`gpuscope tokenize -p "Once upon a time"`, "print the token ids of a text, with the embedded model's vocabulary"},
			{"gpuscope tokenize tokenizer.json --jsonl < corpus.jsonl", "convert many texts, one per line, for a program"},
			{"gpuscope tokenize model.gguf --decode -p 504,3649,253", "print the text of these token ids"},
		},
		Setup: func(flags *pflag.FlagSet) cli.Action {
			t := tokenize{p: p}
			flags.StringVarP(&t.text, "prompt", "p", "", "convert `TEXT` (with --decode, a list of ids) instead of standard input")
			flags.BoolVar(&t.jsonl, "jsonl", false, "read and write one line of JSON per text")
			flags.BoolVar(&t.decode, "decode", false, "convert ids to text")
			flags.BoolVar(&t.special, "special", true,
				"when the text contains special tokens, convert them to their ids, and print them when decoding; with --special=false, treat them as plain text and do not print them")
			flags.BoolVar(&t.bos, "bos", false, "add the tokens that, according to the model's file, start and end a prompt")
			format := cli.FormatFlag(flags, table.Formats...)
			return func(ctx context.Context, operands []string) error {
				if err := format.Check(); err != nil {
					return err
				}
				if flags.Changed("format") && (t.jsonl || t.decode) {
					return cli.Usagef("--format applies only to the table of token ids: --jsonl always prints JSON, and --decode always prints text")
				}
				t.format, t.given = format.Value, flags.Changed("prompt")
				return t.run(ctx, operands)
			}
		},
	}
}

// tokenize holds the arguments of one tokenize command.
type tokenize struct {
	p                           *program
	text, format                string
	given                       bool // a text was given with -p
	jsonl, decode, special, bos bool
	tokens                      *tokenizer.Tokenizer
}

func (t *tokenize) run(ctx context.Context, operands []string) error {
	path := ""
	if len(operands) > 0 {
		path = operands[0]
	}
	var err error
	t.tokens, err = model.Vocabulary(path)
	for _, w := range t.tokens.Warnings() {
		fmt.Fprintf(t.p.Stderr, "warn: %s\n", w)
	}
	if err != nil && (!t.decode || t.tokens.VocabSize() == 0) { // ids may be decodable anyway
		return err
	}
	in := t.p.Stdin
	if t.given {
		in = strings.NewReader(t.text)
	}
	if t.jsonl {
		return t.lines(ctx, in)
	}
	data, err := io.ReadAll(io.LimitReader(in, maxTokenized+1))
	if err != nil {
		return err
	}
	if len(data) > maxTokenized {
		return fmt.Errorf("the text is larger than %d MiB: split it", maxTokenized>>20)
	}
	if !t.decode {
		ids, err := t.encode(string(data))
		if err != nil {
			return err
		}
		rows := t.table(ids)
		all, err := rows.Select(ctx, table.Selection{})
		if err != nil {
			return err
		}
		return rows.Print(ctx, t.p.Stdout, t.format, all, 0)
	}
	ids, err := t.ids(string(data))
	if err != nil {
		return err
	}
	text, err := t.decoded(ids)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(t.p.Stdout, text)
	return err
}

// maxTokenized is the maximum length in bytes of a text or a line.
const maxTokenized = 256 << 20

// encode returns the IDs of a text. It reports bytes that have no token on standard error.
func (t *tokenize) encode(text string) ([]int, error) {
	ids, err := t.tokens.Encode(text, tokenizer.Options{Special: t.special, BOS: t.bos})
	if lost, ok := errors.AsType[*tokenizer.LostError](err); ok {
		fmt.Fprintf(t.p.Stderr, "gpuscope tokenize: the vocabulary has no token for %s of a text; the first has offset %d and value %#02x\n",
			table.Plural(lost.Count, "byte"), lost.At, lost.Byte)
		err = nil
	}
	return ids, err
}

// lines converts one JSON value per line.
func (t *tokenize) lines(ctx context.Context, from io.Reader) error {
	in, out := bufio.NewReaderSize(from, 1<<16), bufio.NewWriter(t.p.Stdout)
	for n := 1; ; n++ {
		line, err := readLine(in)
		if err == io.EOF && len(line) == 0 {
			return out.Flush()
		}
		if err != nil && err != io.EOF {
			return errors.Join(fmt.Errorf("line %d: %w", n, err), out.Flush())
		}
		made, err := t.line(line)
		if err != nil {
			return errors.Join(fmt.Errorf("line %d: %w", n, err), out.Flush())
		}
		out.Write(append(made, '\n'))
		if in.Buffered() == 0 { // no more input for now: the sender may wait for this answer
			if err := out.Flush(); err != nil {
				return err
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// readLine returns the next line without its line end.
func readLine(in *bufio.Reader) (line []byte, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(part) > maxTokenized {
			return nil, fmt.Errorf("the line is larger than %d MiB: split the text", maxTokenized>>20)
		}
		line = append(line, part...)
		if err != bufio.ErrBufferFull {
			return bytes.TrimRight(line, "\r\n"), err
		}
	}
}

func (t *tokenize) line(line []byte) ([]byte, error) {
	if t.decode {
		var ids []int
		if err := readjson.Unmarshal(line, &ids); err != nil {
			return nil, fmt.Errorf("want a JSON list of token ids, such as [0, 47]: %w", err)
		}
		text, err := t.decoded(ids)
		return readjson.QuoteBytes(text), err
	}
	text, err := readjson.UnquoteBytes(line)
	if err != nil {
		return nil, err
	}
	ids, err := t.encode(text)
	if err != nil {
		return nil, err
	}
	out := []byte{'['}
	for i, id := range ids {
		if i > 0 {
			out = append(out, ',', ' ')
		}
		out = strconv.AppendInt(out, int64(id), 10)
	}
	return append(out, ']'), nil
}

// decoded returns the text of ids. An ID outside the vocabulary is an error.
func (t *tokenize) decoded(ids []int) (string, error) {
	for _, id := range ids {
		if !t.tokens.Valid(id) {
			return "", t.outside(strconv.Itoa(id))
		}
	}
	return t.tokens.Text(ids, t.special), nil
}

// outside returns the error for an ID outside the vocabulary.
func (t *tokenize) outside(id string) error {
	n := t.tokens.VocabSize()
	return fmt.Errorf("token id %s is not in the vocabulary of %s: want 0 to %d", printable.Short(id, 40),
		table.Plural(n, "token"), n-1)
}

// ids parses token IDs that are separated by commas or white space, or a JSON list of them.
func (t *tokenize) ids(text string) (ids []int, err error) {
	for _, word := range strings.FieldsFunc(text,
		func(r rune) bool { return strings.ContainsRune(", \t\r\n[]", r) }) {
		id, err := strconv.Atoi(word)
		switch {
		case errors.Is(err, strconv.ErrRange):
			return nil, t.outside(word)
		case err != nil:
			return nil,
				cli.Usagef("--decode: %q is not a token id: want ids separated by commas, such as 0,47", word)
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// table returns a table of the IDs of a text with their meanings.
func (t *tokenize) table(ids []int) *table.Table {
	of, at := table.ColumnsOf(ids), table.ColumnsAt(func(row int) *int { return &row })
	return table.New("tokens", []table.Column{
		at.Int(80, "n", "#", "", "position of the token in the text",
			func(row *int) int64 { return int64(*row) }),
		of.Int(80, "id", "id", "", "", func(id *int) int64 { return int64(*id) }),
		of.Text(80, "token", "token", "token as written in the vocabulary",
			func(id *int) string { return t.tokens.Token(*id) }),
		of.Text(80, "text", "text", "text of the token, as a JSON string",
			func(id *int) string { return string(readjson.QuoteBytes(string(t.tokens.Bytes(*id)))) }),
		of.Text(80, "kind", "kind", "", func(id *int) string { return t.tokens.Kind(*id).String() }),
	}, table.Flat(len(ids), strconv.Itoa))
}
