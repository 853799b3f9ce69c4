// SPDX-License-Identifier: Apache-2.0
// Package common is the scenario of python/scenario.py for the clients in Go: same records, same lines on
// standard output.
package common

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

const (
	Records    = 10000
	Partitions = 6
)

var Codecs = []string{"none", "gzip", "snappy", "lz4", "zstd"}

type Header struct {
	Key   string
	Value []byte
}

type Record struct {
	Partition int32
	Offset    int64
	Key       []byte
	Value     []byte
	Headers   []Header
	Time      int64 // milliseconds
}

func (r Record) Number() int { return int(r.Offset)*Partitions + int(r.Partition) }

func Expected(i int, base int64) Record {
	return Record{
		int32(i % Partitions), int64(i / Partitions), []byte(fmt.Sprintf("key-%d", i%101)),
		[]byte(fmt.Sprintf("value-%d-%s", i, strings.Repeat("x", i%200))),
		[]Header{{"number", []byte(fmt.Sprint(i))}, {"empty", []byte{}}}, base + int64(i),
	}
}

func (r Record) Same(o Record) bool {
	if r.Partition != o.Partition || r.Offset != o.Offset || !bytes.Equal(r.Key, o.Key) || !bytes.Equal(r.Value, o.Value) ||
		r.Time != o.Time || len(r.Headers) != len(o.Headers) {
		return false
	}
	for i := range r.Headers {
		if r.Headers[i].Key != o.Headers[i].Key || !bytes.Equal(r.Headers[i].Value, o.Headers[i].Value) {
			return false
		}
	}
	return true
}

// Member is one of a group: Run reads until done says so, calling seen for what it got, and commits it.
type Member func(topic, group string, seen func([]Record), done func() bool) error

type Client struct {
	Create         func(topic string, partitions int32) error
	Delete         func(topic string) error
	Produce        func(topic, codec string, records []Record) error
	ReadAll        func(topic string, partitions int) ([]Record, error)
	Member         Member
	Committed      func(topic, group string, partitions int) ([]int64, error)
	OffsetsForTime func(topic string, partitions int, at int64) ([]int64, error)
	// Trim deletes the records below these offsets; Beginnings says where the partitions begin.
	Trim       func(topic string, before []int64) error
	Beginnings func(topic string, partitions int) ([]int64, error)
	// Idempotent makes a producer and returns what sends one record and waits, and what closes it.
	Idempotent func() (send func(topic string, value []byte) error, end func(), err error)
}

func step(feature string, run func() error) {
	if err := run(); err != nil {
		fmt.Printf("fail %s %s\n", feature, strings.Split(err.Error(), "\n")[0])
	} else {
		fmt.Printf("ok %s\n", feature)
	}
}

func compare(c Client, topic string, base int64) error {
	records, err := c.ReadAll(topic, Partitions)
	if err != nil {
		return err
	}
	if len(records) != Records {
		return fmt.Errorf("%d of %d records were read", len(records), Records)
	}
	seen := make(map[int]bool)
	for _, r := range records {
		i := r.Number()
		if seen[i] {
			return fmt.Errorf("record %d twice", i)
		}
		seen[i] = true
		if !r.Same(Expected(i, base)) {
			return fmt.Errorf("record %d differs: %+v", i, r)
		}
	}
	return nil
}

func group(c Client, topic, name string) error {
	var lock sync.Mutex
	seen := make(map[int]bool)
	members := make([]int, 3)
	var begun sync.WaitGroup // nobody hurries before all have: on a busy machine one starts seconds after the others
	begun.Add(3)
	all := make(chan struct{})
	go func() { begun.Wait(); close(all) }()
	fails := make([]error, 3)
	until := time.Now().Add(90 * time.Second)
	var wait sync.WaitGroup
	for n := 0; n < 3; n++ {
		wait.Add(1)
		go func() {
			defer wait.Done()
			fails[n] = c.Member(topic, name, func(records []Record) {
				lock.Lock()
				for _, r := range records {
					seen[r.Number()] = true
				}
				if members[n] == 0 && len(records) > 0 {
					begun.Done()
				}
				members[n] += len(records)
				lock.Unlock()
				select {
				case <-all:
				case <-time.After(2 * time.Second):
				}
				time.Sleep(20 * time.Millisecond)
			}, func() bool {
				lock.Lock()
				defer lock.Unlock()
				return len(seen) == Records || (n == 0 && members[1] > 0 && members[2] > 0 && len(seen) > Records/4) || time.Now().After(until)
			})
		}()
	}
	wait.Wait()
	if err := errors.Join(fails...); err != nil {
		return err
	}
	if len(seen) != Records {
		return fmt.Errorf("only %d of %d records were read", len(seen), Records)
	}
	if members[1] == 0 || members[2] == 0 {
		return fmt.Errorf("a member read nothing: %v", members)
	}
	return nil
}

