// SPDX-License-Identifier: Apache-2.0
// The scenario of python/scenario.py for the clients in JavaScript: same records, same lines on standard output.

export const RECORDS = 10000, PARTITIONS = 6
const CODECS = ['none', 'gzip', 'snappy', 'lz4', 'zstd']
export const pause = ms => new Promise(resolve => setTimeout(resolve, ms))

export function expected(i, base) {
  return {
    partition: i % PARTITIONS, offset: Math.floor(i / PARTITIONS), key: Buffer.from(`key-${i % 101}`),
    value: Buffer.from(`value-${i}-${'x'.repeat(i % 200)}`),
    headers: { number: Buffer.from(`${i}`), empty: Buffer.alloc(0) }, time: base + i
  }
}

const numberOf = r => r.offset * PARTITIONS + r.partition

function same(a, b) {
  const names = Object.keys(b.headers)
  return a.partition === b.partition && a.offset === b.offset && a.key.equals(b.key) && a.value.equals(b.value) &&
    a.time === b.time && Object.keys(a.headers).length === names.length &&
    names.every(n => a.headers[n]?.equals(b.headers[n]))
}

function check(condition, why) {
  if (!condition) throw new Error(why)
}

async function step(feature, run) {
  try {
    await run()
    console.log(`ok ${feature}`)
  } catch (error) {
    console.error(error)
    console.log(`fail ${feature} ${String(error).split('\n')[0]} ${error.errors?.[0] ?? ''}`)
  }
}

async function compare(client, topic, base) {
  const records = await client.readAll(topic, PARTITIONS)
  check(records.length === RECORDS, `${records.length} of ${RECORDS} records were read`)
  const seen = new Set(records.map(numberOf))
  check(seen.size === RECORDS, 'records are there twice')
  for (const r of records) check(same(r, expected(numberOf(r), base)), `record ${numberOf(r)} differs`)
}

async function group(client, topic, name) {
  const seen = new Set(), members = [0, 0, 0], until = Date.now() + 90000
  // Nobody hurries before all have begun: on a busy machine one starts seconds after the others.
  const haveBegun = () => members.every(count => count > 0)
  let begin
  const begun = new Promise(resolve => { begin = resolve })
  const member = n => client.member(topic, name, async records => {
    for (const r of records) seen.add(numberOf(r))
    members[n] += records.length
    if (haveBegun()) begin()
    await Promise.race([begun, pause(200)])
    await pause(20)
  }, () => seen.size === RECORDS || (n === 0 && haveBegun() && seen.size > RECORDS / 4) || Date.now() > until)
  await Promise.all([member(0), member(1), member(2)])
  check(seen.size === RECORDS, `only ${seen.size} of ${RECORDS} records were read`)
  check(members[1] > 0 && members[2] > 0, `a member read nothing: ${members}`)
}

const endOf = p => Math.ceil((RECORDS - p) / PARTITIONS)

// Records are deleted up to an offset, inside a batch too: what is behind it is there, and nothing else.
async function trim(client, topic) {
  const before = [...Array(PARTITIONS).keys()].map(p => p === PARTITIONS - 1 ? endOf(p) : 100 + 7 * p)
  await client.trim(topic, before)
  const begins = await client.beginnings(topic, PARTITIONS)
  check(begins.join() === before.join(), `begins at ${begins}, not at ${before}`)
  const found = await client.readAll(topic, PARTITIONS)
  const want = before.reduce((sum, at, p) => sum + endOf(p) - at, 0)
  check(new Set(found.map(numberOf)).size === found.length, 'records are there twice')
  check(found.length === want, `${found.length} records are left, not ${want}`)
  check(found.every(r => r.offset >= before[r.partition] && r.offset < endOf(r.partition)), 'records that should not be there')
}

async function recreate(client, topic) {
  await client.create(topic, 1)
  const { send, end } = await client.idempotent()
  try {
    for (let i = 0; i < 50; i++) await send(topic, `before-${i}`)
    await client.delete(topic) // its answer is the event: the name is free
    try {
      await client.create(topic, 1)
    } catch (error) { // it may exist: made by the producer itself, when it asked for the topic's partitions
      if (!/exist/i.test(`${error} ${error.errors?.join()} ${error.cause}`)) throw error
    }
    const acked = [], until = Date.now() + 60000
    for (let row = 0, n = 0; row < 20; n++) {
      check(Date.now() < until, 'the producer does not go on')
      try {
        await send(topic, `after-${n}`)
        acked.push(`after-${n}`)
        row++
      } catch (error) {
        console.error(topic, n, String(error))
        row = 0
        await pause(200)
      }
    }
    const found = (await client.readAll(topic, 1)).map(r => r.value.toString())
    check(!found.some(v => v.startsWith('before')), 'records of the deleted topic came back')
    const wanted = new Set(acked)
    check(found.filter(v => wanted.has(v)).join() === acked.join(), 'acknowledged records are missing, twice or out of order')
  } finally {
    await end()
  }
}

export async function scenario(make) {
  const [broker, topic] = process.argv.slice(2)
  const client = await make(broker), base = Date.now() - RECORDS - 1000
  await step('create', () => client.create(topic, PARTITIONS))
  const codecs = CODECS.filter(c => client.codecs.includes(c))
  for (const codec of CODECS.filter(c => !codecs.includes(c))) console.log(`none ${codec} not in this client`)
  for (const [n, codec] of codecs.entries()) {
    await step(codec, () => {
      const records = []
      for (let i = Math.floor(RECORDS * n / codecs.length); i < Math.floor(RECORDS * (n + 1) / codecs.length); i++) {
        records.push(expected(i, base))
      }
      return client.produce(topic, codec, records)
    })
  }
  await step('bytes', () => compare(client, topic, base))
  await step('group', () => group(client, topic, `${topic}-group`))
  await step('commit', async () => {
    const found = await client.committed(topic, `${topic}-group`, PARTITIONS)
    const want = found.map((_, p) => endOf(p))
    check(found.length === PARTITIONS && found.join() === want.join(), `committed ${found}, not ${want}`)
  })
  await step('time', async () => {
    // One in each codec's part: in the middle of a compressed batch as a rule.
    for (let at = 1000; at < RECORDS; at += 2000) {
      const found = await client.offsetsForTime(topic, PARTITIONS, base + at)
      const want = found.map((_, p) => Math.ceil((at - p) / PARTITIONS))
      check(found.length === PARTITIONS && found.join() === want.join(), `found ${found}, not ${want}`)
    }
  })
  await step('trim', () => trim(client, topic))
  await step('recreate', () => recreate(client, `${topic}-again`))
  await step('delete', () => client.delete(topic))
  process.exit(0)
}
