package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
)

// param is one parameter or result: its name in the interface (empty where it
// has none) and its type as written there.
type param struct{ name, typ string }

// method is one method of the interface. Results exclude the final Result.
type method struct {
	name    string
	params  []param
	results []param
}

// parse finds the interface API and lists its methods, without Name, which is
// no driver call.
func parse(src []byte) ([]method, error) {
	file, err := parser.ParseFile(token.NewFileSet(), "api.go", src, 0)
	if err != nil {
		return nil, err
	}
	var api *ast.InterfaceType
	ast.Inspect(file, func(n ast.Node) bool {
		if t, ok := n.(*ast.TypeSpec); ok && t.Name.Name == "API" {
			api, _ = t.Type.(*ast.InterfaceType)
		}
		return api == nil
	})
	if api == nil {
		return nil, errors.New("no interface named API")
	}
	var list []method
	for _, f := range api.Methods.List {
		fn, ok := f.Type.(*ast.FuncType)
		if !ok || len(f.Names) != 1 {
			return nil, errors.New("the interface API embeds another, which genwrap does not support")
		}
		m := method{name: f.Names[0].Name, params: fields(fn.Params), results: fields(fn.Results)}
		if m.name == "Name" {
			continue
		}
		last := len(m.results) - 1
		if last < 0 || m.results[last].typ != "Result" {
			return nil, fmt.Errorf("method %s does not end in a Result", m.name)
		}
		m.results = slices.Delete(m.results, last, last+1)
		list = append(list, m)
	}
	return list, nil
}

// fields spreads a list in which several names may share a type.
func fields(l *ast.FieldList) []param {
	var list []param
	if l == nil {
		return nil
	}
	for _, f := range l.List {
		typ := types.ExprString(f.Type)
		if len(f.Names) == 0 {
			list = append(list, param{typ: typ})
		}
		for _, n := range f.Names {
			list = append(list, param{n.Name, typ})
		}
	}
	return list
}
