/**
 * The page: stories, a run of two schemes, controls and the experiment file, all of which show the
 * same plan.
 */
import { Controls, element } from './controls.js';
import { drawDistributions, Fabric, type Row } from './draw.js';
import { Refused } from './engine.js';
import { type Component, fromPlan, type Model, type Plan, type Run, toText } from './model.js';
import { bytesOf, Recording, type Sizes } from './recording.js';
import { Simulator } from './simulator.js';
import { duration, percentile, totals, verdict } from './statistics.js';
import type { Table } from './toml.js';

/** The number of frames while flows arrive. */
const FRAMES = 240;
/** The seconds in which that time is played, if the computer is fast enough. */
const SECONDS = 10;
/** The factor by which the time after it is played faster. */
const AFTERWARDS = 6;
/** A low estimate of the packet-hops per second, to predict how long a run takes. */
const SPEED = 4_000_000;

/** A scheme that is shown, with its run. */
interface Act {
  name: string;
  colour: string;
  run: Run;
  recording: Recording;
  fabric: Fabric | undefined;
  canvas: HTMLCanvasElement;
  note: HTMLElement;
}

const find = <T extends HTMLElement>(id: string): T => document.getElementById(id) as T;

/** Starts the page. */
export async function main(): Promise<void> {
  try {
    const bytes = Uint8Array.from(atob(content('module')), (letter) => letter.charCodeAt(0));
    const whole = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
    const module = await WebAssembly.compile(await new Response(whole).arrayBuffer());
    const script = URL.createObjectURL(new Blob([content('worker')], { type: 'text/javascript' }));
    const planner = await Simulator.start(script, module);
    const { components, version } = await planner.describe();
    find('version').textContent = version;
    const page = new Page(planner, components, () => Simulator.start(script, module));
    await page.start();
  } catch (error) {
    complain(error);
    find('status').textContent = 'The simulator cannot start in this browser.';
  }
}

function content(id: string): string {
  return find(id).textContent as string;
}

/** Sets a text that screen readers announce when it changes. */
function say(id: string, text: string): void {
  if (find(id).textContent !== text) {
    find(id).textContent = text;
  }
}

function complain(error: unknown): void {
  const problem = find('problem');
  problem.hidden = error === undefined;
  problem.textContent = error === undefined ? '' : error instanceof Refused ? error.message : String(error);
}

class Page {
  private readonly stories: { name: string; text: string }[] = JSON.parse(content('experiments'));
  private readonly controls: Controls;
  private model: Model | undefined;
  private plan: Plan | undefined;
  /** The number of the latest text to plan; answers about older texts are ignored. */
  private asked = 0;
  private acts: Act[] = [];
  private workers: Simulator[] = [];
  /** The number of the latest run; answers about older runs are ignored. */
  private ran = 0;
  private now = 0;
  private playing = false;
  private before: number | undefined;

  constructor(
    private readonly planner: Simulator,
    private readonly components: readonly Component[],
    private readonly newWorker: () => Promise<Simulator>,
  ) {
    this.controls = new Controls(find<HTMLFormElement>('controls'), components, () => this.write());
  }

