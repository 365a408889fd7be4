package audit

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Device programs of OptiX call functions that OptiX puts in when it compiles the
// module. The driver does not notice a result in a register of the wrong kind, so
// that every call is compared with the facts here.

const devicePrefix = "_optix_"

// launchParams is the name of the constant block that device programs read; it
// takes the place of a kernel's parameters.
const launchParams = "params"

// deviceFacts is the part of the device ABI file that the audit reads.
type deviceFacts struct {
	EntryPoints struct {
		Prefixes map[string]string `json:"prefixes"` // program type: prefix
	} `json:"entry_points"`
	Symbols map[string]deviceSymbol `json:"symbols"`
}

type deviceSymbol struct {
	ABIs         []int       `json:"abis"`
	CallableFrom []string    `json:"callable_from"`
	Results      [][2]string `json:"results"` // register kind and name
	Params       [][2]string `json:"params"`
}

// readFacts reads the facts that the policy names, if any.
func (t tree) readFacts(p *policy) error {
	if p.DeviceABI.Facts == "" {
		return nil
	}
	data, err := t.read(p.DeviceABI.Facts)
	if err != nil {
		return err
	}
	p.facts = &deviceFacts{}
	if err := json.Unmarshal(data, p.facts); err != nil {
		return fmt.Errorf("%s: %w", p.DeviceABI.Facts, err)
	}
	return nil
}

// deviceProgram reports whether an entry is a program of OptiX by its name; a ray
// generation program is the one that reads launch parameters.
func deviceProgram(entry string) (program, raygen bool) {
	for _, kind := range []string{
		"raygen", "intersection", "anyhit", "closesthit", "miss", "exception",
		"direct_callable", "continuation_callable",
	} {
		if strings.HasPrefix(entry, "__"+kind+"__") {
			return true, kind == "raygen"
		}
	}
	return false, false
}

func isProgram(f ptxFunction) bool {
	program, _ := deviceProgram(f.name)
	return program
}

// programType is the type of an entry in the facts, or "".
func (d *deviceFacts) programType(entry string) string {
	for kind, prefix := range d.EntryPoints.Prefixes {
		if strings.HasPrefix(entry, prefix) {
			return kind
		}
	}
	return ""
}

// checkDevice holds the calls of OptiX functions against the facts, for every ABI
// that the policy declares.
func (p *policy) checkDevice(file string, text *ptxText) (out findings) {
	programs := slices.ContainsFunc(text.entries(), isProgram)
	for _, f := range text.functions {
		if programs && f.entry && !isProgram(f) {
			out.add(file, "ABI: entry %s: kernels and device programs of OptiX cannot share a module", f.name)
		}
		for _, s := range f.statements {
			if op, _, _ := strings.Cut(s.opcode, "."); op != "call" || !strings.Contains(s.operands, devicePrefix) {
				continue
			}
			if p.facts == nil {
				continue // reported as an undeclared import
			}
			for _, why := range p.facts.check(f, s.operands, p.DeviceABI.ABIs) {
				out.add(file, "ABI: line %d, function %s: %s", s.line, f.name, why)
			}
		}
		if isProgram(f) && len(f.paramBytes) > 0 {
			out.add(file, "ABI: entry %s takes parameters; a device program reads the constant block %s", f.name, launchParams)
		}
	}
	return out
}

var deviceCall = regexp.MustCompile(`^\(([^()]*)\)\s*,\s*(\w+)\s*,\s*\(([^()]*)\)$`)

// check tells what is wrong with one call.
func (d *deviceFacts) check(f ptxFunction, operands string, abis []int) (bad []string) {
	m := deviceCall.FindStringSubmatch(operands)
	if m == nil {
		return []string{fmt.Sprintf("the call %q is not of the form (results), name, (parameters)", operands)}
	}
	name := m[2]
	s, ok := d.Symbols[name]
	if !ok {
		return []string{fmt.Sprintf("OptiX has no function %s", name)}
	}
	for _, abi := range abis {
		if !slices.Contains(s.ABIs, abi) {
			bad = append(bad, fmt.Sprintf("%s does not exist in ABI %d", name, abi))
		}
	}
	if kind := d.programType(f.name); !f.entry || kind == "" {
		bad = append(bad, fmt.Sprintf("%s is called outside of a device program; inline the function", name))
	} else if !slices.Contains(s.CallableFrom, kind) {
		bad = append(bad, fmt.Sprintf("%s may not be called from a program of type %s", name, kind))
	}
	bad = append(bad, f.compare(name, "results", m[1], s.Results)...)
	return append(bad, f.compare(name, "parameters", m[3], s.Params)...)
}

// compare holds a list of registers against the kinds that a function has.
func (f ptxFunction) compare(name, what, list string, want [][2]string) (bad []string) {
	var have []string
	if strings.TrimSpace(list) != "" {
		have = strings.Split(list, ",")
	}
	if len(have) != len(want) {
		return []string{fmt.Sprintf("%s has %d %s, %d given", name, len(want), what, len(have))}
	}
	for i, r := range have {
		r = strings.TrimSpace(r)
		if kind := f.registers[strings.TrimRight(r, "0123456789")]; kind != want[i][0] {
			bad = append(bad, fmt.Sprintf("%s: %s is %s of kind %q, want a register of kind %s",
				name, want[i][1], r, kind, want[i][0]))
		}
	}
	return bad
}

var registerTag = regexp.MustCompile(`^\.reg\s+\.([a-z]\d+)\s+(%[a-z]+)<\d+>$`)

// declare remembers the kind of a family of registers.
func (f *ptxFunction) declare(text string) {
	m := registerTag.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return
	}
	if f.registers == nil {
		f.registers = map[string]string{}
	}
	kind := m[1]
	if kind[0] == 'b' || kind[0] == 's' {
		kind = "u" + kind[1:]
	}
	f.registers[m[2]] = kind
}

var constantTag = regexp.MustCompile(`\.const\s+(?:\.align\s+\d+\s+)?\.b8\s+` + launchParams + `\[(\d+)\]\s*$`)
