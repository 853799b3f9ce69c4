// SPDX-License-Identifier: Apache-2.0
// sarama.
package main

import (
	"context"
	"errors"
	"time"

	"github.com/IBM/sarama"

	"leat.test/clients/common"
)

func config() *sarama.Config {
	c := sarama.NewConfig()
	c.Version = sarama.V3_6_0_0
	c.Producer.Return.Successes = true
	c.Producer.Partitioner = sarama.NewManualPartitioner
	c.Producer.RequiredAcks = sarama.WaitForAll
	c.Consumer.Offsets.Initial = sarama.OffsetOldest
	c.Consumer.Offsets.AutoCommit.Enable = false
	c.Consumer.Group.Session.Timeout = 6 * time.Second
	c.Consumer.Group.Heartbeat.Interval = time.Second
	c.Consumer.Fetch.Default = 20000
	return c
}

func idempotent(c *sarama.Config) *sarama.Config {
	c.Producer.Idempotent = true
	c.Net.MaxOpenRequests = 1
	return c
}

func record(m *sarama.ConsumerMessage) common.Record {
	out := common.Record{Partition: m.Partition, Offset: m.Offset, Key: m.Key, Value: m.Value, Time: m.Timestamp.UnixMilli()}
	for _, h := range m.Headers {
		out.Headers = append(out.Headers, common.Header{Key: string(h.Key), Value: h.Value})
	}
	return out
}

type handler struct {
	seen func([]common.Record)
	done func() bool
	end  context.CancelFunc
}

func (handler) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (handler) Cleanup(sarama.ConsumerGroupSession) error { return nil }
func (h handler) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		if h.done() {
			h.end()
			return nil
		}
		select {
		case m, ok := <-claim.Messages():
			if !ok {
				return nil
			}
			got := []common.Record{record(m)}
			session.MarkMessage(m, "")
			for len(got) < 200 {
				select {
				case m, ok = <-claim.Messages():
				default:
					ok = false
				}
				if !ok {
					break
				}
				got = append(got, record(m))
				session.MarkMessage(m, "")
			}
			h.seen(got)
			session.Commit()
		case <-tick.C:
		case <-session.Context().Done():
			return nil
		}
	}
}

func main() {
	common.Run(func(broker string) common.Client {
		brokers := []string{broker}
		admin, err := sarama.NewClusterAdmin(brokers, config())
		if err != nil {
			panic(err)
		}
		client, err := sarama.NewClient(brokers, config())
		if err != nil {
			panic(err)
		}
		codecs := map[string]sarama.CompressionCodec{"none": sarama.CompressionNone, "gzip": sarama.CompressionGZIP,
			"snappy": sarama.CompressionSnappy, "lz4": sarama.CompressionLZ4, "zstd": sarama.CompressionZSTD}
		return common.Client{
			Create: func(topic string, partitions int32) error {
				return admin.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: partitions, ReplicationFactor: 1}, false)
			},
			Delete: admin.DeleteTopic,
			Produce: func(topic, codec string, records []common.Record) error {
				c := idempotent(config())
				c.Producer.Compression = codecs[codec]
				producer, err := sarama.NewSyncProducer(brokers, c)
				if err != nil {
					return err
				}
				defer producer.Close()
				var sent []*sarama.ProducerMessage
				for _, r := range records {
					one := &sarama.ProducerMessage{Topic: topic, Partition: r.Partition, Key: sarama.ByteEncoder(r.Key),
						Value: sarama.ByteEncoder(r.Value), Timestamp: time.UnixMilli(r.Time)}
					for _, h := range r.Headers {
						one.Headers = append(one.Headers, sarama.RecordHeader{Key: []byte(h.Key), Value: h.Value})
					}
					sent = append(sent, one)
				}
				return producer.SendMessages(sent)
			},
			ReadAll: func(topic string, partitions int) ([]common.Record, error) {
				consumer, err := sarama.NewConsumer(brokers, config())
				if err != nil {
					return nil, err
				}
				defer consumer.Close()
				if err := client.RefreshMetadata(topic); err != nil {
					return nil, err
				}
				var found []common.Record
				for p := 0; p < partitions; p++ {
					end, err := client.GetOffset(topic, int32(p), sarama.OffsetNewest)
					if err != nil {
						return nil, err
					}
					part, err := consumer.ConsumePartition(topic, int32(p), sarama.OffsetOldest)
					if err != nil {
						return nil, err
					}
					begin, err := client.GetOffset(topic, int32(p), sarama.OffsetOldest)
					if err != nil {
						return nil, err
					}
					for at := begin; at < end; at++ {
						select {
						case m := <-part.Messages():
							found = append(found, record(m))
						case <-time.After(20 * time.Second):
							return found, errors.New("records do not come")
						}
					}
					part.Close()
				}
				return found, nil
			},
			Member: func(topic, group string, seen func([]common.Record), done func() bool) error {
				member, err := sarama.NewConsumerGroup(brokers, group, config())
				if err != nil {
					return err
				}
				defer member.Close()
				limit, cancel := context.WithCancel(context.Background())
				defer cancel()
				for !done() && limit.Err() == nil {
					if err := member.Consume(limit, []string{topic}, handler{seen, done, cancel}); err != nil {
						return err
					}
				}
				return nil
			},
			Committed: func(topic, group string, partitions int) ([]int64, error) {
				ask := map[string][]int32{topic: {}}
				for p := 0; p < partitions; p++ {
					ask[topic] = append(ask[topic], int32(p))
				}
				found, err := admin.ListConsumerGroupOffsets(group, ask)
				if err != nil {
					return nil, err
				}
				out := make([]int64, partitions)
				for p := range out {
					out[p] = found.GetBlock(topic, int32(p)).Offset
				}
				return out, nil
			},
			OffsetsForTime: func(topic string, partitions int, at int64) ([]int64, error) {
				out := make([]int64, partitions)
				for p := range out {
					if out[p], err = client.GetOffset(topic, int32(p), at); err != nil {
						return nil, err
					}
				}
				return out, nil
			},
			Trim: func(topic string, before []int64) error {
				offsets := make(map[int32]int64)
				for p, at := range before {
					offsets[int32(p)] = at
				}
				return admin.DeleteRecords(topic, offsets)
			},
			Beginnings: func(topic string, partitions int) ([]int64, error) {
				out := make([]int64, partitions)
				for p := range out {
					if out[p], err = client.GetOffset(topic, int32(p), sarama.OffsetOldest); err != nil {
						return nil, err
					}
				}
				return out, nil
			},
			Idempotent: func() (func(string, []byte) error, func(), error) {
				producer, err := sarama.NewSyncProducer(brokers, idempotent(config()))
				return func(topic string, value []byte) error {
					_, _, err := producer.SendMessage(&sarama.ProducerMessage{Topic: topic, Value: sarama.ByteEncoder(value)})
					return err
				}, func() { producer.Close() }, err
			},
		}
	})
}