func end(partition int) int64 { return int64((Records - partition + Partitions - 1) / Partitions) }

// trim deletes records up to an offset, inside a batch too: what is behind it is there, and nothing else.
func trim(c Client, topic string) error {
	before := make([]int64, Partitions)
	want := 0
	for p := range before {
		before[p] = int64(100 + 7*p)
		if p == Partitions-1 {
			before[p] = end(p)
		}
		want += int(end(p) - before[p])
	}
	if err := c.Trim(topic, before); err != nil {
		return err
	}
	begins, err := c.Beginnings(topic, Partitions)
	if err != nil {
		return err
	}
	if fmt.Sprint(begins) != fmt.Sprint(before) {
		return fmt.Errorf("begins at %v, not at %v", begins, before)
	}
	records, err := c.ReadAll(topic, Partitions)
	if err != nil {
		return err
	}
	seen := make(map[int]bool)
	for _, r := range records {
		if seen[r.Number()] || r.Offset < before[r.Partition] || r.Offset >= end(int(r.Partition)) {
			return fmt.Errorf("record %d of partition %d is there twice, or should not be", r.Offset, r.Partition)
		}
		seen[r.Number()] = true
	}
	if len(seen) != want {
		return fmt.Errorf("%d records are left, not %d", len(seen), want)
	}
	return nil
}

func recreate(c Client, topic string) error {
	if err := c.Create(topic, 1); err != nil {
		return err
	}
	send, end, err := c.Idempotent()
	if err != nil {
		return err
	}
	defer end()
	for i := 0; i < 50; i++ {
		if err := send(topic, []byte(fmt.Sprintf("before-%d", i))); err != nil {
			return err
		}
	}
	if err := c.Delete(topic); err != nil {
		return err
	}
	// The answer was the event: the name is free. It may exist again: made by the producer itself, when it asked for the topic's partitions.
	if err := c.Create(topic, 1); err != nil && !strings.Contains(strings.ToLower(err.Error()), "exist") {
		return err
	}
	var acked []string
	until := time.Now().Add(60 * time.Second)
	for row, n := 0, 0; row < 20; n++ {
		if time.Now().After(until) {
			return errors.New("the producer does not go on")
		}
		value := fmt.Sprintf("after-%d", n)
		if err := send(topic, []byte(value)); err != nil {
			fmt.Fprintln(os.Stderr, topic, value, err)
			row = 0
			time.Sleep(200 * time.Millisecond)
			continue
		}
		acked = append(acked, value)
		row++
	}
	records, err := c.ReadAll(topic, 1)
	if err != nil {
		return err
	}
	at := 0
	for _, r := range records {
		if bytes.HasPrefix(r.Value, []byte("before")) {
			return errors.New("records of the deleted topic came back")
		}
		if at < len(acked) && string(r.Value) == acked[at] {
			at++
		} else if at > 0 && string(r.Value) == acked[at-1] {
			return fmt.Errorf("%s is there twice", r.Value)
		}
	}
	if at != len(acked) {
		return errors.New("acknowledged records are missing or out of order")
	}
	return nil
}

// Run goes through the scenario with a client.
func Run(make func(broker string) Client) {
	c, topic := make(os.Args[1]), os.Args[2]
	base := time.Now().UnixMilli() - Records - 1000
	step("create", func() error { return c.Create(topic, Partitions) })
	for n, codec := range Codecs {
		step(codec, func() error {
			var records []Record
			for i := Records * n / len(Codecs); i < Records*(n+1)/len(Codecs); i++ {
				records = append(records, Expected(i, base))
			}
			return c.Produce(topic, codec, records)
		})
	}
	step("bytes", func() error { return compare(c, topic, base) })
	step("group", func() error { return group(c, topic, topic+"-group") })
	step("commit", func() error {
		found, err := c.Committed(topic, topic+"-group", Partitions)
		for p, at := range found {
			if at != end(p) {
				return fmt.Errorf("partition %d: committed %d, not %d", p, at, end(p))
			}
		}
		return err
	})
	step("time", func() error {
		// One in each codec's part: in the middle of a compressed batch as a rule.
		for at := 1000; at < Records; at += 2000 {
			found, err := c.OffsetsForTime(topic, Partitions, base+int64(at))
			if err != nil {
				return err
			}
			for p, offset := range found {
				if want := int64((at - p + Partitions - 1) / Partitions); offset != want {
					return fmt.Errorf("partition %d: found %d, not %d", p, offset, want)
				}
			}
		}
		return nil
	})
	step("trim", func() error { return trim(c, topic) })
	step("recreate", func() error { return recreate(c, topic+"-again") })
	step("delete", func() error { return c.Delete(topic) })
}
