package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
)

// policy is ptx/policy.json: the declared way of compiling.
type policy struct {
	Toolchain struct {
		Package      string `json:"package"`
		NVRTC        string `json:"nvrtc"`
		OptixHeaders string `json:"optix_headers"`
		CUDAHeaders  string `json:"cuda_headers"`
	} `json:"toolchain"`
	ISAVersion string `json:"isa_version"`
	Target     string `json:"target"`
	Options    struct {
		Architecture string   `json:"architecture"`
		Standard     string   `json:"standard"`
		Profile      []string `json:"profile"`
	} `json:"options"`
	Modules []policyModule `json:"modules"`
	// Conservative lists functions whose arithmetic cannot reach a result.
	Conservative []conservative `json:"conservative"`
	// Imports are functions that a module may call without defining them.
	Imports  []string         `json:"imports"`
	External []policyExternal `json:"external"`
	// DeviceABI is what device programs of OptiX may call.
	DeviceABI struct {
		Facts string `json:"facts"` // file with the functions and their registers
		ABIs  []int  `json:"abis"`  // every module must compile under all of them
	} `json:"device_abi"`

	facts *deviceFacts
}

type policyModule struct {
	Name   string `json:"name"`
	Source string `json:"source"`
	// Options are added after the shared ones.
	Options []string `json:"options,omitempty"`
	// ISAVersion is an exception from the shared limit, with its reason.
	ISAVersion string `json:"isa_version,omitempty"`
	ISAReason  string `json:"isa_reason,omitempty"`
	// FloatAtomics is why the module may sum floats in any order.
	FloatAtomics string `json:"float_atomics,omitempty"`
}

type conservative struct {
	Module   string `json:"module"`
	Function string `json:"function"`
	Reason   string `json:"reason"`
}

// policyExternal is a header from elsewhere, kept as a copy at Path and
// included as <Include>.
type policyExternal struct {
	Origin  string `json:"origin"`
	Include string `json:"include"`
	Path    string `json:"path"`
}

func (t tree) policy() (*policy, error) {
	data, err := t.read(policyPath)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	var p policy
	if err := dec.Decode(&p); err != nil {
		return nil, fmt.Errorf("%s: %w", policyPath, err)
	}
	return &p, t.readFacts(&p)
}

// options is the whole option vector of a module.
func (p *policy) options(m policyModule) []string {
	list := []string{p.Options.Architecture, p.Options.Standard}
	list = append(list, p.Options.Profile...)
	return append(list, m.Options...)
}

func (p *policy) isaLimit(m policyModule) string {
	if m.ISAVersion != "" {
		return m.ISAVersion
	}
	return p.ISAVersion
}

func (p *policy) isConservative(module, function string) bool {
	return slices.ContainsFunc(p.Conservative, func(c conservative) bool {
		return c.Module == module && c.Function == function
	})
}

// profile is the one numeric profile. It stands here as well as in the policy
// file so that an edit of the file alone is seen.
var profile = []string{"fmad=false", "ftz=false", "prec-div=true", "prec-sqrt=true"}

// numeric are compiler options that change results; those of the profile may
// stand in the profile only.
var numeric = []string{"fmad", "ftz", "prec-div", "prec-sqrt", "use_fast_math"}

// unreproducible options put paths or line tables into the PTX.
var unreproducible = []string{"lineinfo", "generate-line-info", "G", "device-debug"}

// check refuses policies that could not give reproducible modules with
// the one profile.
func (p *policy) check() (out findings) {
	var have []string
	for _, o := range p.Options.Profile {
		have = append(have, strings.TrimLeft(o, "-"))
	}
	if !slices.Equal(have, profile) {
		out.add(policyPath, "numeric profile is %q, it must be %q", have, profile)
	}
	names := map[string]bool{}
	for _, m := range p.Modules {
		if names[m.Name] {
			out.add(policyPath, "module %s is declared twice", m.Name)
		}
		names[m.Name] = true
		if path.Dir(m.Source) != kernelDir || path.Ext(m.Source) != ".cu" {
			out.add(policyPath, "module %s: source %s is not a .cu file in %s", m.Name, m.Source, kernelDir)
		}
		if m.ISAVersion != "" && m.ISAReason == "" {
			out.add(policyPath, "module %s: isa_version %s needs an isa_reason", m.Name, m.ISAVersion)
		}
		for _, o := range m.Options {
			if slices.Contains(numeric, optionName(o)) {
				out.add(policyPath, "module %s: option %s leaves the numeric profile", m.Name, o)
			}
		}
		for _, o := range p.options(m) {
			if slices.Contains(unreproducible, optionName(o)) {
				out.add(policyPath, "module %s: option %s is not reproducible by construction", m.Name, o)
			}
		}
	}
	for _, c := range p.Conservative {
		if !names[c.Module] || c.Reason == "" {
			out.add(policyPath, "conservative function %s needs an existing module and a reason (module %q)", c.Function, c.Module)
		}
	}
	return out
}

func optionName(option string) string {
	name, _, _ := strings.Cut(strings.TrimLeft(option, "-"), "=")
	return name
}
