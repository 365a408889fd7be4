package cuda

import "io"

// attachment is state of another package that lives as long as the driver.
type attachment struct {
	key   any
	value io.Closer
}

// Attachment returns the value that belongs to the driver under key. The first
// call makes it with create; key is of a type of the caller's own. A package that
// drives another library in the driver's contexts keeps what its users share here
// and not in globals. Close closes the values, the last one first. create runs
// under a lock and must not call the driver.
func (d *Driver) Attachment(key any, create func() io.Closer) (io.Closer, error) {
	d.attachMu.Lock()
	defer d.attachMu.Unlock()
	if d.closed.Load() {
		return nil, errClosed("driver")
	}
	for _, a := range d.attached {
		if a.key == key {
			return a.value, nil
		}
	}
	value := create()
	d.attached = append(d.attached, attachment{key, value})
	return value, nil
}

// detach closes the attachments.
func (d *Driver) detach() error {
	d.attachMu.Lock()
	all := d.attached
	d.attached = nil
	d.attachMu.Unlock()
	var errs []error
	for i := len(all) - 1; i >= 0; i-- {
		errs = append(errs, all[i].value.Close())
	}
	return firstError(errs...)
}
