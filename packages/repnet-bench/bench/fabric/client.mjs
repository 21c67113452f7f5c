/**
 * On the clients' host: sessions over each way in turn, of ten requests each; how long each took
 * goes into a file.
 */
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { sizes } from './draw.mjs';
import { SERVICES } from './services.mjs';

const { service, proxy, seconds, workers, into } = JSON.parse(process.argv[2]);
const { proxies, ways } = SERVICES[service];
const REQUESTS = 10;
/** Sessions over each way before any is measured, so that everything is compiled. */
const WARM_UPS = 8;

if (proxies !== undefined) {
  const beside = spawn(process.execPath, [proxy, ...proxies.client], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  beside.once('exit', () => process.exit(1));
}

const took = Object.fromEntries(ways.map(({ way }) => [way, []]));
let failed = 0;

/** One connection and its requests; the first includes the connecting. */
async function session({ way, open }, asked, into) {
  const client = open();
  try {
    for (const bytes of asked) {
      const began = process.hrtime.bigint();
      const got = await client.ask(bytes);
      into?.push(Number(process.hrtime.bigint() - began) / 1e6);
      if (got !== bytes) throw new Error(`${way}: ${got} bytes instead of ${bytes}`);
    }
  } finally {
    await client.close().catch(() => {});
  }
}

async function answers(way) {
  for (;;) {
    try {
      return await session(way, [1000]);
    } catch {
      await sleep(200);
    }
  }
}

for (const way of ways) await answers(way);
const warm = sizes(0);
for (let round = 0; round < WARM_UPS; round++)
  for (const way of ways) await session(way, warm.next(REQUESTS)).catch(() => {});

// The long flows of three-paths.toml begin after 6 s, and then fill their windows.
await sleep(Math.max(0, 10_000 - performance.now()));
const until = performance.now() + 1000 * seconds;
async function worker(number) {
  const draw = sizes(number + 1);
  while (performance.now() < until) {
    const asked = draw.next(REQUESTS); // the same over every way
    for (const way of ways) {
      try {
        await session(way, asked, took[way.way]);
      } catch {
        failed++;
      }
    }
  }
}
await Promise.all(Array.from({ length: workers }, (_, number) => worker(number)));
writeFileSync(into, JSON.stringify({ took, failed }));
// The run goes on until its time is over, and takes this process with it.
setInterval(() => {}, 60_000);
