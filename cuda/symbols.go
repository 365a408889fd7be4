package cuda

import (
	"sync/atomic"

	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/cuda/dl"
)

// symbol numbers the driver entry points that we use.
type symbol uint8

// The order is that of the methods of cuapi.API.
const (
	symInit symbol = iota
	symDriverGetVersion
	symGetErrorText
	symDeviceGetCount
	symDeviceGet
	symDeviceGetName
	symDeviceGetUUID
	symDeviceTotalMem
	symDeviceGetAttribute
	symDeviceGetPCIBusID
	symDeviceCanAccessPeer
	symDeviceGetP2PAttribute
	symDevicePrimaryCtxRetain
	symDevicePrimaryCtxRelease
	symDevicePrimaryCtxGetState
	symCtxGetCurrent
	symCtxSetCurrent
	symCtxGetDevice
	symCtxSynchronize
	symCtxGetStreamPriorityRange
	symCtxGetLimit
	symCtxSetLimit
	symCtxEnablePeerAccess
	symCtxDisablePeerAccess
	symModuleLoadDataEx
	symModuleUnload
	symModuleGetFunction
	symModuleGetGlobal
	symFuncGetAttribute
	symFuncSetAttribute
	symOccupancyMaxActiveBlocks
	symOccupancyMaxPotentialBlockSize
	symLaunchKernel
	symStreamCreateWithPriority
	symStreamDestroy
	symStreamSynchronize
	symStreamQuery
	symStreamWaitEvent
	symStreamGetPriority
	symEventCreate
	symEventDestroy
	symEventRecord
	symEventQuery
	symEventSynchronize
	symEventElapsedTime
	symMemAlloc
	symMemFree
	symMemAllocAsync
	symMemFreeAsync
	symMemGetInfo
	symMemGetAddressRange
	symMemHostAlloc
	symMemFreeHost
	symMemHostRegister
	symMemHostUnregister
	symPointerGetInfo
	symDeviceGetDefaultMemPool
	symMemPoolTrimTo
	symMemPoolGetAttribute
	symMemPoolSetAttribute
	symMemPoolSetAccess
	symMemcpyHtoD
	symMemcpyDtoH
	symMemcpyDtoD
	symMemcpyHtoDAsync
	symMemcpyDtoHAsync
	symMemcpyDtoDAsync
	symMemcpyPeer
	symMemcpyPeerAsync
	symMemsetD8
	symMemsetD8Async
	symMemsetD32
	symMemsetD32Async
	numSymbols
)

// entry describes one entry point: its exact exported name (the name without
// suffix is often an old form with 32-bit sizes), the method of cuapi.API that
// calls it, and whether a driver without it is refused at open. The others are
// looked up on first use, so that a driver which lacks one still serves every
// program that does not call it.
type entry struct {
	name     string
	method   string
	required bool
}

