/**
 * Draws the two pictures: the fabric with its queues, and the distributions of completion times.
 */
import { type Graph, type Place, places } from './layout.js';
import { duration, histogram, percentile } from './statistics.js';

/** Clears a canvas, and returns its context in CSS pixels with its width and height. */
function prepared(canvas: HTMLCanvasElement, ratio: number): [CanvasRenderingContext2D, number, number] {
  const dots = window.devicePixelRatio || 1;
  const width = Math.max(120, canvas.clientWidth);
  const height = Math.round(width * ratio);
  if (canvas.width !== Math.round(width * dots) || canvas.height !== Math.round(height * dots)) {
    canvas.width = Math.round(width * dots);
    canvas.height = Math.round(height * dots);
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext('2d') as CanvasRenderingContext2D;
  context.setTransform(dots, 0, 0, dots, 0, 0);
  context.clearRect(0, 0, width, height);
  return [context, width, height];
}

/** Returns a function that gives the page's colours, light or dark, by name. */
export function colours(): (name: string) => string {
  const style = getComputedStyle(document.documentElement);
  return (name) => style.getPropertyValue(`--${name}`).trim();
}

/** A drawing of a fabric; nodes are placed once. */
export class Fabric {
  private readonly spots: Place[];

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly graph: Graph,
    private readonly limit: number,
  ) {
    this.spots = places(graph);
  }

  /**
   * Returns the packets that wait at switches, for each link the longer of its two queues. Queues
   * at a server's own interface do not count: the server has yet to send them.
   */
  waiting(queues: readonly number[]): number[] {
    return this.graph.links.map(({ a, b }, link) => {
      const [up, down] = [queues[2 * link] ?? 0, queues[2 * link + 1] ?? 0];
      return Math.max(a < this.graph.hosts ? 0 : up, b < this.graph.hosts ? 0 : down);
    });
  }

  /** Draws the links by the packets that wait for them, the longest queues on top. */
  draw(queues: readonly number[]): void {
    const [context, width, height] = prepared(this.canvas, 0.4);
    const colour = colours();
    const edge = 14;
    const at = (node: number): [number, number] => {
      const { x, y } = this.spots[node] as Place;
      return [edge + x * (width - 2 * edge), edge + y * (height - 2 * edge)];
    };
    const waiting = this.waiting(queues);
    const order = this.graph.links.map((_, link) => link);
    order.sort((one, other) => (waiting[one] as number) - (waiting[other] as number));
    for (const link of order) {
      const { a, b } = this.graph.links[link] as Graph['links'][number];
      const share = Math.min(1, (waiting[link] as number) / this.limit);
      // A single packet may be about to leave: it does not count as a queue.
      const busy = (waiting[link] as number) > 1;
      context.strokeStyle = colour(busy ? (share > 0.8 ? 'full' : 'some') : 'idle');
      context.globalAlpha = busy ? 0.45 + 0.55 * Math.sqrt(share) : 0.8;
      context.lineWidth = busy ? 1.5 + 5 * share : 1;
      context.beginPath();
      context.moveTo(...at(a));
      context.lineTo(...at(b));
      context.stroke();
    }
    context.globalAlpha = 1;
    context.fillStyle = colour('ink');
    const radius = Math.max(1.5, Math.min(5, (width / this.graph.hosts) * 0.3));
    for (let node = 0; node < this.spots.length; node++) {
      const [x, y] = at(node);
      context.beginPath();
      if (node < this.graph.hosts) {
        context.arc(x, y, radius, 0, 7);
      } else {
        context.rect(x - radius - 1, y - radius - 1, 2 * radius + 2, 2 * radius + 2);
      }
      context.fill();
    }
  }
}

/** A distribution to draw: completion times in nanoseconds, ascending. */
export interface Row {
  name: string;
  colour: string;
  sorted: Float64Array;
}

/**
 * Draws distributions below each other on one axis: bars, the median, and the slowest in a hundred
 * as dots.
 */
