/** A slave of the bucket sort: counts the numbers of its bucket as they arrive and returns them in order. */
const net = require('repnet'); // require('node:net') runs the same program over plain TCP
const { CHUNK, RESULT, HEADER_BYTES, readAll } = require('./protocol.js');

/** One job's bucket: a counting sort that is always up to date. */
class Bucket {
  counts = new Uint32Array(65536);
  chunks = 0;
  wanted = Infinity;
  onComplete = () => {};

  add(numbers) {
    for (let at = 0; at < numbers.length; at += 2) this.counts[numbers.readUInt16BE(at)]++;
    this.chunks++;
    this.check();
  }

  check() {
    if (this.chunks === this.wanted) this.onComplete();
  }

  sorted() {
    const total = this.counts.reduce((sum, count) => sum + count, 0);
    const out = Buffer.alloc(total * 2);
    let at = 0;
    this.counts.forEach((count, number) => {
      for (let i = 0; i < count; i++) at = out.writeUInt16BE(number, at);
    });
    return out;
  }
}

/** A server that plays the slave; it serves many jobs and masters at a time. */
function createSlave() {
  const buckets = new Map();
  const bucketOf = (job) => {
    if (!buckets.has(job)) buckets.set(job, new Bucket());
    return buckets.get(job);
  };
  // Half-open: a request ends before its answer begins.
  return net.createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    readAll(socket)
      .then((request) => {
        const job = request.readUInt32BE(0);
        const body = request.subarray(HEADER_BYTES);
        const bucket = bucketOf(job);
        if (request[4] === CHUNK) {
          bucket.add(body);
          socket.end();
        } else if (request[4] === RESULT) {
          bucket.wanted = body.readUInt32BE(0);
          bucket.onComplete = () => {
            buckets.delete(job);
            socket.end(bucket.sorted());
          };
          bucket.check();
        } else {
          socket.destroy(new Error(`unknown message ${request[4]}`));
        }
      })
      .catch((error) => socket.destroy(error));
    socket.on('error', (error) => console.error(`slave: ${error.message}`));
  });
}

module.exports = { createSlave };

if (require.main === module) {
  const server = createSlave();
  server.listen(Number(process.argv[2] ?? 0), process.argv[3] ?? '127.0.0.1', () => {
    process.send?.({ port: server.address().port });
    if (process.send === undefined) console.log(`listening on ${server.address().port}`);
  });
  process.on('disconnect', () => process.exit());
}