  async start(): Promise<void> {
    const file = find<HTMLTextAreaElement>('file');
    file.addEventListener('change', () => this.read(file.value, false));
    find('run').addEventListener('click', () => this.run());
    find('pause').addEventListener('click', () => this.pause());
    find('time').addEventListener('input', () => this.seek());
    find('sizes').addEventListener('change', () => this.draw());
    find('copy').addEventListener('click', () => this.copy());
    find('save').addEventListener('click', () => this.save());
    window.addEventListener('resize', () => this.draw());
    window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.draw());
    for (const [at, { text }] of this.stories.entries()) {
      const title = /^title = "(.*)"$/m.exec(text)?.[1] ?? '';
      const button = element('button', { type: 'button', 'aria-pressed': 'false' }, title);
      button.addEventListener('click', () => this.choose(at));
      find('stories').append(button);
    }
    await this.choose(0);
    document.documentElement.dataset.ready = 'true';
  }

  private async choose(at: number): Promise<void> {
    for (const [each, button] of [...find('stories').children].entries()) {
      button.setAttribute('aria-pressed', String(each === at));
    }
    await this.read(this.stories[at]?.text ?? '', true);
  }

  /** Writes the experiment file from the controls, and plans it. */
  private write(): void {
    if (this.model !== undefined) {
      this.read(toText(this.model, this.components), false);
    }
  }

  /** Plans an experiment file, and shows it in the controls and on the stage. */
  private async read(text: string, isStory: boolean): Promise<void> {
    const asked = ++this.asked;
    find<HTMLTextAreaElement>('file').value = text;
    this.stop();
    this.plan = undefined;
    find<HTMLButtonElement>('run').disabled = true;
    say('status', 'Planning…');
    try {
      const plan = await this.planner.plan(text);
      if (asked !== this.asked) {
        return;
      }
      complain(undefined);
      this.plan = plan;
      this.model = fromPlan(plan);
      this.controls.show(this.model);
      if (isStory) {
        const sentences = plan.question.trim().split(/(?<=\.) (?=[A-Z])/);
        find('story').replaceChildren(...sentences.map((sentence) => element('li', {}, sentence)));
      }
      await this.stage(plan);
    } catch (error) {
      if (asked === this.asked) {
        find('status').textContent = 'The experiment file has an error.';
        complain(error);
      }
    }
  }

  /** Prepares the stage for a plan: the first run of each of its first two schemes. */
  private async stage(plan: Plan): Promise<void> {
    const runs = plan.schemes.slice(0, 2).map((name) => plan.runs.find((run) => run.scheme === name) as Run);
    const graphs = await Promise.all(runs.map((run) => this.planner.network(run)));
    if (this.plan !== plan) {
      return;
    }
    const small = bytesOf(plan.measure.short);
    this.acts = runs.map((run, at) => {
      const canvas = element('canvas', { role: 'img', 'aria-label': `The network under ${run.scheme}` });
      const colour = at === 0 ? 'a' : 'b';
      const limit = packetsOf((run.config.scheme.queue as Table).limit);
      const graph = graphs[at] as (typeof graphs)[number];
      const fabric = graph.links.length <= 4000 ? new Fabric(canvas, graph, limit) : undefined;
      const note = element('small');
      return { name: run.scheme, colour, run, recording: new Recording(small), fabric, canvas, note };
    });
    find('fabrics').replaceChildren(
      ...this.acts.map(({ name, colour, canvas, note }) =>
        element(
          'figure',
          { style: `--scheme: var(--${colour})` },
          element('figcaption', {}, name, note),
          canvas,
        ),
      ),
    );
    const chart = element('canvas', { role: 'img', 'aria-label': 'Distribution of completion times' });
    find('distributions').replaceChildren(chart);
    find('numbers').hidden = true;
    say('totals', '');
    find('verdict').textContent = 'Run it to see how long flows take.';
    find('ids').textContent =
      `The run identifiers begin with ${runs.map(({ id }) => id.slice(0, 8)).join(' and ')}.`;
    find<HTMLButtonElement>('run').disabled = false;
    const hops = runs.reduce((sum, { facts }) => sum + facts.expected_packet_hops, 0);
    const flows = runs[0]?.facts.flows.toLocaleString('en') ?? '0';
    const more =
      plan.runs.length > runs.length
        ? ` The file has ${plan.runs.length} runs; this page shows the first run of each of two schemes.`
        : '';
    const seconds = hops / SPEED;
    const long =
      seconds < 3
        ? ''
        : ` About ${seconds < 90 ? `${Math.ceil(seconds)} seconds` : `${Math.ceil(seconds / 60)} minutes`} to simulate.`;
    find('status').textContent =
      `Ready: ${flows} flows between ${runs[0]?.facts.hosts} servers.${long}${more}`;
    this.now = 0;
    this.draw();
  }

  private async run(): Promise<void> {
    const plan = this.plan;
    if (plan === undefined) {
      return;
    }
    this.stop();
    for (const act of this.acts) {
      act.recording = new Recording(bytesOf(plan.measure.short));
    }
    const [acts, ran] = [this.acts, this.ran];
    find('numbers').hidden = true;
    find('status').textContent = 'Simulating…';
    find<HTMLButtonElement>('pause').hidden = false;
    const still = window.matchMedia('(prefers-reduced-motion: reduce)').matches;
    this.now = 0;
    this.play(true);
    const finished = acts.map(async (act) => {
      const worker = await this.newWorker();
      if (this.ran !== ran) {
        worker.stop();
        return;
      }
      this.workers.push(worker);
      act.recording.result = await worker.run(act.run, FRAMES, (frame) => act.recording.frames.push(frame));
      worker.stop();
    });
    try {
      await Promise.all(finished);
      if (still && this.ran === ran) {
        this.now = this.end();
        this.draw();
      }
    } catch (error) {
      if (this.ran === ran) {
        this.stop();
        complain(error);
        find('status').textContent = 'The run failed.';
      }
    }
  }

  /** Stops all workers and the playback. */
  private stop(): void {
    for (const worker of this.workers) {
      worker.stop();
    }
    this.workers = [];
    this.ran += 1;
    this.playing = false;
    find<HTMLButtonElement>('pause').hidden = true;
  }

  private pause(): void {
    if (!this.playing && this.now >= this.end()) {
      this.now = 0;
    }
    this.play(!this.playing);
  }

  private play(on: boolean): void {
    const idle = !this.playing;
    this.playing = on;
    this.before = undefined;
    find('pause').textContent = on ? 'Pause' : 'Play';
    if (on && idle) {
      requestAnimationFrame((time) => this.tick(time));
    }
  }

  private seek(): void {
    this.play(false);
    this.now = Number(find<HTMLInputElement>('time').value) * this.end();
    this.draw();
  }

  /**
   * Advances the playback by one animation frame: at its pace, but not beyond the last frame of
   * either run.
   */
  private tick(time: number): void {
    if (!this.playing) {
      return;
    }
    const passed = Math.min(100, time - (this.before ?? time)) / 1000;
    this.before = time;
    const arrivals = this.arrivals();
    const pace = (arrivals / SECONDS) * (this.now > arrivals ? AFTERWARDS : 1);
    const known = Math.min(
      ...this.acts.map(({ recording }) => (recording.result ? this.end() : recording.known)),
    );
    this.now = Math.min(known, this.now + passed * pace);
    this.draw();
    if (this.over()) {
      this.play(false);
      find('pause').textContent = 'Play again';
      return;
    }
    requestAnimationFrame((next) => this.tick(next));
  }

  /** Returns the time at which flows cease to arrive, in nanoseconds. */
  private arrivals(): number {
    const text = String((this.plan?.runs[0]?.config.horizon as Table | undefined)?.arrivals ?? '1s');
    const [, number, unit] = /^([\d.]+)\s*([a-z]+)$/.exec(text) ?? [];
    return Number(number) * ({ ps: 1e-3, ns: 1, us: 1e3, ms: 1e6, s: 1e9 }[unit ?? ''] ?? 1);
  }

  /**
   * Returns the end of the playback in nanoseconds: the last frame, or the end of arrivals if that
   * is later.
   */
  private end(): number {
    return Math.max(this.arrivals(), ...this.acts.map(({ recording }) => recording.known));
  }

  private done(): boolean {
    return this.acts.length > 0 && this.acts.every(({ recording }) => recording.result !== undefined);
  }

  private over(): boolean {
    return this.done() && this.now >= this.end();
  }

  private draw(): void {
    const sizes = find<HTMLSelectElement>('sizes').value as Sizes;
    const over = this.over();
    const time = find<HTMLInputElement>('time');
    time.disabled = !this.acts.some(({ recording }) => recording.frames.length > 0);
    time.value = String(this.now / Math.max(1, this.end()));
    find('clock').textContent = `${(this.now / 1e6).toFixed(1)}\u00a0ms`;
    const rows: Row[] = this.acts.map(({ name, colour, recording }) => ({
      name,
      colour,
      sorted: (over && recording.final(sizes)) || recording.finished(this.now, sizes),
    }));
    for (const act of this.acts) {
      const frame = act.recording.at(this.now);
      const queues = over ? [] : (frame?.queues ?? []);
      act.fabric?.draw(queues);
      const most = Math.max(0, ...(act.fabric?.waiting(queues) ?? []));
      act.note.textContent = frame && !over ? `longest queue: ${most} packets` : '';
    }
    const chart = find('distributions').querySelector('canvas');
    if (chart !== null) {
      drawDistributions(chart, rows, this.range(sizes));
    }
    find('progress').textContent = '';
    if (over) {
      this.conclude(rows, sizes);
    } else if (this.acts.some(({ recording }) => recording.frames.length > 0)) {
      const counts = rows.map(({ name, sorted }) => `${sorted.length.toLocaleString('en')} under ${name}`);
      find('progress').textContent = `Flows that have finished: ${counts.join(', ')}.`;
      say('verdict', '');
      say('totals', '');
      find('numbers').hidden = true;
    }
  }

  /** Returns the range of the axis, from the fastest flow known so far to the slowest. */
  private range(sizes: Sizes): [number, number] {
    let [from, to] = [1e5, 2e6];
    for (const { recording } of this.acts) {
      const sorted = recording.final(sizes) ?? recording.finished(Number.POSITIVE_INFINITY, sizes);
      const finite = sorted.filter(Number.isFinite);
      if (finite.length > 0) {
        from = Math.min(from, finite[0] as number);
        to = Math.max(to, finite[finite.length - 1] as number);
      }
    }
    return [from * 0.8, to * 1.4];
  }

  private conclude(rows: readonly Row[], sizes: Sizes): void {
    const [first, second] = rows;
    const counted = rows.map(({ name, sorted }) => {
      const finished = sorted.filter(Number.isFinite).length;
      const cells = [0.5, 0.9, 0.99, 1].map((share) => duration(percentile(sorted, share) ?? Number.NaN));
      const values = sorted.length === 0 ? ['–', '–', '–', '–'] : cells;
      return [name, sorted.length.toLocaleString('en'), ...values, String(sorted.length - finished)];
    });
    find('numbers').hidden = false;
    find('numbers')
      .querySelector('tbody')
      ?.replaceChildren(
        ...counted.map(([name, ...cells]) =>
          element(
            'tr',
            {},
            element('th', { scope: 'row' }, name ?? ''),
            ...cells.map((cell) => element('td', {}, cell)),
          ),
        ),
      );
    const sums = this.acts.map(({ name, recording }) => totals(name, recording.result?.counters ?? {}));
    say('totals', sums.filter(Boolean).join(' '));
    const text = first === undefined ? '' : verdict(first, second);
    say('verdict', text);
    say('status', 'Finished. Change something below, or choose another story.');
    const chart = find('distributions').querySelector('canvas');
    chart?.setAttribute('aria-label', `Distribution of completion times of ${sizes} flows. ${text}`);
  }

  private async copy(): Promise<void> {
    const file = find<HTMLTextAreaElement>('file');
    try {
      await navigator.clipboard.writeText(file.value);
    } catch {
      // A page opened as a file may not be allowed to use the clipboard.
      file.select();
      document.execCommand('copy');
    }
    find('copy').textContent = 'Copied';
    setTimeout(() => {
      find('copy').textContent = 'Copy';
    }, 1500);
  }

  private save(): void {
    const blob = new Blob([find<HTMLTextAreaElement>('file').value], { type: 'text/plain' });
    const link = element('a', { href: URL.createObjectURL(blob), download: 'experiment.toml' });
    link.click();
    URL.revokeObjectURL(link.href);
  }
}

/**
 * Returns an amount in packets: "100packets", or "36KB" in packets of 1,500 bytes; 100 if unknown.
 */
function packetsOf(limit: unknown): number {
  const packets = /^(\d+)packets$/.exec(String(limit))?.[1];
  return Number(packets ?? (bytesOf(limit) / 1500 || 100));
}
