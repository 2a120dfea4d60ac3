// Randommodel writes a GGUF file with the shape of a published model and random weights. It serves to
// measure the speed of the model, and to try out the shape, without the published weights:
//
//	go run ./internal/randommodel -layers 12 qwen3-30b-a3b model.gguf
//	gpuscope bench model.gguf
//
// The file has no vocabulary, so prompts are token ids.
package main

import (
	"flag"
	"fmt"
	"os"

	"gpuscope/model/checkpoint/gguf"
	"gpuscope/model/checkpoint/gguf/gguftest"
)

func main() {
	layers := flag.Int("layers", 0, "number of layers; 0 for all layers of the published model")
	header := flag.Bool("header", false, "write no weights: the file is sparse and can only be planned")
	seed := flag.Uint64("seed", 1, "seed of the random weights")
	flag.Usage = func() {
		fmt.Fprintf(os.Stderr, "randommodel writes a GGUF file with the shape of a published model and random weights\n\n"+
			"  randommodel [flags] SHAPE FILE\n\nShapes:\n")
		for _, s := range gguftest.PublishedShapes {
			fmt.Fprintf(os.Stderr, "  %-14s  %2d layers  %s\n", s.Name, s.Layers, s.Doc)
		}
		fmt.Fprintln(os.Stderr, "\nFlags:")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 2 || *layers < 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := write(flag.Arg(0), flag.Arg(1), *layers, *header, *seed); err != nil {
		fmt.Fprintf(os.Stderr, "randommodel: %v\n", err)
		os.Exit(1)
	}
}

func write(name, path string, layers int, header bool, seed uint64) error {
	shape, err := gguftest.PublishedShape(name)
	if err != nil {
		return err
	}
	b := shape.Hollow(gguf.Q4_0, layers)
	if header {
		return b.WriteSparse(path)
	}
	return b.WriteRandom(path, seed)
}
