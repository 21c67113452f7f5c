/**
 * What master and slaves say. Numbers are 0-65535, two bytes each, big-endian.
 *
 *   a mouse     job(4) CHUNK numbers...       one flow: the connection carries this and ends
 *   the result  job(4) RESULT chunks(4)       asks for the sorted bucket of `chunks` mice; the answer is numbers until the end
 */
const CHUNK = 1;
const RESULT = 2;
const HEADER_BYTES = 5;

/** A message from its job, kind and body. */
function message(job, kind, body) {
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt32BE(job);
  header[4] = kind;
  return Buffer.concat([header, body]);
}

function encodeNumbers(numbers) {
  const body = Buffer.alloc(numbers.length * 2);
  for (const [index, number] of numbers.entries()) body.writeUInt16BE(number, index * 2);
  return body;
}

/** Everything that arrives on a socket until its end. */
function readAll(socket) {
  return new Promise((resolve, reject) => {
    const chunks = [];
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.on('end', () => resolve(Buffer.concat(chunks)));
    socket.on('error', reject);
    socket.on('close', () => reject(new Error('the connection closed before its end')));
  });
}

module.exports = { CHUNK, RESULT, HEADER_BYTES, message, encodeNumbers, readAll };
