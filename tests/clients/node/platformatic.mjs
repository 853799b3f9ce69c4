// SPDX-License-Identifier: Apache-2.0
// @platformatic/kafka: flexible versions only.

import zlib from 'node:zlib'
import { Admin, Consumer, Producer } from '@platformatic/kafka'
import { scenario } from './common.mjs'

const record = m => ({
  partition: m.partition, offset: Number(m.offset), key: m.key, value: m.value, time: Number(m.timestamp),
  headers: Object.fromEntries([...m.headers].map(([k, v]) => [k.toString(), v]))
})

await scenario(async broker => {
  const base = { clientId: 'scenario', bootstrapBrokers: [broker] }
  const admin = new Admin(base)
  const consumerOf = (groupId, more = {}) => new Consumer({ ...base, groupId, autocommit: false, maxWaitTime: 200, ...more })
  const offsets = async (consumer, topic, timestamp) =>
    (await consumer.listOffsets({ topics: [topic], timestamp })).get(topic).map(Number)
  return {
    codecs: ['none', 'gzip', 'snappy', 'lz4', ...(zlib.zstdCompressSync ? ['zstd'] : [])], // zstd is the runtime's
    create: (topic, partitions) => admin.createTopics({ topics: [topic], partitions, replicas: 1 }),
    delete: topic => admin.deleteTopics({ topics: [topic] }),
    async produce(topic, compression, records) {
      const producer = new Producer({ ...base, idempotent: true })
      for (let at = 0; at < records.length; at += 500) {
        await producer.send({
          compression,
          messages: records.slice(at, at + 500).map(r => ({
            topic, partition: r.partition, key: r.key, value: r.value, timestamp: BigInt(r.time),
            headers: new Map(Object.entries(r.headers).map(([k, v]) => [Buffer.from(k), v]))
          }))
        })
      }
      await producer.close()
    },
    async readAll(topic, partitions) {
      const consumer = consumerOf(`${topic}-all-${Date.now()}`), found = []
      const [begins, ends] = [await offsets(consumer, topic, -2n), await offsets(consumer, topic, -1n)]
      const want = ends.reduce((sum, end, p) => sum + end - begins[p], 0)
      const stream = await consumer.consume({ topics: [topic], mode: 'earliest' })
      const late = setTimeout(() => stream.close(), 30000)
      for await (const m of stream) {
        found.push(record(m))
        if (found.length === want) break
      }
      clearTimeout(late)
      await consumer.close(true)
      return found
    },
    async member(topic, groupId, seen, done) {
      const consumer = consumerOf(groupId, { sessionTimeout: 6000, heartbeatInterval: 1000, maxBytesPerPartition: 20000 })
      const stream = await consumer.consume({ topics: [topic], mode: 'committed', fallbackMode: 'earliest', highWaterMark: 200 })
      const timer = setInterval(() => done() && stream.close().catch(() => {}), 100)
      let got = [], last = []
      const flush = async () => {
        await seen(got)
        try {
          await consumer.commit({ offsets: last.map(m => ({ topic, partition: m.partition, offset: m.offset + 1n, leaderEpoch: -1 })) })
        } catch (error) {
          console.error(String(error), String(error.errors?.[0]))
        }
        got = last = []
      }
      for await (const m of stream) {
        got.push(record(m))
        last = last.filter(l => l.partition !== m.partition).concat([m])
        if (got.length >= 100 || stream.readableLength === 0) await flush()
        if (done()) break
      }
      clearInterval(timer)
      await consumer.close(true)
    },
    async committed(topic, groupId, partitions) {
      const consumer = consumerOf(groupId)
      const found = await consumer.listCommittedOffsets({ topics: [{ topic, partitions: [...Array(partitions).keys()] }] })
      await consumer.close(true)
      return found.get(topic).map(Number)
    },
    async offsetsForTime(topic, partitions, at) {
      const consumer = consumerOf('none')
      const found = await offsets(consumer, topic, BigInt(at))
      await consumer.close(true)
      return found
    },
    trim: (topic, before) => admin.deleteRecords({
      topics: [{ name: topic, partitions: before.map((offset, partition) => ({ partition, offset: BigInt(offset) })) }]
    }),
    beginnings(topic, partitions) {
      return this.offsetsForTime(topic, partitions, -2)
    },
    async idempotent() {
      const producer = new Producer({ ...base, idempotent: true, retries: 3 })
      return {
        send: (topic, value) => producer.send({ messages: [{ topic, partition: 0, value: Buffer.from(value) }] }),
        end: () => producer.close(true)
      }
    }
  }
})
