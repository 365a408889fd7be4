// Command genwrap writes cuda/wrap/zz_hooked.go: one forwarding method per
// method of the interface cuapi.API, with the numbers and names of the calls.
//
//	go run ./tools/genwrap          rewrite the generated file
//	go run ./tools/genwrap -check   fail when it differs
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
)

func main() {
	check := flag.Bool("check", false, "compare with the committed file instead of writing it")
	in := flag.String("in", "cuda/cuapi/api.go", "file that declares the interface API")
	out := flag.String("out", "cuda/wrap/zz_hooked.go", "generated file")
	flag.Parse()
	if err := run(*in, *out, *check); err != nil {
		fmt.Fprintln(os.Stderr, "genwrap:", err)
		os.Exit(1)
	}
}

func run(in, out string, check bool) error {
	src, err := os.ReadFile(in)
	if err != nil {
		return err
	}
	methods, err := parse(src)
	if err != nil {
		return fmt.Errorf("%s: %w", in, err)
	}
	text, err := generate(methods)
	if err != nil {
		return err
	}
	if !check {
		return os.WriteFile(out, text, 0o644)
	}
	have, err := os.ReadFile(out)
	if err != nil {
		return err
	}
	if !bytes.Equal(have, text) {
		return fmt.Errorf("%s differs from what %s says: run go run ./tools/genwrap", out, in)
	}
	return nil
}
