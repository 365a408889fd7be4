package optixabi

import "log/slog"

// DeviceContextOptions belong to DeviceContextCreate. The zero value logs
// nothing and validates nothing.
type DeviceContextOptions struct {
	// Log receives the messages of the library up to LogLevel; nil for none.
	// Its handler runs inside calls of this package, on any thread, and must
	// not make such calls itself.
	Log        *slog.Logger
	LogLevel   LogLevel
	Validation ValidationMode // ValidationAll checks inputs, at a price
}

// DeviceContextCreate starts OptiX on a CUDA context; 0 is the current one.
func (t *Table) DeviceContextCreate(cudaContext uintptr, o DeviceContextOptions) (DeviceContext, error) {
	fn, key := logTarget(o.Log)
	level := o.LogLevel
	if fn == 0 {
		level = 0
	}
	r := newRecord(t.ABI(), "OptixDeviceContextOptions")
	r.set("logCallbackFunction", uint64(fn))
	r.set("logCallbackData", uint64(key))
	r.set("logCallbackLevel", uint64(level))
	r.set("validationMode", uint64(o.Validation))

	b := getBlock()
	defer b.put()
	code := t.call(fnDeviceContextCreate, b, cudaContext, b.record(r), b.ref(0))
	if code != Success {
		loggers.remove(key)
		return 0, callError(fnDeviceContextCreate, code, "")
	}
	c := DeviceContext(b.out[0])
	t.setLogKey(c, key)
	return c, nil
}

// setLogKey remembers the logger of a context and gives up its former one.
func (t *Table) setLogKey(c DeviceContext, key uintptr) {
	t.mu.Lock()
	old := t.logs[c]
	if key == 0 {
		delete(t.logs, c)
	} else {
		t.logs[c] = key
	}
	t.mu.Unlock()
	loggers.remove(old)
}

// DeviceContextDestroy ends a device context. Everything made from it has to
// be destroyed before.
func (t *Table) DeviceContextDestroy(c DeviceContext) error {
	err := t.do(fnDeviceContextDestroy, uintptr(c))
	if err == nil {
		t.setLogKey(c, 0)
	}
	return err
}

// DeviceProperty reads a property of the device, all of which are 32 bits.
// PropertyRTCoreVersion is 0 for a device without ray-tracing cores.
func (t *Table) DeviceProperty(c DeviceContext, p Property) (uint32, error) {
	b := getBlock()
	defer b.put()
	code := t.call(fnDeviceContextGetProperty, b, uintptr(c), uintptr(p), b.ref(0), 4)
	return uint32(b.out[0]), callError(fnDeviceContextGetProperty, code, "")
}

// SetLog changes who receives the messages of a device context; nil is nobody.
func (t *Table) SetLog(c DeviceContext, l *slog.Logger, level LogLevel) error {
	fn, key := logTarget(l)
	if fn == 0 {
		level = 0
	}
	err := t.do(fnDeviceContextSetLogCallback, uintptr(c), fn, key, uintptr(level))
	if err != nil {
		loggers.remove(key)
		return err
	}
	t.setLogKey(c, key)
	return nil
}

// SetCacheEnabled switches the disk cache of compiled programs on or off.
func (t *Table) SetCacheEnabled(c DeviceContext, on bool) error {
	var flag uintptr
	if on {
		flag = 1
	}
	return t.do(fnDeviceContextSetCacheEnabled, uintptr(c), flag)
}

// CacheEnabled reports whether the disk cache is in use.
func (t *Table) CacheEnabled(c DeviceContext) (bool, error) {
	b := getBlock()
	defer b.put()
	code := t.call(fnDeviceContextGetCacheEnabled, b, uintptr(c), b.ref(0))
	return int32(b.out[0]) != 0, callError(fnDeviceContextGetCacheEnabled, code, "")
}

// SetCacheLocation moves the disk cache into a folder. The environment
// variable OPTIX_CACHE_PATH wins over it.
func (t *Table) SetCacheLocation(c DeviceContext, dir string) error {
	b := getBlock()
	defer b.put()
	code := t.call(fnDeviceContextSetCacheLocation, b, uintptr(c), b.text(dir))
	return callError(fnDeviceContextSetCacheLocation, code, "")
}

// CacheLocation is the folder of the disk cache, even while it is off.
func (t *Table) CacheLocation(c DeviceContext) (string, error) {
	buf := make([]byte, maxTextRead)
	b := getBlock()
	defer b.put()
	code := t.call(fnDeviceContextGetCacheLocation, b, uintptr(c), b.host(buf), uintptr(len(buf)))
	return cText(buf), callError(fnDeviceContextGetCacheLocation, code, "")
}

// SetCacheSizes sets the bytes above which the disk cache is cleaned, and the
// bytes down to which. The environment variable OPTIX_CACHE_MAXSIZE wins over
// them.
func (t *Table) SetCacheSizes(c DeviceContext, low, high uint64) error {
	return t.do(fnDeviceContextSetCacheDatabaseSizes, uintptr(c), uintptr(low), uintptr(high))
}

// CacheSizes reads what SetCacheSizes sets.
func (t *Table) CacheSizes(c DeviceContext) (low, high uint64, err error) {
	b := getBlock()
	defer b.put()
	code := t.call(fnDeviceContextGetCacheDatabaseSizes, b, uintptr(c), b.ref(0), b.ref(1))
	return b.out[0], b.out[1], callError(fnDeviceContextGetCacheDatabaseSizes, code, "")
}
