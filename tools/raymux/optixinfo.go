package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
)

// optixInfo is OptiX on one device.
type optixInfo struct {
	Device  int    `json:"device"`
	Library string `json:"library"`
	Driver  string `json:"driver,omitempty"` // version, if the library's path tells
	ABI     int    `json:"abi"`
	// RTCores is the version of the ray-tracing cores, 10*major + minor; 0: none.
	RTCores   uint32 `json:"rt_cores"`
	CachePath string `json:"cache_path,omitempty"`
	// The times of the first use in this process, in ms. With a warm disk cache modules are not compiled again.
	ContextMS  float64 `json:"context_ms"`
	ModuleMS   float64 `json:"module_ms"`
	PipelineMS float64 `json:"pipeline_ms"`
}

// inspectOptiX starts OptiX on the devices. Where it cannot run, it says why.
func inspectOptiX(drv *cuda.Driver, ordinals []int) (tracer tracerInfo, found []optixInfo, err error) {
	tracer.Name = scene.OptiX.String()
	for _, ordinal := range ordinals {
		d, err := drv.Device(ordinal)
		if err != nil {
			return tracer, nil, err
		}
		i, err := scene.InspectOptiX(d, nil)
		if errors.Is(err, scene.ErrBackendUnavailable) {
			tracer.Reason = err.Error()
			return tracer, nil, nil
		}
		if err != nil {
			return tracer, nil, err
		}
		ms := func(t time.Duration) float64 { return float64(t.Microseconds()) / 1e3 }
		found = append(found, optixInfo{
			Device: ordinal, Library: i.Library, Driver: i.Driver, ABI: int(i.ABI), RTCores: i.RTCores, CachePath: i.CachePath,
			ContextMS: ms(i.First.Context), ModuleMS: ms(i.First.Module), PipelineMS: ms(i.First.Pipeline),
		})
	}
	first := found[0]
	tracer.Available = true
	tracer.Reason = fmt.Sprintf("ABI %d, %s", first.ABI, first.Library)
	return tracer, found, nil
}

// printOptiX prints the ABI and, if asked, what the first use took.
func printOptiX(pr *printer, found []optixInfo, verbose bool) {
	if len(found) == 0 {
		pr.linef("OptiX ABI  none")
		return
	}
	pr.linef("OptiX ABI  %d (driver %s)", found[0].ABI, or(found[0].Driver, "of unknown version"))
	for _, i := range found {
		cores := "no ray-tracing cores"
		if i.RTCores > 0 {
			cores = fmt.Sprintf("ray-tracing cores %d.%d", i.RTCores/10, i.RTCores%10)
		}
		pr.linef("           dev%d: %s", i.Device, cores)
		if verbose {
			pr.linef("           dev%d: first use: context %.1f ms, module %.1f ms, pipeline %.1f ms; cache %s", i.Device,
				i.ContextMS, i.ModuleMS, i.PipelineMS, or(i.CachePath, "off"))
		}
	}
}

// or is s, or the other text when s is empty.
func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
