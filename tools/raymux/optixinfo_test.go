package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPrintOptiX(t *testing.T) {
	found := []optixInfo{
		{Device: 0, ABI: 105, Driver: "580.159", RTCores: 30, CachePath: "/var/tmp/cache", ContextMS: 130.5, ModuleMS: 70, PipelineMS: 20},
		{Device: 1, ABI: 105},
	}
	text := func(verbose bool) string {
		var b strings.Builder
		pr := &printer{w: &b}
		printOptiX(pr, found, verbose)
		require.NoError(t, pr.err)
		return b.String()
	}
	short := text(false)
	for _, want := range []string{"OptiX ABI  105 (driver 580.159)", "dev0: ray-tracing cores 3.0", "dev1: no ray-tracing cores"} {
		assert.Contains(t, short, want)
	}
	assert.NotContains(t, short, "first use")
	assert.Contains(t, text(true), "dev0: first use: context 130.5 ms, module 70.0 ms, pipeline 20.0 ms; cache /var/tmp/cache")
	assert.Contains(t, text(true), "cache off")
}
