// SPDX-License-Identifier: Apache-2.0
// franz-go.
package main

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"leat.test/clients/common"
)

var background = context.Background()

func record(r *kgo.Record) common.Record {
	out := common.Record{Partition: r.Partition, Offset: r.Offset, Key: r.Key, Value: r.Value, Time: r.Timestamp.UnixMilli()}
	for _, h := range r.Headers {
		out.Headers = append(out.Headers, common.Header{Key: h.Key, Value: h.Value})
	}
	return out
}

func main() {
	common.Run(func(broker string) common.Client {
		seeds := kgo.SeedBrokers(broker)
		client := func(opts ...kgo.Opt) (*kgo.Client, error) { return kgo.NewClient(append(opts, seeds)...) }
		base, err := client()
		if err != nil {
			panic(err)
		}
		admin := kadm.NewClient(base)
		codecs := map[string]kgo.CompressionCodec{"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(),
			"snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression()}
		return common.Client{
			Create: func(topic string, partitions int32) error {
				_, err := admin.CreateTopic(background, partitions, 1, nil, topic)
				return err
			},
			Delete: func(topic string) error {
				answer, err := admin.DeleteTopics(background, topic)
				if err == nil {
					err = answer.Error()
				}
				return err
			},
			Produce: func(topic, codec string, records []common.Record) error {
				producer, err := client(kgo.ProducerBatchCompression(codecs[codec]), kgo.RecordPartitioner(kgo.ManualPartitioner()))
				if err != nil {
					return err
				}
				defer producer.Close()
				var sent []*kgo.Record
				for _, r := range records {
					one := &kgo.Record{Topic: topic, Partition: r.Partition, Key: r.Key, Value: r.Value, Timestamp: time.UnixMilli(r.Time)}
					for _, h := range r.Headers {
						one.Headers = append(one.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
					}
					sent = append(sent, one)
				}
				return producer.ProduceSync(background, sent...).FirstErr()
			},
			ReadAll: func(topic string, partitions int) ([]common.Record, error) {
				ends, err := admin.ListEndOffsets(background, topic)
				if err != nil {
					return nil, err
				}
				begins, err := admin.ListStartOffsets(background, topic)
				if err != nil {
					return nil, err
				}
				want := int64(0)
				ends.Each(func(o kadm.ListedOffset) { want += o.Offset })
				begins.Each(func(o kadm.ListedOffset) { want -= o.Offset })
				consumer, err := client(kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
				if err != nil {
					return nil, err
				}
				defer consumer.Close()
				limit, cancel := context.WithTimeout(background, 30*time.Second)
				defer cancel()
				var found []common.Record
				for int64(len(found)) < want && limit.Err() == nil {
					fetches := consumer.PollFetches(limit)
					fetches.EachRecord(func(r *kgo.Record) { found = append(found, record(r)) })
				}
				return found, nil
			},
			Member: func(topic, group string, seen func([]common.Record), done func() bool) error {
				consumer, err := client(kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(),
					kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.SessionTimeout(6*time.Second),
					kgo.HeartbeatInterval(time.Second), kgo.FetchMaxBytes(40000), kgo.FetchMaxPartitionBytes(20000))
				if err != nil {
					return err
				}
				defer consumer.Close()
				for !done() {
					limit, cancel := context.WithTimeout(background, 500*time.Millisecond)
					fetches := consumer.PollRecords(limit, 200)
					cancel()
					var got []common.Record
					fetches.EachRecord(func(r *kgo.Record) { got = append(got, record(r)) })
					if len(got) == 0 {
						continue
					}
					seen(got)
					// A rebalance in between is no failure: what was read is read again.
					if err := consumer.CommitRecords(background, fetches.Records()...); err != nil {
						println("commit:", err.Error())
					}
				}
				return nil
			},
			Committed: func(topic, group string, partitions int) ([]int64, error) {
				found, err := admin.FetchOffsets(background, group)
				out := make([]int64, partitions)
				for p := range out {
					at, ok := found.Lookup(topic, int32(p))
					if !ok {
						return nil, errors.New("a partition without a committed offset")
					}
					out[p] = at.At
				}
				return out, err
			},
			OffsetsForTime: func(topic string, partitions int, at int64) ([]int64, error) {
				found, err := admin.ListOffsetsAfterMilli(background, at, topic)
				out := make([]int64, partitions)
				for p := range out {
					one, _ := found.Lookup(topic, int32(p))
					out[p] = one.Offset
				}
				return out, err
			},
			Trim: func(topic string, before []int64) error {
				offsets := kadm.Offsets{}
				for p, at := range before {
					offsets.AddOffset(topic, int32(p), at, -1)
				}
				done, err := admin.DeleteRecords(background, offsets)
				if err != nil {
					return err
				}
				return done.Error()
			},
			Beginnings: func(topic string, partitions int) ([]int64, error) {
				found, err := admin.ListStartOffsets(background, topic)
				out := make([]int64, partitions)
				for p := range out {
					one, _ := found.Lookup(topic, int32(p))
					out[p] = one.Offset
				}
				return out, err
			},
			Idempotent: func() (func(string, []byte) error, func(), error) {
				producer, err := client(kgo.RecordDeliveryTimeout(10*time.Second), kgo.ProducerLinger(0))
				return func(topic string, value []byte) error {
					return producer.ProduceSync(background, &kgo.Record{Topic: topic, Value: value}).FirstErr()
				}, func() { producer.Close() }, err
			},
		}
	})
}
