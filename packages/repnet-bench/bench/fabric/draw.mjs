/**
 * Sizes of requests: from 1 KB to 100 KB, evenly over the logarithm; the same for the same seed.
 */
export function sizes(seed) {
  let state = 0x9e3779b9 ^ (seed * 0x85ebca6b);
  const random = () => {
    // Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators" (2014), in 32 bits.
    state = (state + 0x9e3779b9) | 0;
    let mixed = Math.imul(state ^ (state >>> 16), 0x21f0aaad);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32;
  };
  return { next: (count) => Array.from({ length: count }, () => Math.round(1000 * 100 ** random())) };
}
