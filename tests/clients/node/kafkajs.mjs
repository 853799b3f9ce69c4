// SPDX-License-Identifier: Apache-2.0
// KafkaJS.

import kafkajs from 'kafkajs'
import snappy from 'kafkajs-snappy'
import { scenario, pause } from './common.mjs'

const { Kafka, CompressionTypes, CompressionCodecs, logLevel } = kafkajs
CompressionCodecs[CompressionTypes.Snappy] = snappy
const types = { none: CompressionTypes.None, gzip: CompressionTypes.GZIP, snappy: CompressionTypes.Snappy, lz4: CompressionTypes.LZ4 }
const codecs = ['none', 'gzip', 'snappy']
try {
  const { default: Lz4 } = await import('kafkajs-lz4')
  CompressionCodecs[CompressionTypes.LZ4] = new Lz4().codec
  codecs.push('lz4')
} catch (error) {
  console.error(`no lz4: ${error}`)
}

const record = (partition, m) => ({
  partition, offset: Number(m.offset), key: m.key, value: m.value, headers: m.headers, time: Number(m.timestamp)
})

await scenario(async broker => {
  const kafka = new Kafka({ clientId: 'scenario', brokers: [broker], logLevel: logLevel.ERROR })
  const admin = kafka.admin()
  await admin.connect()
  return {
    codecs,
    create: (topic, numPartitions) => admin.createTopics({ topics: [{ topic, numPartitions }] }),
    delete: topic => admin.deleteTopics({ topics: [topic] }),
    async produce(topic, codec, records) {
      const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1 })
      await producer.connect()
      for (let at = 0; at < records.length; at += 500) {
        await producer.send({
          topic, compression: types[codec], acks: -1,
          messages: records.slice(at, at + 500).map(r => ({
            partition: r.partition, key: r.key, value: r.value, headers: r.headers, timestamp: String(r.time)
          }))
        })
      }
      await producer.disconnect()
    },
    async readAll(topic, partitions) {
      const ends = await admin.fetchTopicOffsets(topic)
      const want = ends.reduce((sum, p) => sum + Number(p.high) - Number(p.low), 0), found = []
      const consumer = kafka.consumer({ groupId: `${topic}-all-${Date.now()}`, maxWaitTimeInMs: 200 })
      await consumer.connect()
      await consumer.subscribe({ topics: [topic], fromBeginning: true })
      await consumer.run({
        autoCommit: false,
        eachBatch: async ({ batch }) => { for (const m of batch.messages) found.push(record(batch.partition, m)) }
      })
      for (let i = 0; i < 300 && found.length < want; i++) await pause(100)
      await consumer.disconnect()
      return found
    },
    async member(topic, groupId, seen, done) {
      const consumer = kafka.consumer({
        groupId, sessionTimeout: 6000, heartbeatInterval: 1000, maxBytesPerPartition: 20000, maxWaitTimeInMs: 200
      })
      let busy = 0
      await consumer.connect()
      await consumer.subscribe({ topics: [topic], fromBeginning: true })
      await consumer.run({
        autoCommit: false,
        eachBatch: async ({ batch, heartbeat, isRunning, isStale }) => {
          if (done() || isStale() || !isRunning()) return
          busy++
          await seen(batch.messages.map(m => record(batch.partition, m)))
          const offset = String(Number(batch.lastOffset()) + 1)
          try {
            await consumer.commitOffsets([{ topic, partition: batch.partition, offset }])
            await heartbeat()
          } catch (error) {
            if (!/rebalanc|generation|member/i.test(String(error))) throw error
          } finally {
            busy--
          }
        }
      })
      while (!done() || busy > 0) await pause(50)
      await consumer.disconnect()
    },
    async committed(topic, groupId, partitions) {
      const [{ partitions: found }] = await admin.fetchOffsets({ groupId, topics: [topic] })
      return found.sort((a, b) => a.partition - b.partition).map(p => Number(p.offset))
    },
    async offsetsForTime(topic, partitions, at) {
      const found = await admin.fetchTopicOffsetsByTimestamp(topic, at)
      return found.sort((a, b) => a.partition - b.partition).map(p => Number(p.offset))
    },
    trim: (topic, before) => admin.deleteTopicRecords({
      topic, partitions: before.map((offset, partition) => ({ partition, offset: String(offset) }))
    }),
    async beginnings(topic) {
      const found = await admin.fetchTopicOffsets(topic)
      return found.sort((a, b) => a.partition - b.partition).map(p => Number(p.low))
    },
    async idempotent() {
      const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1, retry: { retries: 3 } })
      await producer.connect()
      return {
        send: (topic, value) => producer.send({ topic, messages: [{ partition: 0, value }] }),
        end: () => producer.disconnect()
      }
    }
  }
})
