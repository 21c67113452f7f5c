/** What runs in the worker: the module, asked by messages, one at a time. */
import { Engine, Refused, unpack } from './engine.js';

/** What the page asks for. */
export type Task =
  | { id: number; task: 'start'; module: WebAssembly.Module }
  | { id: number; task: 'describe' }
  | { id: number; task: 'plan'; text: string }
  | { id: number; task: 'network'; run: string }
  | { id: number; task: 'run'; run: string; frames: number };

/** A picture of a run. */
export interface Frame {
  now_ns: number;
  packet_hops: number;
  /** Packets that wait, by directed link: link `n` from `a` to `b` is `2 n`, the other way `2 n + 1`. */
  queues: number[];
  /** Flows that have finished since the frame before: place, bytes, and completion time now and alone in nanoseconds. */
  finished: [number, number, number, number][];
}

/** What the worker says. */
export type Said =
  | { id: number; frame: Frame }
  | { id: number; answer: unknown }
  | { id: number; errors: readonly { message: string; rendered: string }[] };

/** What the page needs of a worker's surroundings. */
interface Surroundings {
  onmessage: ((event: { data: Task }) => void) | null;
  postMessage(said: Said): void;
}

/** Answers messages. */
export function serve(surroundings: Surroundings): void {
  let engine: Engine | undefined;
  const answer = async (asked: Task): Promise<unknown> => {
    if (asked.task === 'start') {
      engine = await Engine.start(asked.module);
      return null;
    }
    if (engine === undefined) {
      throw new Error('not started');
    }
    switch (asked.task) {
      case 'describe':
        return JSON.parse(engine.describe());
      case 'plan':
        return JSON.parse(engine.plan('experiment.toml', asked.text));
      case 'network':
        return JSON.parse(engine.network(asked.run));
      case 'run':
        return unpack(
          engine.run(asked.run, asked.frames, (text) =>
            surroundings.postMessage({ id: asked.id, frame: JSON.parse(text) }),
          ),
        );
    }
  };
  surroundings.onmessage = ({ data }) => {
    answer(data).then(
      (answer) => surroundings.postMessage({ id: data.id, answer }),
      (error) => {
        const plain = [{ message: String(error), rendered: String(error) }];
        surroundings.postMessage({ id: data.id, errors: error instanceof Refused ? error.errors : plain });
      },
    );
  };
}
