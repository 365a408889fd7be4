package chunked

import (
	"slices"
	"strconv"
	"strings"
)

// Keys lists the operation keys and families that OperationWeights accepts. In
// a key that ends in ":B", a number of bounces from 1 to 64 stands for B; in
// one that ends in ":k", a number of neighbours from 1 to 16 stands for k.
var Keys = []string{
	"intersect", "intersect_full", "intersect_reduced",
	"nearest_edge", "nearest_edge_ray", "nearest_edges", "nearest_edges:k",
	"visible", "visible_pair", "visible_edge", "visible_chain",
	"trace_reflections", "trace_reflections:B",
	"trace_refl_epc", "trace_refl_epc:B", "trace_refl_epc_field", "trace_refl_epc_field:B",
	"trace_dfr_paths",
	"accumulate_reflections", "accum_dfr_direct", "accum_dfr_coherent_direct",
}

// parameters are the largest values of what follows the colon of a key.
var parameters = map[string]int{":B": 64, ":k": 16}

func isKey(key string) bool {
	operation, parameter, ok := strings.Cut(key, ":")
	if !ok {
		return slices.Contains(Keys, key)
	}
	n, err := strconv.Atoi(parameter)
	if err != nil || n < 1 || strconv.Itoa(n) != parameter {
		return false
	}
	for name, most := range parameters {
		if n <= most && slices.Contains(Keys, operation+name) {
			return true
		}
	}
	return false
}
