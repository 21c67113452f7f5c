/** The simulator as the page has it: a worker that answers promises. */
import { Refused, type Result } from './engine.js';
import type { Graph } from './layout.js';
import type { Component, Plan, Run } from './model.js';
import type { Frame, Said, Task } from './worker.js';

/** What is asked for, without the number that the answer is known by. */
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
    this.worker.onmessage = ({ data }: MessageEvent<Said>) => this.hear(data);
    this.worker.onerror = (event) => {
      for (const waiting of this.waiting.values()) {
        waiting.failed(new Error(event.message || 'the worker has died'));
      }
      this.waiting.clear();
    };
  }

  /** Starts a worker from the address of its script. */
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

  /** Ends the worker, whatever it does. */
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

  private hear(said: Said): void {
    const waiting = this.waiting.get(said.id);
    if (waiting === undefined) {
      return;
    }
    if ('frame' in said) {
      waiting.onFrame(said.frame);
      return;
    }
    this.waiting.delete(said.id);
    if ('errors' in said) {
      waiting.failed(new Refused(said.errors));
    } else {
      waiting.done(said.answer);
    }
  }
}
