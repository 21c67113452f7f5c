/** The worker: runs the module and answers messages, one at a time. */
import { Engine, Refused, unpack } from './engine.js';

/** A message from the page. */
export type Task =
  | { id: number; task: 'start'; module: WebAssembly.Module }
  | { id: number; task: 'describe' }
  | { id: number; task: 'plan'; text: string }
  | { id: number; task: 'network'; run: string }
  | { id: number; task: 'run'; run: string; frames: number };

/** The state of a run at an instant. */
export interface Frame {
  now_ns: number;
  packet_hops: number;
  /**
   * Packets in the queue of each directed link: link `n` from `a` to `b` is `2 n`, from `b` to `a`
   * it is `2 n + 1`.
   */
  queues: number[];
  /**
   * Flows that have finished since the last frame: index, bytes, completion time and ideal time in
   * nanoseconds.
   */
  finished: [number, number, number, number][];
}

/** A message to the page. */
export type Reply =
  | { id: number; frame: Frame }
  | { id: number; answer: unknown }
  | { id: number; errors: readonly { message: string; rendered: string }[] };

/** The part of a worker's global scope that is used here. */
interface Surroundings {
  onmessage: ((event: { data: Task }) => void) | null;
  postMessage(reply: Reply): void;
}

/** Answers the messages of the page. */
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
