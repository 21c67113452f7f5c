/**
 * Imported into every test file by ../run.mjs: a file that is stopped because it does not end leaves its handles and the
 * kernel's view of its connections behind, since nothing else tells what it was waiting for.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';

const file = process.argv[1] ?? '';
const directory = process.env.REPNET_HANG_REPORTS;

/** The rows of the kernel's tables that concern these ports: state, queues, timers. */
function kernelRows(ports) {
  const wanted = new Set([...ports].map((port) => port.toString(16).toUpperCase().padStart(4, '0')));
  return ['/proc/net/tcp', '/proc/net/tcp6'].flatMap((table) => {
    try {
      const [head, ...rows] = readFileSync(table, 'utf8').trimEnd().split('\n');
      return [
        head,
        ...rows.filter((row) =>
          row
            .trim()
            .split(/\s+/, 3)
            .slice(1)
            .some((end) => wanted.has(end.split(':')[1])),
        ),
      ];
    } catch {
      return []; // not Linux
    }
  });
}

// Not in the processes that tests start, which inherit this import: they have their own say on SIGTERM.
if (directory !== undefined && /\.test\.(mjs|cjs|js)$/.test(file))
  process.on('SIGTERM', (signal) => {
    // A test may emit the event without a signal, for what it tests.
    if (signal === undefined) return;
    const handles = process.report.getReport().libuv;
    const ports = new Set(
      handles
        .flatMap(({ localEndpoint, remoteEndpoint }) => [localEndpoint?.port, remoteEndpoint?.port])
        .filter((port) => port !== undefined),
    );
    writeFileSync(
      join(directory, `${basename(file)}.${process.pid}`),
      [...handles.map((handle) => JSON.stringify(handle)), ...kernelRows(ports), ''].join('\n'),
    );
    process.exit(143);
  });
