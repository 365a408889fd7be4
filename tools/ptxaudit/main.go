// Command ptxaudit keeps the committed PTX and its sources together.
//
//	go run ./tools/ptxaudit check     compare policy, manifest, files and Go launches; needs Go only
//	go run ./tools/ptxaudit rebuild   compile every module again and compare byte for byte; needs NVRTC
//	go run ./tools/ptxaudit update    compile every module and write modules and manifest; needs NVRTC
//
// NVRTC is the pinned wheel named in ptx/policy.json. It is taken from the
// folder given by -nvrtc or RAYMUX_NVRTC, else from .venv in the repository or
// the site-packages of python3. It needs no GPU and no driver.
//
// Exit status: 0 agreement, 1 a difference or a failure, 2 wrong usage, 3 no
// NVRTC, so that nothing was rebuilt.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/raymux/raymux/tools/ptxaudit/audit"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("ptxaudit", flag.ContinueOnError)
	flags.SetOutput(stderr)
	root := flags.String("root", "", "root of the repository (default: the folder with go.mod, from here upwards)")
	nvrtc := flags.String("nvrtc", "", "folder with "+libraryFile)
	flags.Usage = func() {
		_, _ = fmt.Fprintln(stderr, "usage: ptxaudit [flags] check | rebuild | update")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	command, err := commandOf(flags.Args())
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "ptxaudit:", err)
		flags.Usage()
		return 2
	}
	err = findRoot(root)
	if err == nil {
		switch command {
		case "check":
			err = check(*root, stdout)
		case "rebuild":
			err = rebuild(*root, *nvrtc, stdout)
		case "update":
			err = update(*root, *nvrtc, stdout)
		}
	}
	switch {
	case errors.Is(err, errNoCompiler):
		_, _ = fmt.Fprintf(stderr, "ptxaudit: %v; nothing was rebuilt: docs/ptx.md has the command that installs the pinned compiler\n", err)
		return 3
	case err != nil:
		_, _ = fmt.Fprintln(stderr, "ptxaudit:", err)
		return 1
	}
	return 0
}

// commandOf is the command among the arguments behind the flags.
func commandOf(args []string) (string, error) {
	switch {
	case len(args) == 0:
		return "", errors.New("no command")
	case !slices.Contains([]string{"check", "rebuild", "update"}, args[0]):
		return "", fmt.Errorf("unknown command %q", args[0])
	case len(args) > 1 && strings.HasPrefix(args[1], "-"):
		return "", fmt.Errorf("flags come before the command: ptxaudit %s %s", strings.Join(args[1:], " "), args[0])
	case len(args) > 1:
		return "", fmt.Errorf("found %q behind the command %s", args[1], args[0])
	}
	return args[0], nil
}

// findRoot sets an empty root to the nearest folder with a go.mod.
func findRoot(root *string) error {
	if *root != "" {
		return nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			*root = dir
			return nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return errors.New("no go.mod here or above; give -root")
		}
		dir = up
	}
}

func check(root string, stdout io.Writer) error {
	modules, found, err := audit.Check(root)
	if err != nil {
		return err
	}
	if err := report(found, stdout); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "claim level: identity (%d modules agree with policy, manifest, sources and Go launches)\n", modules)
	return err
}

func rebuild(root, dir string, stdout io.Writer) error {
	cc, err := locate(root, dir)
	if err != nil {
		return err
	}
	found, err := audit.Rebuild(root, cc)
	if err != nil {
		return err
	}
	if err := report(found, stdout); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "claim level: reproduced (every module byte for byte, libnvrtc SHA-256 %s)\n", cc.library)
	return err
}

func update(root, dir string, stdout io.Writer) error {
	cc, err := locate(root, dir)
	if err != nil {
		return err
	}
	names, err := audit.Update(root, cc)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(stdout, "wrote %d modules and the manifest: %v\n", len(names), names); err != nil {
		return err
	}
	return check(root, stdout)
}

// report prints findings and turns them into a failure.
func report(found []audit.Finding, stdout io.Writer) error {
	for _, f := range found {
		if _, err := fmt.Fprintln(stdout, f); err != nil {
			return err
		}
	}
	if len(found) > 0 {
		return fmt.Errorf("%d differences", len(found))
	}
	return nil
}
