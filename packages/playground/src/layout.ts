/**
 * Places the nodes of a network: hosts at the bottom, each switch at the height of its distance
 * from them.
 */

/** A network as the simulator describes it. Hosts are numbered first, then switches. */
export interface Graph {
  hosts: number;
  switches: number;
  tiers: string[];
  links: { a: number; b: number; rate: string; tier: number }[];
  names: string[];
}

/** A place from 0 to 1, from the left and from the top. */
export interface Place {
  x: number;
  y: number;
}

/** Returns the place of every node. */
export function places(graph: Graph): Place[] {
  const nodes = graph.hosts + graph.switches;
  const neighbours: number[][] = Array.from({ length: nodes }, () => []);
  for (const { a, b } of graph.links) {
    neighbours[a]?.push(b);
    neighbours[b]?.push(a);
  }
  const level = new Array<number>(nodes).fill(-1);
  let row = Array.from({ length: graph.hosts }, (_, host) => host);
  const rows: number[][] = [];
  while (row.length > 0) {
    for (const node of row) {
      level[node] = rows.length;
    }
    rows.push(row);
    row = [...new Set(row.flatMap((node) => neighbours[node] ?? []))].filter((node) => level[node] === -1);
  }
  const found: Place[] = Array.from({ length: nodes }, () => ({ x: 0.5, y: 0.5 }));
  rows.forEach((members, depth) => {
    // A switch is placed above the middle of its lower neighbours. Hosts keep the order of their
    // numbers.
    const middle = (node: number): number => {
      const below = (neighbours[node] ?? []).filter((other) => (level[other] as number) < depth);
      return below.reduce((sum, other) => sum + (found[other] as Place).x, 0) / Math.max(1, below.length);
    };
    const order = depth === 0 ? members : [...members].sort((a, b) => middle(a) - middle(b) || a - b);
    order.forEach((node, at) => {
      found[node] = { x: (at + 0.5) / order.length, y: 1 - (depth + 0.5) / rows.length };
    });
  });
  return found;
}
