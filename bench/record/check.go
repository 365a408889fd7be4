package record

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// ErrRule is wrapped by every error of [Check].
var ErrRule = errors.New("record contradicts itself")

// RuleError is one broken rule.
type RuleError struct {
	Where  string // place in the record, like configs.light.rows[0].speedup
	Reason string // what is there, and what follows from the rest of the record
}

func (e *RuleError) Error() string { return e.Where + ": " + e.Reason }

// Unwrap returns [ErrRule].
func (e *RuleError) Unwrap() error { return ErrRule }

// checker collects broken rules.
type checker struct {
	r      *Record
	broken []error
}

// that records a broken rule unless ok.
func (c *checker) that(ok bool, where, reason string, args ...any) {
	if !ok {
		c.broken = append(c.broken, &RuleError{where, fmt.Sprintf(reason, args...)})
	}
}

func (c *checker) live() bool { return c.r.Provenance.Kind == Live }

// passed reports whether the record claims that every correctness check passed.
func (c *checker) passed() bool { return c.r.Checks != nil && c.r.Checks.Passed }

// Check tests the rules that the schema cannot express. It returns nil, or all broken rules joined, each a [*RuleError].
// The record must satisfy the schema.
func Check(r *Record) error {
	c := &checker{r: r}
	c.provenance()
	c.machine()
	c.parameters()
	for _, name := range configOrder {
		if config, ok := r.Configs[name]; ok {
			c.config(name, config)
		}
	}
	c.studies()
	if r.Checks != nil {
		c.that(r.Checks.Passed == (len(r.Checks.Failures) == 0), "checks.passed",
			"is %t with %d failures", r.Checks.Passed, len(r.Checks.Failures))
	}
	return errors.Join(c.broken...)
}

// configOrder is the order in which configurations run, are checked and are printed.
var configOrder = []string{"light", "compute", "mini"}

// ConfigNames returns the names of the record's configurations in the order in which they ran.
func (r *Record) ConfigNames() []string {
	return slices.DeleteFunc(slices.Clone(configOrder), func(name string) bool {
		_, ok := r.Configs[name]
		return !ok
	})
}

func (c *checker) provenance() {
	p := c.r.Provenance
	_, err := time.Parse(time.RFC3339, p.GeneratedAt)
	c.that(err == nil, "provenance.generated_at", "%q is not a point in time", p.GeneratedAt)
	if p.MeasuredAt != "" {
		_, err := time.Parse(time.DateOnly, p.MeasuredAt)
		c.that(err == nil, "provenance.measured_at", "%q is not a day", p.MeasuredAt)
	}
}

func (c *checker) parameters() {
	selected := slices.Sorted(slices.Values(c.r.Parameters.SelectedConfigs))
	present := slices.Sorted(slices.Values(c.r.ConfigNames()))
	c.that(slices.Equal(selected, present), "parameters.selected_configs", "lists %v, the record holds %v", selected, present)
}

func (c *checker) studies() {
	seen := map[string]bool{}
	for i, s := range c.r.Studies {
		where := fmt.Sprintf("studies[%d]", i)
		c.that(!seen[s.ID], where, "a second study %q", s.ID)
		seen[s.ID] = true
		for j, row := range s.Rows {
			c.that(len(row) == len(s.Columns), fmt.Sprintf("%s.rows[%d]", where, j),
				"has %d cells, the study has %d columns", len(row), len(s.Columns))
		}
	}
}
