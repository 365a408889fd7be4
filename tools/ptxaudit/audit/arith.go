package audit

import (
	"slices"
	"strconv"
	"strings"
)

// rounded are operations whose result depends on a rounding; without an
// explicit .rn the driver's compiler may contract or approximate them.
var rounded = []string{"add", "sub", "mul", "fma", "mad", "div", "sqrt", "rcp"}

var floats = []string{"f16", "f16x2", "bf16", "bf16x2", "f32", "f32x2", "f64"}

// arithmetic tells what is wrong with an opcode, or "". In functions declared
// conservative only the flush to zero and float atomics stay forbidden.
func arithmetic(opcode string, conservative bool) string {
	parts := strings.Split(opcode, ".")
	op, modifiers := parts[0], parts[1:]
	float := slices.ContainsFunc(modifiers, func(m string) bool { return slices.Contains(floats, m) })
	has := func(m string) bool { return slices.Contains(modifiers, m) }
	switch {
	case has("ftz"):
		return "flushes subnormals to zero"
	case isFloatSum(opcode):
		return "sums floats in an order that scheduling decides"
	case conservative:
		return ""
	case has("approx") || has("full"):
		return "is approximate, and its function is not declared conservative"
	case slices.Contains(rounded, op) && float && !has("rn"):
		return "has no explicit .rn rounding, and its function is not declared conservative"
	}
	return ""
}

// isFloatSum tells whether an opcode is a float atomic.
func isFloatSum(opcode string) bool {
	parts := strings.Split(opcode, ".")
	float := slices.ContainsFunc(parts[1:], func(m string) bool { return slices.Contains(floats, m) })
	return (parts[0] == "atom" || parts[0] == "red") && float && slices.Contains(parts[1:], "add")
}

// checkPTX holds one module's text against the policy.
func (p *policy) checkPTX(m policyModule, file string, text *ptxText) (out findings) {
	if newer(text.isaVersion, p.isaLimit(m)) {
		out.add(file, "policy: .version %s is above %s, and no exception is declared", text.isaVersion, p.isaLimit(m))
	}
	if text.target != p.Target {
		out.add(file, "policy: .target %s, expected %s", text.target, p.Target)
	}
	if text.addressSize != 64 {
		out.add(file, "policy: .address_size %d, expected 64", text.addressSize)
	}
	if text.compiler != p.Toolchain.NVRTC {
		out.add(file, "policy: compiled by NVRTC %q, expected %s", text.compiler, p.Toolchain.NVRTC)
	}
	if len(text.entries()) == 0 {
		// NVRTC would then put its process number into internal names.
		out.add(file, "policy: the module exports no kernel, so it is not reproducible")
	}
	for _, name := range text.imports() {
		if known := p.facts != nil && strings.HasPrefix(name, devicePrefix); !known && !slices.Contains(p.Imports, name) {
			out.add(file, "ABI: calls %s, which is neither defined here nor a declared import", name)
		}
	}
	out = append(out, p.checkDevice(file, text)...)
	sums := 0
	for _, f := range text.functions {
		free := p.isConservative(m.Name, f.name)
		for _, s := range f.statements {
			if m.FloatAtomics != "" && isFloatSum(s.opcode) {
				sums++
				continue
			}
			if why := arithmetic(s.opcode, free); why != "" {
				out.add(file, "arithmetic policy: line %d, function %s: %s %s", s.line, f.name, s.opcode, why)
			}
		}
	}
	if m.FloatAtomics != "" && sums == 0 {
		out.add(policyPath, "float_atomics of module %s: it has none", m.Name)
	}
	for _, c := range p.Conservative {
		if c.Module == m.Name && !slices.ContainsFunc(text.functions, func(f ptxFunction) bool { return f.name == c.Function }) {
			out.add(policyPath, "conservative function %s: module %s has no such function", c.Function, m.Name)
		}
	}
	return out
}

// newer compares versions of the form major.minor; what is no version counts
// as newer.
func newer(have, limit string) bool {
	h, okH := parseVersion(have)
	l, okL := parseVersion(limit)
	return !okH || !okL || h[0] > l[0] || h[0] == l[0] && h[1] > l[1]
}

func parseVersion(v string) (n [2]int, ok bool) {
	major, minor, ok := strings.Cut(v, ".")
	if !ok {
		return n, false
	}
	var err1, err2 error
	n[0], err1 = strconv.Atoi(major)
	n[1], err2 = strconv.Atoi(minor)
	return n, err1 == nil && err2 == nil
}
