/**
 * The counters of stats() as Prometheus metrics: registered with prom-client, which the application
 * brings, or as text for an endpoint without it.
 * @module prometheus
 */
import { type Stats, stats } from '../index.js';

type Labels = Readonly<Record<string, string>>;

export interface Metric {
  readonly name: string;
  readonly type: 'counter' | 'gauge';
  readonly help: string;
  readonly samples: readonly { readonly labels: Labels; readonly value: number }[];
}

interface Definition {
  readonly name: string;
  readonly help: string;
  /** The value in stats() behind each combination of labels. */
  readonly from: readonly (readonly [labels: Labels, value: Counter | ((now: Stats) => number)])[];
}

type Counter = Exclude<keyof Stats, 'trial'>;

const valueIn = (now: Stats, value: Definition['from'][number][1]): number =>
  typeof value === 'function' ? value(now) : now[value];

/** The value of `field` for each arm of the trial. */
const arms = (field: 'flows' | 'unanswered' | 'milliseconds'): Definition['from'] => [
  [{ copies: 'with' }, ({ trial }) => trial.withCopies[field]],
  [{ copies: 'without' }, ({ trial }) => trial.without[field]],
];

const plain = (counter: Counter): Definition['from'] => [[{}, counter]];

const DEFINITIONS: readonly Definition[] = [
  {
    name: 'repnet_flows_total',
    help: 'Flows started by this client, by how they are carried.',
    from: [
      [{ mode: 'flow' }, 'flowsFlow'],
      [{ mode: 'syn' }, 'flowsSyn'],
      [{ mode: 'plain' }, 'flowsPlain'],
    ],
  },
  { name: 'repnet_flows_accepted_total', help: 'Flows accepted by servers.', from: plain('flowsAccepted') },
  {
    name: 'repnet_flows_paired_total',
    help: 'Accepted flows that were joined by their second connection.',
    from: plain('flowsPaired'),
  },
  {
    name: 'repnet_bytes_won_total',
    help: 'Bytes of paired flows delivered to this application, by direction and the copy that brought them first.',
    from: [
      [{ direction: 'request', copy: 'primary' }, 'requestBytesWonByPrimary'],
      [{ direction: 'request', copy: 'replica' }, 'requestBytesWonByReplica'],
      [{ direction: 'reply', copy: 'primary' }, 'replyBytesWonByPrimary'],
      [{ direction: 'reply', copy: 'replica' }, 'replyBytesWonByReplica'],
    ],
  },
  {
    name: 'repnet_bytes_duplicate_total',
    help: 'Bytes that arrived after the other copy had delivered them.',
    from: plain('bytesDuplicate'),
  },
  { name: 'repnet_bytes_doubled_total', help: 'Bytes sent a second time.', from: plain('bytesDoubled') },
  {
    name: 'repnet_bytes_wasted_total',
    help: 'What copies cost the network, as this process sees it: bytes sent a second time, and bytes that came a second time.',
    from: plain('bytesWasted'),
  },
  {
    name: 'repnet_copies_issued_total',
    help: 'Second connections that this client began.',
    from: plain('copiesIssued'),
  },
  {
    name: 'repnet_copies_won_total',
    help: 'Second connections that brought a byte of the reply first, or were established first.',
    from: plain('copiesWon'),
  },
  {
    name: 'repnet_trial_flows_total',
    help: 'Flows of the trial that were answered, with copies and in the control group.',
    from: arms('flows'),
  },
  {
    name: 'repnet_trial_milliseconds_total',
    help: 'Time from connect to the first byte of the reply, summed over the flows of the trial.',
    from: arms('milliseconds'),
  },
  {
    name: 'repnet_trial_unanswered_total',
    help: 'Flows of the trial that were closed before a byte of the reply.',
    from: arms('unanswered'),
  },
  {
    name: 'repnet_syn_won_total',
    help: 'RepSYN handshakes, by the connection that was established first.',
    from: [
      [{ connection: 'first' }, 'synWonByFirst'],
      [{ connection: 'second' }, 'synWonBySecond'],
    ],
  },
  {
    name: 'repnet_late_twins_total',
    help: 'Second connections refused because their flow was unknown, over or given up.',
    from: plain('lateTwins'),
  },
  {
    name: 'repnet_late_served_total',
    help: 'Second connections that came after the flow was closed and were sent its last bytes.',
    from: plain('lateServed'),
  },
  {
    name: 'repnet_chosen_early_total',
    help: 'Flows carried by one copy because too much was archived before the second came.',
    from: plain('chosenEarly'),
  },
  {
    name: 'repnet_doubling_stopped_total',
    help: 'Times a message outgrew the threshold and went on with one copy.',
    from: plain('doublingStopped'),
  },
  {
    name: 'repnet_doubling_resumed_total',
    help: 'Times doubling began again after a lull.',
    from: plain('doublingResumed'),
  },
  {
    name: 'repnet_copies_failed_total',
    help: 'Copies given up because they failed or fell too far behind.',
    from: plain('copiesFailed'),
  },
  {
    name: 'repnet_foreign_peers_total',
    help: 'Replica ports that something else than repnet answers on.',
    from: plain('foreignPeers'),
  },
  {
    name: 'repnet_port_retries_total',
    help: 'Source port collisions that were retried.',
    from: plain('portRetries'),
  },
  {
    name: 'repnet_over_budget_total',
    help: 'Copies not made because the replication budget was spent.',
    from: plain('overBudget'),
  },
  {
    name: 'repnet_earlier_peers_total',
    help: 'Flows joined with a peer that goes by an earlier version of the wire format.',
    from: plain('earlierPeers'),
  },
  { name: 'repnet_refused_total', help: 'Replica connections that servers refused.', from: plain('refused') },
];

