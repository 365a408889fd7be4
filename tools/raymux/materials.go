package main

import (
	"context"

	"github.com/raymux/raymux/scene"
)

// readMaterials reads a table of materials; no file is no table.
func (p *program) readMaterials(ctx context.Context, file string) (*scene.Materials, error) {
	if file == "" {
		return nil, nil
	}
	m := &scene.Materials{}
	var valid []uint8
	_, err := p.readTable(ctx, "-material", file, []tableColumn{
		{name: "eta_r", floats: &m.EtaR},
		{name: "sigma", floats: &m.Sigma},
		{name: "mu_r", floats: &m.MuR},
		{name: "gain", floats: &m.Gain},
		{name: "valid", bools: &valid},
		{name: "index", ints: &m.Index, optional: true, unlike: true},
	})
	if err != nil {
		return nil, err
	}
	m.Valid = make([]bool, len(valid))
	for i, v := range valid {
		m.Valid[i] = v != 0
	}
	return m, nil
}
