/** The simulator for the page: a worker whose answers are promises. */
import { Refused, type Result } from './engine.js';
import type { Graph } from './layout.js';
import type { Component, Plan, Run } from './model.js';
import type { Frame, Reply, Task } from './worker.js';

/** A task without the number that its answer refers to. */
type Asked = Task extends infer T ? (T extends Task ? Omit<T, 'id'> : never) : never;

interface Waiting {
  done(answer: unknown): void;
  failed(error: Error): void;
  onFrame(frame: Frame): void;
}

/** A worker with an instance of the module. */
export class Simulator {
  private readonly worker: Worker;
  private readonly waiting = new Map<number, Waiting>();
  private last = 0;

  private constructor(script: string) {
    this.worker = new Worker(script);
    this.worker.onmessage = ({ data }: MessageEvent<Reply>) => this.receive(data);
    this.worker.onerror = (event) => {
      for (const waiting of this.waiting.values()) {
        waiting.failed(new Error(event.message || 'the worker has stopped'));
      }
      this.waiting.clear();
    };
  }

  /** Starts a worker; `script` is the address of its script. */
  static async start(script: string, module: WebAssembly.Module): Promise<Simulator> {
    const simulator = new Simulator(script);
    await simulator.ask({ task: 'start', module });
    return simulator;
  }

  describe(): Promise<{ components: Component[]; results: number; version: string }> {
    return this.ask({ task: 'describe' });
  }

  plan(text: string): Promise<Plan> {
    return this.ask({ task: 'plan', text });
  }

  network(run: Run): Promise<Graph> {
    return this.ask({ task: 'network', run: JSON.stringify(run) });
  }

  run(run: Run, frames: number, onFrame: (frame: Frame) => void): Promise<Result> {
    return this.ask({ task: 'run', run: JSON.stringify(run), frames }, onFrame);
  }

  /** Terminates the worker, even during a run. */
  stop(): void {
    this.worker.terminate();
  }

  private ask<T>(asked: Asked, onFrame: (frame: Frame) => void = () => {}): Promise<T> {
    const id = ++this.last;
    return new Promise<T>((resolve, reject) => {
      this.waiting.set(id, { done: (answer) => resolve(answer as T), failed: reject, onFrame });
      this.worker.postMessage({ id, ...asked });
    });
  }

  private receive(reply: Reply): void {
    const waiting = this.waiting.get(reply.id);
    if (waiting === undefined) {
      return;
    }
    if ('frame' in reply) {
      waiting.onFrame(reply.frame);
      return;
    }
    this.waiting.delete(reply.id);
    if ('errors' in reply) {
      waiting.failed(new Refused(reply.errors));
    } else {
      waiting.done(reply.answer);
    }
  }
}
