/**
 * The master of the bucket sort of RepNet's section IV-C: it scans the numbers, sends every 20 of one bucket to that
 * bucket's slave as a flow of its own (a mouse), and gets each sorted bucket back as one long flow (an elephant).
 */
const net = require('repnet'); // require('node:net') runs the same program over plain TCP
const { CHUNK, RESULT, message, encodeNumbers, readAll } = require('./protocol.js');

const NUMBERS_PER_MOUSE = 20;
const MICE_IN_FLIGHT = 64;

/**
 * Sort numbers (0-65535) on the slaves at `slaves` ({ host, port }); resolves to a Uint16Array. `replicate` is what carries
 * the mice: 'flow', 'syn' or false. The elephants are never replicated.
 */
async function bucketSort({ numbers, slaves, replicate, job = 1 }) {
  const width = Math.ceil(65536 / slaves.length);
  const buffered = slaves.map(() => []);
  const sent = slaves.map(() => 0);
  const flying = new Set();

  const sendMouse = async (slave) => {
    const body = encodeNumbers(buffered[slave]);
    buffered[slave] = [];
    sent[slave]++;
    while (flying.size >= MICE_IN_FLIGHT) await Promise.race(flying);
    const mouse = exchange({ ...slaves[slave], replicate }, message(job, CHUNK, body)).then(() =>
      flying.delete(mouse),
    );
    flying.add(mouse);
  };

  for (const number of numbers) {
    const slave = Math.floor(number / width);
    buffered[slave].push(number);
    if (buffered[slave].length === NUMBERS_PER_MOUSE) await sendMouse(slave);
  }
  for (const slave of slaves.keys()) if (buffered[slave].length > 0) await sendMouse(slave);
  await Promise.all(flying);

  const buckets = await Promise.all(
    slaves.map((address, slave) => {
      const expected = Buffer.alloc(4);
      expected.writeUInt32BE(sent[slave]);
      return exchange({ ...address, replicate: false }, message(job, RESULT, expected));
    }),
  );
  const sorted = Buffer.concat(buckets);
  return {
    sorted: Uint16Array.from({ length: sorted.length / 2 }, (_, i) => sorted.readUInt16BE(i * 2)),
    mice: sent.reduce((a, b) => a + b, 0),
  };
}

/** One flow: send the request, end, and read the answer to its end. */
async function exchange(where, request) {
  const socket = net.connect({ ...where, allowHalfOpen: true, noDelay: true });
  socket.end(request);
  return readAll(socket);
}

module.exports = { bucketSort };