var entries = [numSymbols]entry{
	symInit:                           {"cuInit", "Init", true},
	symDriverGetVersion:               {"cuDriverGetVersion", "DriverGetVersion", true},
	symGetErrorText:                   {"cuGetErrorString", "GetErrorText", false},
	symDeviceGetCount:                 {"cuDeviceGetCount", "DeviceGetCount", true},
	symDeviceGet:                      {"cuDeviceGet", "DeviceGet", true},
	symDeviceGetName:                  {"cuDeviceGetName", "DeviceGetName", true},
	symDeviceGetUUID:                  {"cuDeviceGetUuid_v2", "DeviceGetUUID", false},
	symDeviceTotalMem:                 {"cuDeviceTotalMem_v2", "DeviceTotalMem", true},
	symDeviceGetAttribute:             {"cuDeviceGetAttribute", "DeviceGetAttribute", true},
	symDeviceGetPCIBusID:              {"cuDeviceGetPCIBusId", "DeviceGetPCIBusID", false},
	symDeviceCanAccessPeer:            {"cuDeviceCanAccessPeer", "DeviceCanAccessPeer", true},
	symDeviceGetP2PAttribute:          {"cuDeviceGetP2PAttribute", "DeviceGetP2PAttribute", false},
	symDevicePrimaryCtxRetain:         {"cuDevicePrimaryCtxRetain", "DevicePrimaryCtxRetain", true},
	symDevicePrimaryCtxRelease:        {"cuDevicePrimaryCtxRelease_v2", "DevicePrimaryCtxRelease", true},
	symDevicePrimaryCtxGetState:       {"cuDevicePrimaryCtxGetState", "DevicePrimaryCtxGetState", false},
	symCtxGetCurrent:                  {"cuCtxGetCurrent", "CtxGetCurrent", true},
	symCtxSetCurrent:                  {"cuCtxSetCurrent", "CtxSetCurrent", true},
	symCtxGetDevice:                   {"cuCtxGetDevice", "CtxGetDevice", true},
	symCtxSynchronize:                 {"cuCtxSynchronize", "CtxSynchronize", true},
	symCtxGetStreamPriorityRange:      {"cuCtxGetStreamPriorityRange", "CtxGetStreamPriorityRange", false},
	symCtxGetLimit:                    {"cuCtxGetLimit", "CtxGetLimit", false},
	symCtxSetLimit:                    {"cuCtxSetLimit", "CtxSetLimit", false},
	symCtxEnablePeerAccess:            {"cuCtxEnablePeerAccess", "CtxEnablePeerAccess", true},
	symCtxDisablePeerAccess:           {"cuCtxDisablePeerAccess", "CtxDisablePeerAccess", true},
	symModuleLoadDataEx:               {"cuModuleLoadDataEx", "ModuleLoadDataEx", true},
	symModuleUnload:                   {"cuModuleUnload", "ModuleUnload", true},
	symModuleGetFunction:              {"cuModuleGetFunction", "ModuleGetFunction", true},
	symModuleGetGlobal:                {"cuModuleGetGlobal_v2", "ModuleGetGlobal", true},
	symFuncGetAttribute:               {"cuFuncGetAttribute", "FuncGetAttribute", true},
	symFuncSetAttribute:               {"cuFuncSetAttribute", "FuncSetAttribute", false},
	symOccupancyMaxActiveBlocks:       {"cuOccupancyMaxActiveBlocksPerMultiprocessor", "OccupancyMaxActiveBlocks", false},
	symOccupancyMaxPotentialBlockSize: {"cuOccupancyMaxPotentialBlockSize", "OccupancyMaxPotentialBlockSize", false},
	symLaunchKernel:                   {"cuLaunchKernel", "LaunchKernel", true},
	symStreamCreateWithPriority:       {"cuStreamCreateWithPriority", "StreamCreateWithPriority", true},
	symStreamDestroy:                  {"cuStreamDestroy_v2", "StreamDestroy", true},
	symStreamSynchronize:              {"cuStreamSynchronize", "StreamSynchronize", true},
	symStreamQuery:                    {"cuStreamQuery", "StreamQuery", true},
	symStreamWaitEvent:                {"cuStreamWaitEvent", "StreamWaitEvent", true},
	symStreamGetPriority:              {"cuStreamGetPriority", "StreamGetPriority", false},
	symEventCreate:                    {"cuEventCreate", "EventCreate", true},
	symEventDestroy:                   {"cuEventDestroy_v2", "EventDestroy", true},
	symEventRecord:                    {"cuEventRecord", "EventRecord", true},
	symEventQuery:                     {"cuEventQuery", "EventQuery", true},
	symEventSynchronize:               {"cuEventSynchronize", "EventSynchronize", true},
	symEventElapsedTime:               {"cuEventElapsedTime", "EventElapsedTime", true},
	symMemAlloc:                       {"cuMemAlloc_v2", "MemAlloc", true},
	symMemFree:                        {"cuMemFree_v2", "MemFree", true},
	symMemAllocAsync:                  {"cuMemAllocAsync", "MemAllocAsync", false},
	symMemFreeAsync:                   {"cuMemFreeAsync", "MemFreeAsync", false},
	symMemGetInfo:                     {"cuMemGetInfo_v2", "MemGetInfo", true},
	symMemGetAddressRange:             {"cuMemGetAddressRange_v2", "MemGetAddressRange", false},
	symMemHostAlloc:                   {"cuMemHostAlloc", "MemHostAlloc", true},
	symMemFreeHost:                    {"cuMemFreeHost", "MemFreeHost", true},
	symMemHostRegister:                {"cuMemHostRegister_v2", "MemHostRegister", false},
	symMemHostUnregister:              {"cuMemHostUnregister", "MemHostUnregister", false},
	symPointerGetInfo:                 {"cuPointerGetAttributes", "PointerGetInfo", false},
	symDeviceGetDefaultMemPool:        {"cuDeviceGetDefaultMemPool", "DeviceGetDefaultMemPool", false},
	symMemPoolTrimTo:                  {"cuMemPoolTrimTo", "MemPoolTrimTo", false},
	symMemPoolGetAttribute:            {"cuMemPoolGetAttribute", "MemPoolGetAttribute", false},
	symMemPoolSetAttribute:            {"cuMemPoolSetAttribute", "MemPoolSetAttribute", false},
	symMemPoolSetAccess:               {"cuMemPoolSetAccess", "MemPoolSetAccess", false},
	symMemcpyHtoD:                     {"cuMemcpyHtoD_v2", "MemcpyHtoD", true},
	symMemcpyDtoH:                     {"cuMemcpyDtoH_v2", "MemcpyDtoH", true},
	symMemcpyDtoD:                     {"cuMemcpyDtoD_v2", "MemcpyDtoD", true},
	symMemcpyHtoDAsync:                {"cuMemcpyHtoDAsync_v2", "MemcpyHtoDAsync", true},
	symMemcpyDtoHAsync:                {"cuMemcpyDtoHAsync_v2", "MemcpyDtoHAsync", true},
	symMemcpyDtoDAsync:                {"cuMemcpyDtoDAsync_v2", "MemcpyDtoDAsync", true},
	symMemcpyPeer:                     {"cuMemcpyPeer", "MemcpyPeer", true},
	symMemcpyPeerAsync:                {"cuMemcpyPeerAsync", "MemcpyPeerAsync", true},
	symMemsetD8:                       {"cuMemsetD8_v2", "MemsetD8", true},
	symMemsetD8Async:                  {"cuMemsetD8Async", "MemsetD8Async", true},
	symMemsetD32:                      {"cuMemsetD32_v2", "MemsetD32", true},
	symMemsetD32Async:                 {"cuMemsetD32Async", "MemsetD32Async", true},
}

