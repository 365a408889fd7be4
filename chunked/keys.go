package chunked

import (
	"slices"
	"strconv"
	"strings"
)

// families are the operation keys of each family. In a key that ends in ":B", a
// number of bounces stands for B; in one that ends in ":k", a number of
// neighbours stands for k. An operation without a family is one by itself.
var families = []struct {
	name string
	keys []string
}{
	{"intersect", []string{"intersect_full", "intersect_reduced"}},
	{"nearest_edge", []string{"nearest_edge_ray"}},
	{"nearest_edges", []string{"nearest_edges:k"}},
	{"visible", nil},
	{"visible_pair", nil},
	{"visible_edge", nil},
	{"visible_chain", nil},
	{"trace_reflections", []string{"trace_reflections:B"}},
	{"trace_refl_epc", []string{"trace_refl_epc:B"}},
	{"trace_refl_epc_field", []string{"trace_refl_epc_field:B"}},
	{"trace_dfr_paths", nil},
	{"accumulate_reflections", nil},
	{"accum_dfr_direct", nil},
	{"accum_dfr_coherent_direct", nil},
}

// parameters are the largest numbers that stand for what ends a key.
var parameters = []struct {
	name string
	most int
}{{":B", 64}, {":k", 16}}

// Keys lists the operation keys and families that OperationWeights accepts. In
// a key that ends in ":B", a number of bounces from 1 to 64 stands for B; in
// one that ends in ":k", a number of neighbours from 1 to 16 stands for k.
func Keys() []string {
	var out []string
	for _, f := range families {
		out = append(append(out, f.name), f.keys...)
	}
	return out
}

// Family returns the family of an operation key, which may be a family itself.
// It is not ok where there is no such key.
func Family(key string) (family string, ok bool) {
	for _, f := range families {
		if key == f.name || slices.ContainsFunc(f.keys, func(pattern string) bool { return matches(pattern, key) }) {
			return f.name, true
		}
	}
	return "", false
}

// matches reports whether a key is the pattern, with a number for its parameter.
func matches(pattern, key string) bool {
	for _, p := range parameters {
		operation, ok := strings.CutSuffix(pattern, p.name)
		if !ok {
			continue
		}
		number, ok := strings.CutPrefix(key, operation+":")
		n, err := strconv.Atoi(number)
		return ok && err == nil && n >= 1 && n <= p.most && strconv.Itoa(n) == number
	}
	return pattern == key
}
