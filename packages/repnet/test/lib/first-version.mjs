/**
 * What `startRelay` alters of a connection: the version is taken out of its hello and its answer, which is all that a build before
 * version 2 says differently. So each end meets the other as such a build.
 */
const MAGIC = Buffer.from('9e5265704e6574', 'hex');
const VERSION_AT = 10;

export function firstVersion() {
  const streams = { up: { at: 0, framed: true }, down: { at: 0, framed: true } };
  return (direction, bytes) => {
    const stream = streams[direction];
    for (let n = 0; n < bytes.length && stream.at + n <= VERSION_AT; n++) {
      const at = stream.at + n;
      if (at < MAGIC.length) stream.framed &&= bytes[n] === MAGIC[at];
      if (at === VERSION_AT && stream.framed) bytes[n] = 0;
    }
    stream.at += bytes.length;
  };
}
