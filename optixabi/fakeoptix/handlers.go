package fakeoptix

import "github.com/raymux/raymux/optixabi"

// call is one call of the table.
type call struct {
	*Fake
	name string
	args []uintptr
}

// word is a 32-bit argument: the upper half of its word is undefined.
func (c *call) word(i int) uint32 { return uint32(c.args[i]) }

// handlers serve the functions of the table by name.
var handlers map[string]func(*call) optixabi.Result

func init() {
	// Filled here, because the handlers refer to it through serve.
	handlers = map[string]func(*call) optixabi.Result{
		"optixDeviceContextCreate":                (*call).contextCreate,
		"optixDeviceContextDestroy":               func(c *call) optixabi.Result { return c.destroy(kindContext) },
		"optixDeviceContextGetProperty":           (*call).property,
		"optixDeviceContextSetLogCallback":        (*call).setLog,
		"optixDeviceContextSetCacheEnabled":       (*call).setCacheEnabled,
		"optixDeviceContextGetCacheEnabled":       (*call).cacheEnabled,
		"optixDeviceContextSetCacheLocation":      (*call).setCacheLocation,
		"optixDeviceContextGetCacheLocation":      (*call).cacheLocation,
		"optixDeviceContextSetCacheDatabaseSizes": (*call).setCacheSizes,
		"optixDeviceContextGetCacheDatabaseSizes": (*call).cacheSizes,
		"optixModuleCreate":                       (*call).moduleCreate,
		"optixModuleDestroy":                      func(c *call) optixabi.Result { return c.destroy(kindModule) },
		"optixProgramGroupCreate":                 (*call).groupCreate,
		"optixProgramGroupDestroy":                func(c *call) optixabi.Result { return c.destroy(kindGroup) },
		"optixProgramGroupGetStackSize":           (*call).groupStack,
		"optixPipelineCreate":                     (*call).pipelineCreate,
		"optixPipelineDestroy":                    func(c *call) optixabi.Result { return c.destroy(kindPipeline) },
		"optixPipelineSetStackSize":               (*call).pipelineStack,
		"optixSbtRecordPackHeader":                (*call).packHeader,
		"optixAccelComputeMemoryUsage":            (*call).accelUsage,
		"optixAccelBuild":                         (*call).accelBuild,
		"optixAccelCompact":                       (*call).accelCompact,
		"optixAccelGetRelocationInfo":             (*call).relocationInfo,
		"optixCheckRelocationCompatibility":       (*call).relocationCompatible,
		"optixAccelRelocate":                      (*call).accelRelocate,
		"optixLaunch":                             (*call).launch,
	}
}
