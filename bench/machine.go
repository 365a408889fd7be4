package main

import (
	"runtime"
	"time"

	"github.com/raymux/raymux/bench/record"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/ptx"
)

// newRecord starts the record with everything but the rows.
func (r *run) newRecord() (*record.Record, error) {
	emulated := r.host.driver.Emulated()
	version, noOptiX := r.host.driver.Version(), 0
	revision, modified := sourceRevision()
	rec := &record.Record{
		SchemaVersion: record.SchemaVersion, Benchmark: record.Benchmark,
		Provenance: record.Provenance{Kind: record.Live, GeneratedAt: time.Now().UTC().Format("2006-01-02T15:04:05Z")},
		Software: record.Software{
			Program: "raymux bench", Revision: revision, RevisionModified: &modified,
			LanguageRuntime:   runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH,
			CUDADriverVersion: &version, OptiXABI: &noOptiX, PTXManifestSHA256: ptx.ManifestDigest(),
		},
		Parameters: record.Parameters{
			SelectedConfigs: []string{}, Warmup: r.warmup, Repeat: r.repeat, Probe: r.probe, RoundOrder: "rotated", AccumOnly: r.accumOnly,
			Backend: r.backend.String(), Transport: r.transport.String(), Emulated: &emulated,
		},
		Configs: map[string]record.Config{},
	}
	if emulated {
		rec.Provenance.Statement = "Emulated devices: the times are those of an interpreter on the host's processor and say nothing about any GPU."
	}
	m := &rec.Machine
	m.DeviceCount, m.Links = len(r.host.devices), []record.Link{}
	m.Contention = r.contention(record.Contention{})
	var devices []*cuda.Device
	for _, c := range r.host.contexts {
		devices = append(devices, c.Device())
	}
	for _, d := range devices {
		major, minor := d.Capability()
		m.Devices = append(m.Devices, record.Device{
			Index: d.Ordinal(), Name: d.Name(), TotalBytes: d.TotalMem(),
			ComputeCapability: &[2]int{major, minor}, Multiprocessors: d.Multiprocessors(),
		})
	}
	var err error
	m.PeerAccess, err = peerAccess(devices)
	return rec, err
}

// peerAccess asks the driver about every ordered pair.
func peerAccess(devices []*cuda.Device) (record.PeerAccess, error) {
	access := record.PeerAccess{Status: record.PeerNotApplicable, Pairs: []record.PeerPair{}}
	if len(devices) < 2 {
		return access, nil
	}
	all := true
	for _, from := range devices {
		for _, to := range devices {
			if from == to {
				continue
			}
			can, err := from.CanAccessPeer(to)
			if err != nil {
				return access, err
			}
			all = all && can
			access.Pairs = append(access.Pairs, record.PeerPair{Source: from.Ordinal(), Destination: to.Ordinal(), CanAccess: can})
		}
	}
	access.Status, access.AllPairsAccessible = record.PeerMeasured, &all
	return access, nil
}