export function drawDistributions(
  canvas: HTMLCanvasElement,
  rows: readonly Row[],
  range: [number, number],
): void {
  const narrow = canvas.clientWidth < 560;
  const [context, width, height] = prepared(
    canvas,
    Math.min(1.1, (rows.length * 150 + 40) / Math.max(120, canvas.clientWidth)),
  );
  const colour = colours();
  const [from, to] = range;
  const [left, right, foot] = [6, 12, 26];
  const across = width - left - right;
  const x = (ns: number) =>
    left + (Math.log(Math.min(to, Math.max(from, ns)) / from) / Math.log(to / from)) * across;
  context.font = '13px system-ui, sans-serif';
  context.textBaseline = 'alphabetic';
  for (let power = Math.ceil(Math.log10(from)); 10 ** power <= to; power++) {
    const tick = x(10 ** power);
    context.fillStyle = colour('grid');
    context.fillRect(tick, 4, 1, height - foot - 4);
    context.fillStyle = colour('muted');
    context.textAlign = tick < 40 ? 'left' : tick > width - 40 ? 'right' : 'center';
    context.fillText(
      duration(10 ** power)
        .replace(/(\.\d*?)0+(?=\u00a0)/, '$1')
        .replace('.\u00a0', '\u00a0'),
      tick,
      height - 8,
    );
  }
  const band = (height - foot) / Math.max(1, rows.length);
  rows.forEach((row, index) => {
    const base = (index + 1) * band - 4;
    drawRow(context, row, { x, base, band, range, across, left, right: width - right, narrow, colour });
  });
}

interface Where {
  x: (ns: number) => number;
  base: number;
  band: number;
  range: [number, number];
  across: number;
  left: number;
  right: number;
  narrow: boolean;
  colour: (name: string) => string;
}

function drawRow(context: CanvasRenderingContext2D, row: Row, where: Where): void {
  const { x, base, band, range, across, left, right, narrow, colour } = where;
  const paint = colour(row.colour);
  context.textAlign = 'left';
  context.font = '600 14px system-ui, sans-serif';
  context.fillStyle = paint;
  context.fillText(row.name, left, base - band + 20);
  context.fillStyle = colour('rule');
  context.fillRect(left, base, across, 1);
  if (row.sorted.length === 0) {
    return;
  }
  const bins = histogram(row.sorted, range[0], range[1], Math.max(24, Math.round(across / 8)));
  const most = Math.max(...bins.counts);
  const room = band - 62;
  const half = percentile(row.sorted, 0.5) as number;
  const tail = percentile(row.sorted, 0.99) as number;
  context.fillStyle = paint;
  context.globalAlpha = 0.1;
  context.fillRect(x(tail), base - room - 14, right - x(tail), room + 14);
  context.globalAlpha = 0.65;
  const wide = across / bins.counts.length;
  bins.counts.forEach((count, bin) => {
    const tall = count === 0 ? 0 : Math.max(2, (count / most) * room);
    context.fillRect(left + bin * wide + 0.5, base - tall, Math.max(1, wide - 1), tall);
  });
  context.globalAlpha = 1;
  const slowest = row.sorted.subarray(Math.ceil(0.99 * row.sorted.length) - 1);
  const dots = new Map<number, number>();
  for (const each of slowest) {
    const column = Math.round(x(each) / 6);
    const high = dots.get(column) ?? 0;
    dots.set(column, high + 1);
    context.beginPath();
    context.arc(column * 6, base - 6 - 6 * Math.min(high, (room - 8) / 6), 2.6, 0, 7);
    context.fill();
  }
  context.font = '13px system-ui, sans-serif';
  const marks: [number, string, number][] = [
    [half, `half: ${duration(half)}`, 34],
    [tail, `${narrow ? '' : 'slowest '}1 in 100: ${duration(tail)}`, 20],
  ];
  for (const [time, text, up] of marks) {
    const at = x(time);
    context.fillStyle = paint;
    context.fillRect(at - 1, base - room - 14, 2, room + 14);
    const long = context.measureText(text).width;
    const start = Math.min(right - long, Math.max(left, at - long / 2));
    context.fillStyle = colour('ink');
    context.fillText(text, start, base - room - (up === 34 ? 18 : 32));
  }
}
