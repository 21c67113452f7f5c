/** What a stream hands down to be written. */
export interface Chunk {
  chunk: unknown;
  encoding: BufferEncoding | 'buffer';
}

/** Returns the bytes of `data`, which is text in `encoding` or bytes. */
export function asBuffer(data: unknown, encoding: BufferEncoding | 'buffer'): Buffer {
  return typeof data === 'string' ? Buffer.from(data, encoding as BufferEncoding) : (data as Buffer);
}

/** Returns the bytes of all chunks in one buffer. */
export function gather(chunks: Chunk[]): Buffer {
  return Buffer.concat(chunks.map(({ chunk, encoding }) => asBuffer(chunk, encoding)));
}
