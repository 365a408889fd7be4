// Package wrap holds wrappers around the driver interface cuapi.API: a ledger
// of live handles and bytes, a source of faults, and a call counter. They work
// the same over the native driver, the emulator and each other:
//
//	ledger := new(*wrap.Ledger)
//	drv, err := cuda.OpenAPI(api, cuda.WithAPI(func(a cuapi.API) cuapi.API {
//		*ledger = wrap.NewLedger(a)
//		return *ledger
//	}))
//
// All stand on Hooked, which forwards every method and tells a Hook before and
// after. A call through Hooked allocates nothing.
package wrap

//go:generate go run ../../tools/genwrap -in ../cuapi/api.go -out zz_hooked.go