/** The library's counters now. */
export function libraryMetrics(): Metric[] {
  const now = stats();
  return DEFINITIONS.map(({ name, help, from }) => ({
    name,
    help,
    type: 'counter',
    samples: from.map(([labels, value]) => ({ labels, value: valueIn(now, value) })),
  }));
}

/** The part of prom-client (version 14 or later) that is used: pass the module. */
export interface PrometheusClient<Registry> {
  readonly register: Registry;
  readonly Counter: new (configuration: {
    name: string;
    help: string;
    labelNames: string[];
    registers: Registry[];
    collect(this: PrometheusCounter): void;
  }) => unknown;
}

interface PrometheusCounter {
  reset(): void;
  inc(labels: Record<string, string>, value: number): void;
}

/**
 * Registers the library's counters with a prom-client registry (its default one unless given):
 * `registerMetrics(promClient)`. They are read when the registry is scraped. Registering twice with
 * one registry throws, as prom-client does.
 */
export function registerMetrics<Registry>(
  client: PrometheusClient<Registry>,
  registry: Registry = client.register,
): void {
  for (const { name, help, from } of DEFINITIONS) {
    new client.Counter({
      name,
      help,
      labelNames: Object.keys(from[0]![0]),
      registers: [registry],
      collect() {
        const now = stats();
        this.reset();
        for (const [labels, value] of from) this.inc({ ...labels }, valueIn(now, value));
      },
    });
  }
}

const escapeHelp = (text: string): string => text.replace(/\\/g, '\\\\').replace(/\n/g, '\\n');
const escapeLabel = (text: string): string => escapeHelp(text).replace(/"/g, '\\"');

/** Metrics in the Prometheus text exposition format, version 0.0.4. */
export function formatMetrics(metrics: readonly Metric[]): string {
  return metrics
    .map(({ name, type, help, samples }) => {
      const lines = samples.map(({ labels, value }) => {
        const pairs = Object.entries(labels).map(([label, text]) => `${label}="${escapeLabel(text)}"`);
        return `${name}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${value}`;
      });
      return `# HELP ${name} ${escapeHelp(help)}\n# TYPE ${name} ${type}\n${lines.join('\n')}\n`;
    })
    .join('');
}
