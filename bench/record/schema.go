package record

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

//go:embed bench_result.schema.json
var schemaText []byte

// ErrSchema is wrapped by every error of [ValidateSchema] that says that a record has the wrong shape.
var ErrSchema = errors.New("record violates its schema")

// compiled is built on first use: most users of this package write one record or none.
var compiled = sync.OnceValues(func() (*jsonschema.Schema, error) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(schemaText))
	if err != nil {
		return nil, fmt.Errorf("record: embedded schema: %w", err)
	}
	const location = "bench_result.schema.json"
	c := jsonschema.NewCompiler()
	if err := c.AddResource(location, document); err != nil {
		return nil, fmt.Errorf("record: embedded schema: %w", err)
	}
	s, err := c.Compile(location)
	if err != nil {
		return nil, fmt.Errorf("record: embedded schema: %w", err)
	}
	return s, nil
})

// ValidateSchema checks JSON text against the schema. The error names every offending location.
func ValidateSchema(text []byte) error {
	s, err := compiled()
	if err != nil {
		return err
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("%w: not JSON: %w", ErrSchema, err)
	}
	if err := s.Validate(document); err != nil {
		return fmt.Errorf("%w: %w", ErrSchema, err)
	}
	return nil
}
