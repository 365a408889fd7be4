package main

import (
	"fmt"
	"os/exec"
	"strconv"
	"strings"

	"github.com/raymux/raymux/bench/record"
	"github.com/raymux/raymux/cuda"
)

// busyPercent is the utilisation by others above which the table carries a warning.
const busyPercent = 5

// contention adds one reading of every device's load: the first call gives the state before the run, the second the
// state after it. The utilisation comes from nvidia-smi; without it nothing is recorded.
func (r *run) contention(before record.Contention) record.Contention {
	if r.host.driver.Emulated() {
		return record.Contention{Status: record.StatusNotRecorded}
	}
	usage, err := readUsage(r.host.contexts)
	if err != nil {
		fmt.Fprintln(r.warnings, "load of the devices is not recorded:", err)
		return record.Contention{Status: record.StatusNotRecorded}
	}
	if before.Status == record.StatusMeasured {
		before.After = usage
		return before
	}
	for _, u := range usage {
		if u.UtilizationPercent > busyPercent {
			fmt.Fprintf(r.out, "device %d is %d %% busy with other work; read its times accordingly\n", u.Device, u.UtilizationPercent)
		}
	}
	return record.Contention{Status: record.StatusMeasured, Before: usage}
}

func readUsage(contexts []*cuda.Context) ([]record.DeviceUsage, error) {
	text, err := exec.Command("nvidia-smi", "--query-gpu=pci.bus_id,memory.used,utilization.gpu", "--format=csv,noheader,nounits").Output()
	if err != nil {
		return nil, fmt.Errorf("nvidia-smi: %w", err)
	}
	byBus, err := parseUsage(string(text))
	if err != nil {
		return nil, err
	}
	var usage []record.DeviceUsage
	for _, c := range contexts {
		u, ok := byBus[busKey(c.Device().PCIBusID())]
		if !ok {
			return nil, fmt.Errorf("nvidia-smi does not list device %s", c.Device().PCIBusID())
		}
		u.Device = c.Device().Ordinal()
		usage = append(usage, u)
	}
	return usage, nil
}

// parseUsage reads lines of bus id, used MiB and percent. The order of the lines is not that of CUDA's ordinals.
func parseUsage(text string) (map[string]record.DeviceUsage, error) {
	byBus := map[string]record.DeviceUsage{}
	for line := range strings.Lines(text) {
		fields := strings.Split(strings.TrimSpace(line), ", ")
		if len(fields) != 3 {
			return nil, fmt.Errorf("nvidia-smi answered %q, expected bus id, used MiB, percent", strings.TrimSpace(line))
		}
		used, err1 := strconv.ParseUint(fields[1], 10, 44)
		percent, err2 := strconv.Atoi(fields[2])
		if err1 != nil || err2 != nil || percent < 0 || percent > 100 {
			return nil, fmt.Errorf("nvidia-smi answered %q, expected bus id, used MiB, percent", strings.TrimSpace(line))
		}
		byBus[busKey(fields[0])] = record.DeviceUsage{UsedBytes: used << 20, UtilizationPercent: percent}
	}
	return byBus, nil
}

// busKey makes bus ids comparable: CUDA prints the domain with four digits, nvidia-smi with eight.
func busKey(id string) string {
	domain, rest, _ := strings.Cut(strings.ToLower(id), ":")
	return strings.TrimLeft(domain, "0") + ":" + rest
}