// missing is the error for an absent entry point.
func (e entry) missing() *SymbolError {
	return &SymbolError{Name: e.name, Since: cuapi.SymbolSince[e.name]}
}

// entryFor finds an entry point by method name or exported name.
func entryFor(op string) (entry, bool) {
	for _, e := range entries {
		if op == e.method || op == e.name || op == "cu"+e.method {
			return e, true
		}
	}
	return entry{}, false
}

// absent marks an entry point that was looked up and not found. It is no
// address of a function: page zero is never mapped.
const absent = 1

// table holds the addresses of the entry points of one library.
type table struct {
	lib  *dl.Library
	addr [numSymbols]atomic.Uintptr // 0: not looked up yet
}

// address returns 0 for an entry point that the library lacks.
func (t *table) address(s symbol) uintptr {
	fn := t.addr[s].Load()
	if fn == 0 {
		fn = t.resolve(s)
	}
	if fn == absent {
		return 0
	}
	return fn
}

// resolve looks an entry point up. Two goroutines may do so at once; both find
// the same address.
func (t *table) resolve(s symbol) uintptr {
	fn, ok := t.lib.Lookup(entries[s].name)
	if !ok {
		fn = absent
	}
	t.addr[s].Store(fn)
	return fn
}

// require resolves what no program can do without; nil when all is there.
func (t *table) require() *SymbolError {
	for s := range numSymbols {
		if entries[s].required && t.address(s) == 0 {
			return entries[s].missing()
		}
	}
	return nil
}

// missing lists the optional entry points that the library lacks.
func (t *table) missing() []SymbolError {
	var list []SymbolError
	for s := range numSymbols {
		if !entries[s].required && t.address(s) == 0 {
			list = append(list, *entries[s].missing())
		}
	}
	return list
}
